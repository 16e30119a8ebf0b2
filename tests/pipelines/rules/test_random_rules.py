"""One rule, one meaning: what `keep` says of a row depends on neither the other rows nor the road, for random rules of
every kind over odd values of every type that a contract can name; regular expressions mean what they mean to Java.

`TRENDLAKE_CHAOS` says how many times as many rules are tried.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from tests.conftest import DRAWS
from trendlake.cep_core.errors import TextError, TrendlakeError
from trendlake.cep_core.events.schema import family
from trendlake.pipelines.contracts.column_types import LOGICAL_OF
from trendlake.pipelines.contracts.regular_expressions import expression_of
from trendlake.pipelines.contracts.row_conditions import check_types, parse_row_condition
from trendlake.pipelines.contracts.rules import Rule
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.rules.keep import keep

pytestmark = [pytest.mark.spark, pytest.mark.random, pytest.mark.more_in_chaos]

ROUNDS = DRAWS
RULES, ROWS = 240, 64

MOMENTS = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1500, 2, 28, 23, 0, 0, 1, UTC),
    datetime(1582, 10, 10, 5, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
    datetime(2024, 2, 29, 12, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
    None,
]
DAYS = [date(1, 1, 1), date(1500, 2, 28), date(1582, 10, 10), date(1970, 1, 1), date(2024, 2, 29), None]
TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "b1",
    "N123",
    "straße",
    "STRASSE",
    "\u0130",
    "\u0131",
    "\u01c6",
    "\ufb01",
    "Σίσυφος",
    "é",
    "e\u0301",
    "\U0001f600x",
    "a b",
    "\u00a0",
    "a\n",
    "a\r",
    "\x0b",
    "a\u2028",
    "[",
    "a-b",
    "x\x00y",
    None,
]
REALS = [
    0.0,
    -0.0,
    0.1,
    0.3,
    1.5,
    -3.0,
    300.0,
    1e300,
    -1e308,
    5e-324,
    2.0**53,
    float("inf"),
    -float("inf"),
    float("nan"),
    None,
]
FLOATS = [0.0, -0.0, 0.1, 0.5, 0.25, -2.5, 16777216.0, 3e38, 1e-45, float("inf"), float("nan"), None]


def whole(bits: int) -> list[Any]:
    top = 1 << (bits - 1)
    return [0, 1, -1, 2, 3, 7, 100, top - 1, -top, *((2**53, 2**53 + 1, -(2**53) - 1) if bits == 64 else ()), None]


def exact(precision: int, scale: int) -> tuple[str, pa.DataType, list[Any]]:
    top = 10**precision - 1
    units = [0, 1, -1, 10**scale, 3 * 10**scale // 10, -(10**scale) * 3 // 2, top, -top, top // 3]
    fitting = [Decimal(f"{unit}E-{scale}") for unit in units if abs(unit) <= top]
    return f"decimal({precision},{scale})", pa.decimal128(precision, scale), [*fitting, None]


COLUMNS: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "s": ("string", pa.string(), TEXTS),
    "u": ("string", pa.string(), ["", "a", "B", "b1", "N123", "x y", None]),
    "x": ("double", pa.float64(), REALS),
    "y": ("double", pa.float64(), [0.0, 0.1, 0.2, 0.3, 2.0, -7.5, 1e15, None]),
    "f": ("float", pa.float32(), FLOATS),
    "g": ("float", pa.float32(), [0.1, 0.2, 0.5, 3.0, None]),
    "t": ("tinyint", pa.int8(), whole(8)),
    "h": ("smallint", pa.int16(), whole(16)),
    "n": ("int", pa.int32(), whole(32)),
    "j": ("int", pa.int32(), [0, 1, 2, 5, -3, 60, None]),
    "k": ("bigint", pa.int64(), whole(64)),
    "m0": exact(38, 0),
    "m1": exact(10, 2),
    "m2": exact(20, 2),
    "m3": exact(20, 0),
    "m4": exact(38, 18),
    "m5": exact(38, 38),
    "m6": exact(4, 4),
    "b": ("boolean", pa.bool_(), [True, False, None]),
    "d": ("date", pa.date32(), DAYS),
    "at": ("timestamp", pa.timestamp("us", "UTC"), MOMENTS),
    "bt": ("timestamp", pa.timestamp("us", "UTC"), [*MOMENTS[:5], None]),
}
ITEMS = [[], ["a"], ["a", "a"], ["a", None], [None, None], [None], ["a", "A", "ß"], ["", " "], ["é", "e\u0301"]]
LISTS: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "w": ("array<string>", pa.list_(pa.string()), ITEMS),
    "v": ("array<string>", pa.list_(pa.string()), [*ITEMS, None]),
}
NUMBERS = "xyfgtnhjk"
DECIMALS = ("m0", "m1", "m2", "m3", "m4", "m5", "m6")
WHOLE_LITERALS = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "128",
    "300",
    "2147483647",
    "2147483648",
    "9007199254740993",
    "99999999999999999",
]
REAL_LITERALS = ["0.1", "0.3", "0.5", "1.5", "2.0", "0.0", "1e300", "0.30000000000000004"]
PATTERNS = (
    "a",
    "^a",
    "a$",
    "^$",
    "^[a-z]+$",
    "^N[0-9]{1,5}$",
    r"\d",
    r"\s",
    r"\S",
    r"^\w+$",
    r"\W",
    ".",
    "^.{2}$",
    "(a|b)+1?",
    r"\[",
    "[^a]",
    "a?b*",
    "x{0,2}$",
    "^(?:a|ab)(?:1|b)?$",
    r"[\w.-]+",
    "ß",
    "[é]",
    "^.$",
    "(a*)*b",
    "(|a)+b",
    "(?i)A",
    "(?s)^.*$",
    "(?s)a.b",
    "(?s).$",
    "(?s)a|.",
    r"\bb",
    "[a[b]]",
    "a++",
    "(?=a)",
    r"\p{L}",
    "[a-z&&[^b]]",
    r"(a)\1",
    r"\x41",
    r"\h",
    "(?u)\\w",
    "^\\D*?$",
)


KINDS = ("row", "range", "in_set", "not_missing", "multiple", "pattern", "length", "items", "distinct_items")


def table(rng: random.Random) -> pa.Table:
    """Every value of every column at least once, in no order."""
    columns = {}
    for name, (_, kind, values) in (COLUMNS | LISTS).items():
        drawn = [values[i % len(values)] for i in range(ROWS)]
        rng.shuffle(drawn)
        columns[name] = pa.array(drawn, kind)
    return pa.table(columns)


class Expressions:
    """Random conditions as text, most of one type throughout."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        few = [("y",), ("j",), ("y", "j"), ("n",), ("t", "h"), ("f", "g")]
        self.numbers = rng.choice([*few, tuple(NUMBERS), DECIMALS])

    def condition(self, depth: int) -> str:
        pick = self.rng.random()
        if depth and pick < 0.3:
            sides = self.condition(depth - 1), self.condition(depth - 1)
            return f"({sides[0]} {self.rng.choice(['AND', 'OR'])} {sides[1]})"
        if depth and pick < 0.4:
            return f"NOT ({self.condition(depth - 1)})"
        compare = self.rng.choice(["=", "<>", "<", "<=", ">", ">="])
        side = self.rng.choice([self.number, self.number, self.number, self.text, self.time, self.span, self.day])
        choice = self.rng.random()
        if choice < 0.1:
            return f"{side(1)} IS NULL"
        if choice < 0.2 and side in (self.number, self.text):
            return f"{side(1)} IN ({side(0)}, {side(0)})"
        if choice < 0.25:
            return self.rng.choice(["b", "b = TRUE", "b <> FALSE", "coalesce(b, FALSE)"])
        return f"{side(depth)} {compare} {side(depth)}"

    def number(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.25:
            if rng.random() < 0.6:
                return rng.choice(self.numbers)
            return rng.choice(WHOLE_LITERALS if rng.random() < 0.5 else REAL_LITERALS)
        pick = rng.random()
        if pick < 0.6:
            return f"({self.number(depth - 1)} {rng.choice('+-*/%')} {self.number(depth - 1)})"
        if pick < 0.7:
            return f"{rng.choice(['abs', 'abs', 'log10'])}({self.number(depth - 1)})"
        if pick < 0.75:
            return f"(- {self.number(depth - 1)})"
        if pick < 0.8:
            return rng.choice(["hour(at)", "dayofweek(at)", "dayofweek(d)", "hour(bt) * 1000000000"])
        call = rng.choice(["coalesce", "least", "greatest"])
        return f"{call}({self.number(depth - 1)}, {self.number(depth - 1)})"

    def text(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.5:
            return rng.choice(["s", "u", "s", "u", "'a'", "'STRASSE'", "'ss'", "'ß'", "'b1'", "'n123'"])
        call = rng.choice(["lower", "upper", "lower", "coalesce", "least", "greatest"])
        inner = self.text(depth - 1)
        return f"{call}({inner})" if call in ("lower", "upper") else f"{call}({inner}, {self.text(depth - 1)})"

    def time(self, depth: int) -> str:
        literals = ["TIMESTAMP '2024-02-29T12:00:00Z'", "TIMESTAMP '1500-01-01T00:00:00Z'"]
        one = self.rng.choice(["at", "bt", "bt", *literals])
        pick = self.rng.random()
        if depth > 0 and pick < 0.3:
            return f"({one} {self.rng.choice('+-')} {self.duration()})"
        if depth > 0 and pick < 0.5:
            return f"{self.rng.choice(['coalesce', 'least', 'greatest'])}({one}, {self.time(0)})"
        return one

    def span(self, depth: int) -> str:
        return self.duration() if depth <= 0 or self.rng.random() < 0.4 else f"(at - {self.rng.choice(['bt', 'at'])})"

    def duration(self) -> str:
        return self.rng.choice(["1 second", "5 minutes", "1 day", "3000 days", "3000000 days"])

    def day(self, depth: int) -> str:
        return "d" if self.rng.random() < 0.7 else "coalesce(d, d)"


def rules(rng: random.Random, number: int) -> Iterator[Rule]:
    names = list(COLUMNS)
    for at in range(number):
        kind = rng.choice(["row"] * 5 + ["range"] * 3 + ["not_null", *KINDS[2:]])
        name = rng.choice(names)
        rule = Rule(f"rule_{at}", kind, (name,))  # type: ignore[arg-type]
        if kind == "row":
            text = Expressions(rng).condition(2)
            try:
                condition = parse_row_condition(text)
                check_types(condition, {name: family(kind) for name, (kind, _, _) in COLUMNS.items()})
            except TrendlakeError:
                continue
            yield replace(rule, columns=(), text=text, condition=condition)
        elif kind == "not_null":
            yield rule
        elif kind in ("in_set", "not_missing"):
            values = tuple(listed(rng, name))
            absent = (None,) if kind == "not_missing" and rng.random() < 0.5 else ()
            if values:
                yield replace(rule, values=(*values, *absent))
        elif kind == "pattern":
            text = rng.choice([text for text in PATTERNS if _supported(text)])
            yield replace(rule, columns=(rng.choice("su"),), text=text)
        elif kind == "length":
            low, high = sorted(rng.sample(range(5), 2))
            yield replace(rule, columns=(rng.choice("su"),), low=rng.choice([None, low]), high=high)
        elif kind == "items":
            low, high = sorted(rng.sample(range(4), 2))
            yield replace(rule, columns=(rng.choice("wwv"),), low=low, high=rng.choice([None, high]))
        elif kind == "distinct_items":
            yield replace(rule, columns=(rng.choice("wwv"),))
        else:
            logical = LOGICAL_OF[re.split(r"\(", COLUMNS[name][0])[0]]
            if kind == "multiple" and logical in ("integer", "number"):
                yield replace(rule, high=rng.choice([1, 2, 3, 300, 2**40, 0.1, 0.5, 1.5, 1e-3]))
            elif kind == "range" and logical in ("integer", "number", "date", "timestamp"):
                low, high = bound(rng, name), bound(rng, name)
                strict = rng.random() < 0.5, rng.random() < 0.5
                yield replace(rule, low=low, high=high, low_strict=strict[0], high_strict=strict[1])


def listed(rng: random.Random, name: str) -> Sequence[Any]:
    """Values as YAML gives them."""
    there = [value for value in COLUMNS[name][2] if value is not None and value == value]
    if isinstance(there[0], Decimal):
        there = [0, 1, 3, 0.3, 0.1, -1.5, 10**20, *([int(one) for one in there if abs(one) < 10**18])]
    if isinstance(there[0], datetime) and rng.random() < 0.5:
        there = [moment.replace(tzinfo=None) for moment in there]
    return rng.sample(there, rng.choice([1, 2, min(len(there), 12)]))


def bound(rng: random.Random, name: str) -> Any:
    values = COLUMNS[name][2]
    if isinstance(values[0], datetime | date):
        return rng.choice([value for value in values if value is not None])
    whole_numbers = [0, 1, -3, 7, 16777217, 2**31, 2**53, 2**53 + 1, -(2**53) - 1]
    return rng.choice([*whole_numbers, 0.1, 0.3, 1.5, 1e300, float("inf")])


def parts(rng: random.Random) -> list[list[int]]:
    few = [rng.sample(range(ROWS), 3) for _ in range(4)]
    return [list(range(ROWS)), [], *few, *[[row] for row in rng.sample(range(ROWS), 16)]]


def test_every_type_of_a_contract_is_tried() -> None:
    tried = {re.split(r"\(", kind)[0] for kind, _, _ in COLUMNS.values()}
    assert tried == set(LOGICAL_OF) - {"varchar", "char", "array"}  # those are read as texts; lists are in `LISTS`


@pytest.mark.long
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random_rules(spark: SparkSession, seed: int) -> None:
    rng = random.Random(f"rules {seed}")
    rows = table(rng)
    every = list(rules(rng, RULES))
    assert len(every) > RULES * 0.5
    in_workers = spark.createDataFrame(rows).coalesce(1).select(*[q.is_good(rule).alias(rule.name) for rule in every])
    by_spark = in_workers.toArrow()
    judged: Counter[str] = Counter()
    for rule in every:
        expected = keep(rule, rows).tolist()
        judged[rule.kind] += len(expected)
        assert by_spark[rule.name].to_pylist() == expected, rule
        for part in parts(rng):
            alone = keep(rule, rows.take(pa.array(part, pa.int64())))
            assert alone.tolist() == [expected[row] for row in part], rule
        assert keep(rule, with_dictionaries(rows)).tolist() == expected, rule
    assert all(judged[kind] > 20 for kind in KINDS), judged


def with_dictionaries(rows: pa.Table) -> pa.RecordBatch:
    """The same rows, of which texts come as dictionaries, as files are read."""
    (batch,) = rows.combine_chunks().to_batches()
    texts = [name for name in batch.schema.names if pa.types.is_string(batch.column(name).type)]
    columns = {name: batch.column(name) for name in batch.schema.names}
    return pa.RecordBatch.from_pydict(columns | {name: columns[name].dictionary_encode() for name in texts})


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_regular_expressions_are_javas(spark: SparkSession, seed: int) -> None:
    """Over texts with every end of a line, at their end and within."""
    rng = random.Random(f"regular expressions {seed}")
    drawn = {text for _ in range(400) if _supported(text := regular_expression(rng, 2))}
    expressions = sorted({*filter(_supported, PATTERNS), *drawn})
    pieces = ["", "a", "b", "ab", "A1", "\n", "\r", "\r\n", "\x0b", "\x85", "\u2028", "é", "-", " ", "\U0001f600"]
    texts = [*filter(None, TEXTS), *("".join(rng.choices(pieces, k=3)) for _ in range(150))]
    rows = pa.table({"s": pa.array(texts, pa.string())})
    java = spark.createDataFrame(rows).coalesce(1).select(*[sf.col("s").rlike(text) for text in expressions]).toArrow()
    assert len(expressions) > 100
    for text, column in zip(expressions, java.columns, strict=True):
        ours = keep(Rule("r", "pattern", ("s",), text=text), rows).tolist()
        assert [one for one, a, b in zip(texts, ours, column.to_pylist(), strict=True) if a != b] == [], text


def regular_expression(rng: random.Random, depth: int) -> str:
    """A random one, of which many are refused."""
    atoms = ["a", "b", "1", "-", " ", ".", r"\d", r"\w", r"\s", r"\S", r"\W", r"\n", r"\x0d", "[ab]", "[^a]", r"[\s-]"]
    atoms += [r"[\S]", r"[^\s]", "[a-z0-9]", "[ -~]", "é", r"\.", "[^^]", "[+&]", "]", "}"]
    parts = []
    for _ in range(rng.randint(1, 3)):
        part = rng.choice(atoms)
        if depth and rng.random() < 0.3:
            part = f"({rng.choice(['', '?:'])}{regular_expression(rng, depth - 1)})"
        parts.append(part + rng.choice(["", "", "", "*", "+", "?", "{2}", "{0,2}", "+?", "*?"]))
    text = rng.choice(["", "", "^"]) + "".join(parts) + rng.choice(["", "", "$"])
    text = f"(?s){text}" if depth == 2 and rng.random() < 0.1 else text
    return f"{text}|{regular_expression(rng, depth - 1)}" if depth and rng.random() < 0.2 else text


def _supported(text: str) -> bool:
    try:
        expression_of(text)
    except TextError:
        return False
    return True
