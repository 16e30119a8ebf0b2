"""What a rule means for odd values of each type, and which rules a contract may have."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.conftest import ROOT
from trendlake.cep_core import compile_plan, load_pattern
from trendlake.cep_core.errors import TextError
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.contracts.pattern_source import sources_of
from trendlake.pipelines.contracts.regular_expressions import expression_of
from trendlake.pipelines.contracts.results import contract_name, results_contract
from trendlake.pipelines.contracts.row_conditions import parse_row_condition
from trendlake.pipelines.contracts.rules import Rule
from trendlake.pipelines.errors import ContractErrors
from trendlake.pipelines.project.paths import find_project
from trendlake.pipelines.rules.keep import keep

TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "decimal(10,2)": pa.decimal128(10, 2),
    "decimal(38,0)": pa.decimal128(38, 0),
    "array<string>": pa.list_(pa.string()),
}
ORDINARY: dict[str, Any] = {
    "string": "A",
    "tinyint": 1,
    "smallint": 1,
    "int": 1,
    "bigint": 1,
    "float": 1.0,
    "double": 1.0,
    "boolean": True,
    "date": date(2024, 1, 1),
    "timestamp": datetime(2024, 1, 1, tzinfo=UTC),
    "decimal(10,2)": Decimal("1.00"),
    "decimal(38,0)": Decimal(1),
    "array<string>": ["A"],
}


ROW_RULE = 'integer\n        quality: [{{type: custom, engine: trendlake, name: r, implementation: "{}"}}]'


def judged(rule: Rule, columns: dict[str, tuple[str, list[Any]]]) -> list[bool]:
    """Which rows keep a rule; they are given by column, as type and values."""
    rows = pa.RecordBatch.from_pydict({name: pa.array(values, TYPES[kind]) for name, (kind, values) in columns.items()})
    return list(keep(rule, rows).tolist())


def row_rule(text: str) -> Rule:
    return Rule("r", "row", (), text=text, condition=parse_row_condition(text))


def test_sums_of_decimals_are_exact_and_beside_a_function_doubles() -> None:
    money = {
        name: ("decimal(10,2)", [Decimal(value)]) for name, value in zip("abc", ("0.10", "0.20", "0.30"), strict=True)
    }
    assert judged(row_rule("a + b = c"), money) == [True]
    assert judged(row_rule("abs(a + b - c) = 0"), money) == [False]
    assert judged(row_rule("abs(a + b - c) < 1e-9"), money) == [True]
    assert judged(row_rule("a = b"), money) == [False]
    assert judged(row_rule("a >= 0 AND a < 0.2"), money) == [True]


def test_a_multiple_of_a_decimal_is_exact_and_of_a_double_is_not() -> None:
    cents = Rule("r", "multiple", ("m",), high=0.1)
    assert judged(cents, {"m": ("decimal(10,2)", [Decimal("0.30"), Decimal("0.35"), None])}) == [True, False, True]
    large = Rule("r", "multiple", ("m",), high=10)
    assert judged(large, {"m": ("decimal(38,0)", [Decimal(10**37), Decimal(10**37 + 1)])}) == [True, False]
    values = {"m": ("float", [0.1, 0.5, 0.0, 0.25, None])}
    assert judged(cents, values) == [False, False, True, False, True]
    assert judged(Rule("r", "multiple", ("v",), high=300), {"v": ("tinyint", [0, 3])}) == [True, False]


@pytest.mark.parametrize(
    ("low", "high"), [(2**53 + 1, None), (None, 2**53), (1.5, None), (None, 2.0**53), (2**70, None)]
)
def test_whole_numbers_are_compared_exactly_with_bounds(low: float | None, high: float | None) -> None:
    values = [0, 1, 2, 2**53, 2**53 + 1, -(2**63), 2**63 - 1]
    within = [(low is None or value >= low) and (high is None or value <= high) for value in values]
    assert judged(Rule("r", "range", ("k",), low=low, high=high), {"k": ("bigint", values)}) == within
    decimals = {"k": ("decimal(38,0)", [Decimal(value) for value in values])}
    if not isinstance(low, float) and not isinstance(high, float):
        assert judged(Rule("r", "range", ("k",), low=low, high=high), decimals) == within


def test_a_row_of_which_a_condition_cannot_be_computed_breaks_it() -> None:
    """It decides nothing about other rows. A sum beyond 64 bits is none, not NULL; nor is a whole number that is no
    double beside a double."""
    columns = {"k": ("bigint", [2**62, 1, 2**62, None, 2**53 + 1]), "x": ("double", [1.0, 2.0, None, 1.0, 1.0])}
    assert judged(row_rule("k * 4 > 0 OR k * 4 IS NULL"), columns) == [False, True, False, True, True]
    assert judged(row_rule("k < x OR x IS NULL"), columns) == [False, True, False, False, False]
    assert judged(row_rule("x < 99999999999999999"), columns) == [True, True, False, True, True]
    assert judged(row_rule("x * 9007199254740993 > 0 AND k < 9007199254740994"), columns)[1] is True
    assert judged(row_rule("k > 0"), columns) == [True, True, True, False, True]


def test_a_nan_is_above_every_bound_and_unknown_in_a_condition() -> None:
    x = {"x": ("double", [math.nan, 1.0, None, math.inf])}
    assert judged(Rule("r", "range", ("x",), low=0), x) == [True, True, True, True]
    assert judged(Rule("r", "range", ("x",), high=1e300), x) == [False, True, True, False]
    assert judged(Rule("r", "in_set", ("x",), values=(1, math.nan)), x) == [True, True, True, False]
    assert judged(row_rule("x > 0 OR x <= 0"), x) == [False, True, False, True]
    assert judged(row_rule("x IS NULL"), x) == [False, False, True, False]
    assert judged(row_rule("x IS NULL OR x - x = 0"), x) == [False, True, True, False]
    assert judged(row_rule("coalesce(x, 7) = 7"), x) == [True, False, True, False]


def test_zero_has_no_sign() -> None:
    for values in ((0.0,), (-0.0,), (0,), tuple(range(40))):
        assert judged(Rule("r", "in_set", ("x",), values=values), {"x": ("double", [0.0, -0.0, 0.5])})[:2] == [
            True,
            True,
        ]


def test_values_of_lists_are_those_of_the_column() -> None:
    days = {"d": ("date", [date(2024, 1, 31), date(2024, 2, 1), None])}
    for day in (date(2024, 1, 31), "2024-01-31", datetime(2024, 1, 31, tzinfo=UTC)):
        assert judged(Rule("r", "in_set", ("d",), values=(day,)), days) == [True, False, True]
    moments = {"at": ("timestamp", [datetime(2024, 1, 31, 8, tzinfo=UTC), None])}
    for moment in ("2024-01-31T08:00:00Z", "2024-01-31T09:00:00+01:00", datetime(2024, 1, 31, 8)):
        assert judged(Rule("r", "not_missing", ("at",), values=(moment, None)), moments) == [False, False]
    longer = {"m": ("decimal(38,0)", [Decimal(10**20), Decimal(10**20 + 1)])}
    assert judged(Rule("r", "in_set", ("m",), values=(10**20,)), longer) == [True, False]
    assert judged(Rule("r", "in_set", ("n",), values=(1.5, 2.0)), {"n": ("int", [1, 2])}) == [False, True]


@pytest.mark.parametrize("text", ["straße", "STRASSE"])
def test_letters_have_the_case_of_patterns(text: str) -> None:
    assert judged(row_rule("upper(place) = 'STRASSE'"), {"place": ("string", [text])}) == [text.isascii()]


def test_logarithms() -> None:
    rule = row_rule("n IS NULL OR n = 0 OR abs(log10(abs(n)) - l) <= 1e-9 * greatest(1, l)")
    counts = [Decimal(8), Decimal(10**37), Decimal(0), Decimal(-8), None]
    near = {"n": ("decimal(38,0)", counts), "l": ("double", [0.9030899869919435, 37.0, None, 0.90309, 1.0])}
    assert judged(rule, near) == [True, True, True, False, True]
    assert judged(row_rule("log10(n) > 1"), {"n": ("decimal(38,0)", [Decimal(11), Decimal(-1)])}) == [True, False]
    assert judged(row_rule("log10(n) IN (2, 3)"), {"n": ("int", [100, 10])}) == [True, False]


def test_texts_that_are_no_utf_8_are_read_as_java_reads_them() -> None:
    raw = pa.array([b"\xff", b"\xef\xbf\xbd", b"a\xc3b", None], pa.binary())
    rows = pa.table({"s": pa.Array.from_buffers(pa.string(), 4, raw.buffers())})
    assert keep(Rule("r", "length", ("s",), high=1), rows).tolist() == [True, True, False, True]
    assert keep(Rule("r", "pattern", ("s",), text="^.$"), rows).tolist() == [True, True, False, True]
    assert keep(Rule("r", "in_set", ("s",), values=("\ufffd",)), rows).tolist() == [False, True, False, True]
    assert keep(row_rule("s = 'a\ufffdb'"), rows).tolist() == [False, False, True, False]


def test_the_end_of_a_line() -> None:
    texts = ["a", "a\n", "a\r\n", "a\n\n", "a\nb", "a\u2028"]
    for text, expected in (("a$", [1, 1, 1, 0, 0, 1]), ("^a.", [0, 0, 0, 0, 0, 0]), (r"^a\s$", [0, 1, 0, 1, 0, 0])):
        assert judged(Rule("r", "pattern", ("s",), text=text), {"s": ("string", texts)}) == [
            bool(one) for one in expected
        ]


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "^[A-Z][A-Z0-9]*$",
        "^N[0-9A-Z]{2,5}$",
        r"^\d{4}-\d{2}$",
        "(a|b)+1?",
        r"[\w.-]+@[\w-]+",
        "^[A-ZÄ]+$",
        "€",
        "^[ -~]*$",
        r"\t",
        r"\x41",
        "(a|b$)",
        "a]",
        "^[a-z]+(-[a-z]+)*$",
        r"^(\d{1,3}\.){3}\d+$",
    ],
)
def test_regular_expressions_of_one_meaning(pattern: str) -> None:
    assert expression_of(pattern)


@pytest.mark.parametrize(
    ("pattern", "offset", "what"),
    [
        ("(?i)a", 0, "a flag"),
        (r"a\bb", 1, "a boundary"),
        ("[a[b]]", 0, "a class within a class"),
        ("a++", 2, "a possessive quantifier"),
        ("b(?=a)", 1, "look-around"),
        ("(?<!a)b", 0, "look-around"),
        (r"\p{L}", 0, "a Unicode class"),
        ("[a-z&&[^b]]", 0, "an intersection"),
        (r"(a)\1", 3, "a back reference"),
        ("(?>a)", 0, "an atomic group"),
        ("(?<n>a)", 0, "a group with a name"),
        (r"\Qa", 0, "a quotation"),
        ("(a*)*", 4, "may be empty"),
        ("(a|)+", 4, "may be empty"),
        ("(^)*", 3, "may be empty"),
        ("a**", 2, "two quantifiers"),
        ("{2}", 0, "a quantifier of nothing"),
        ("a{2", 1, "a brace"),
        ("[z-a]", 0, "no range"),
        ("a{3,2}", 1, "go down"),
        ("()*", 2, "may be empty"),
        ("(a", 0, "without its"),
        ("a)", 1, "without its"),
        ("[^", 0, "a class"),
        ("[a-z-9]", 0, "no range"),
        ("a{,2}", 1, "a brace"),
        ("|*", 1, "of nothing"),
        ("a{1001}", 1, "a brace"),
        ("a$b", 2, "followed by more"),
        ("(a$)b", 4, "followed by more"),
        ("((a{99}){99}){99}", 0, "too large"),
        ("(^a?)+", 5, "may be empty"),
        (r"\R", 0, "a boundary"),
        (r"\h", 0, "an escape"),
    ],
)
def test_other_regular_expressions_are_refused_by_name_and_place(pattern: str, offset: int, what: str) -> None:
    with pytest.raises(TextError, match=what) as refusal:
        expression_of(pattern)
    assert refusal.value.offset == offset


CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: t
version: 1.0.0
status: active
schema:
  - name: t
    properties:
      - {name: s, logicalType: string}
      - {name: n, logicalType: integer}
      - {name: at, logicalType: timestamp}
      - name: x
        logicalType: RULED
"""


@pytest.mark.parametrize(
    ("column", "what", "place"),
    [
        ("string\n        logicalTypeOptions: {pattern: '^a(?=b)'}", "has look-around", (14, 42)),
        (
            "string\n        quality: [{metric: invalidValues, arguments: {pattern: a++}, mustBe: 0}]",
            "possessive",
            (14, 66),
        ),
        (
            "string\n        quality: [{metric: invalidValues, arguments: {validValues: [1]}, mustBe: 0}]",
            "is a text, not 1",
            None,
        ),
        (
            "integer\n        quality: [{metric: invalidValues, arguments: {pattern: a}, mustBe: 0}]",
            "has no texts",
            None,
        ),
        (
            "integer\n        quality: [{metric: missingValues, arguments: {missingValues: [n/a]}, mustBe: 0}]",
            "a number",
            None,
        ),
        (ROW_RULE.format("x > 'a'"), "cannot compare", (14, 79)),
        (ROW_RULE.format("at > '2024-01-01'"), "cannot compare", (14, 79)),
        (ROW_RULE.format("x + 1"), "true or false", (14, 79)),
        (ROW_RULE.format("y > 1"), "no column 'y'", (14, 79)),
        (ROW_RULE.format("log10(s) > 1"), "log10 takes 1 number", (14, 79)),
    ],
)
def test_a_rule_that_does_not_go_with_its_column_is_a_mistake_of_the_contract(
    tmp_path: Path, column: str, what: str, place: tuple[int, int] | None
) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(CONTRACT.replace("RULED", column))
    with pytest.raises(ContractErrors, match=what) as refusal:
        load_contract(path, events=False)
    (error,) = refusal.value.errors
    assert error.place is not None
    assert place is None or (error.place.line, error.place.column) == place


def test_default_missing_values_go_with_every_type(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(CONTRACT.replace("RULED", "integer\n        quality: [{metric: missingValues, mustBe: 0}]"))
    (rule,) = load_contract(path, events=False).rules
    assert judged(rule, {"x": ("int", [1, None])}) == [True, False]


def test_every_rule_of_the_projects_sources() -> None:
    """Of no rows and of ordinary ones; as many rules as ever."""
    files = [file for file in (ROOT / "data_contracts").glob("*.yaml") if not file.name.startswith("results_")]
    assert {file.stem: count_of(load_contract(file)) for file in files} == {
        "closes": 11,
        "cluster": 12,
        "detections": 6,
        "feeds": 7,
        "flights": 27,
        "linear_road": 12,
        "posts": 10,
        "quotes": 11,
        "readings": 7,
        "retail": 9,
        "rumor": 24,
        "shipments": 11,
        "shop_customers": 4,
        "shop_orders": 9,
        "shop_payments": 11,
        "stock": 16,
        "trades": 6,
    }


def count_of(contract: Contract) -> int:
    """The rules of single rows, each of which is asked."""
    rules = [rule for rule in contract.rules if rule.kind not in ("unique", "row_count")]
    for rows in (0, 2):
        table = pa.table({c.name: pa.array([ORDINARY[c.type]] * rows, TYPES[c.type]) for c in contract.columns})
        assert all(len(keep(rule, table)) == rows for rule in rules)
    return len(rules)


def test_every_rule_of_results() -> None:
    files: list[Path] = [*(ROOT / "examples").glob("*/*.yaml"), *(ROOT / "conf" / "patterns").glob("*.yaml")]
    rules = 0
    for file in files:
        pattern = load_pattern(file)
        read = sources_of(find_project(ROOT), pattern)
        plan = compile_plan(pattern, read.schema, read.reference_columns)
        path = ROOT / "data_contracts" / f"{contract_name(plan)}.yaml"
        rules += count_of(results_contract(path, plan, pattern.name))
    assert rules == 335
