"""Rules that this process once judged otherwise than Spark, and those it must still judge itself: without them a small
revision is Spark's, which takes ten times as long."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cep_core import compile_plan, load_pattern
from pipelines.contracts.contract import Column, Contract, load_contract
from pipelines.contracts.results import contract_name, results_contract
from pipelines.contracts.row_conditions import parse_row_condition
from pipelines.contracts.rules import Rule
from pipelines.quality.local_regex import means_the_same
from pipelines.quality.local_rules import kept_rows
from tests.conftest import ROOT

TYPES: dict[str, pa.DataType] = {
    "string": pa.string(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"), "decimal(10,2)": pa.decimal128(10, 2),
    "decimal(38,0)": pa.decimal128(38, 0), "array<string>": pa.list_(pa.string()),
}  # fmt: skip
ORDINARY: dict[str, Any] = {
    "string": "A", "tinyint": 1, "smallint": 1, "int": 1, "bigint": 1, "float": 1.0, "double": 1.0, "boolean": True,
    "date": date(2024, 1, 1), "timestamp": datetime(2024, 1, 1, tzinfo=UTC), "decimal(10,2)": Decimal("1.00"),
    "decimal(38,0)": Decimal(1), "array<string>": ["A"],
}  # fmt: skip


def judged(rule: Rule, columns: dict[str, tuple[str, list[Any]]]) -> list[bool] | None:
    """What this process says of rows that are given by column, as type and values."""
    table = pa.table({name: pa.array(values, TYPES[kind]) for name, (kind, values) in columns.items()})
    contract = Contract("t", "1", tuple(Column(name, kind, False) for name, (kind, _) in columns.items()), (), (), {})
    mask = kept_rows(rule, table, contract)
    return None if mask is None else list(mask.tolist())


def row_rule(text: str) -> Rule:
    return Rule("r", "row", (), text=text, condition=parse_row_condition(text))


def test_sums_of_decimals_are_sparks() -> None:
    money = {
        name: ("decimal(10,2)", [Decimal(value)]) for name, value in zip("abc", ("0.10", "0.20", "0.30"), strict=True)
    }
    assert judged(row_rule("a + b = c"), money) is None
    assert judged(row_rule("a = b"), money) is None
    assert judged(row_rule("a >= 0 AND a < 0.2"), money) == [True]


def test_remainders_of_floats_are_those_of_doubles() -> None:
    rule = Rule("r", "multiple", ("f",), high=0.1)
    assert judged(rule, {"f": ("float", [0.1, 0.5, 0.0, 0.25, None])}) == [False, False, True, False, True]


@pytest.mark.parametrize("text", ["straße", "\u0131", "Σ"])
def test_letters_outside_ascii_are_sparks(text: str) -> None:
    rule = row_rule("upper(place) = 'STRASSE' OR upper(place) = 'X'")
    assert judged(rule, {"place": ("string", [text])}) is None
    assert judged(rule, {"place": ("string", ["x", "y", None])}) == [True, False, False]


def test_no_number_is_too_large_for_the_evaluator() -> None:
    """A divisor beyond a column's type; whole numbers that are no doubles; what overflows 64 bits."""
    assert judged(Rule("r", "multiple", ("v",), high=300), {"v": ("tinyint", [0, 3])}) == [True, False]
    beside = {"k": ("bigint", [2**53 + 1]), "x": ("double", [1.0])}
    assert judged(row_rule("k < x OR x IS NULL"), beside) is None
    assert judged(row_rule("k * k * k > 0"), {"k": ("bigint", [2**62])}) is None
    assert judged(row_rule("hour(at) * 1000000000 > 0"), {"at": ("timestamp", [ORDINARY["timestamp"]])}) is None
    assert judged(Rule("r", "range", ("k",), low=2**70), {"k": ("bigint", [1])}) is None


def test_logarithms_count_where_their_last_digits_do_not() -> None:
    rule = row_rule("n IS NULL OR n = 0 OR abs(log10(abs(n)) - l) <= 1e-9 * greatest(1, l)")
    counts = [Decimal(8), Decimal(10**37), Decimal(0), Decimal(-8), None]
    near = {"n": ("decimal(38,0)", counts), "l": ("double", [0.9030899869919435, 37.0, None, 0.90309, 1.0])}
    assert judged(rule, near) == [True, True, True, False, True]
    assert judged(rule, near | {"l": ("double", [0.9030899879919436] * 5)}) is None
    assert judged(row_rule("log10(n) = 1"), {"n": ("decimal(38,0)", [Decimal(10)])}) is None
    assert judged(row_rule("log10(n) > 1"), {"n": ("decimal(38,0)", [Decimal(11), Decimal(-1)])}) == [True, False]


def test_texts_that_are_no_utf_8_are_sparks() -> None:
    text = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    contract = Contract("t", "1", (Column("s", "string", False),), (), (), {})
    assert kept_rows(Rule("r", "length", ("s",), low=1), pa.table({"s": text}), contract) is None


@pytest.mark.parametrize(
    "pattern",
    ["", "^[A-Z][A-Z0-9]*$", "^N[0-9A-Z]{2,5}$", r"^\d{4}-\d{2}$", "(a|b)+1?", r"[\w.-]+@[\w-]+", "^[A-ZÄ]+$"],
)
def test_regular_expressions_of_one_meaning(pattern: str) -> None:
    assert means_the_same(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["(?i)a", r"\bb", "[a[b]]", "a++", "(?=a)", r"\p{L}", "[a-z&&[^b]]", r"(a)\1", "(a*)*", "(a|)+", "(^)*", "a**",
     "{2}", "a{2", "[z-a]", "a{3,2}", "()*", "(a", "a)", "[]a]", "[^]", "[a-z-9]", "a{,2}", "|*", "a{1001}"],
)  # fmt: skip
def test_regular_expressions_of_javas_alone(pattern: str) -> None:
    assert not means_the_same(pattern)


def unjudged(contract: Contract) -> tuple[int, list[str]]:
    """How many rules of single rows a contract has, and which of them are not judged here of no rows, or of ordinary
    ones."""
    rules = [rule for rule in contract.rules if rule.kind not in ("unique", "row_count")]
    names: list[str] = []
    for rows in (0, 2):
        table = pa.table({c.name: pa.array([ORDINARY[c.type]] * rows, TYPES[c.type]) for c in contract.columns})
        names += [rule.name for rule in rules if kept_rows(rule, table, contract) is None and rule.name not in names]
    return len(rules), names


def test_every_rule_of_the_projects_sources_is_judged_here() -> None:
    files = [file for file in (ROOT / "data_contracts").glob("*.yaml") if not file.name.startswith("results_")]
    counted = {file.stem: unjudged(load_contract(file)) for file in files}
    assert {name: names for name, (_, names) in counted.items() if names} == {}
    assert {name: count for name, (count, _) in counted.items()} == {
        "closes": 11, "cluster": 12, "detections": 6, "feeds": 7, "flights": 27, "linear_road": 12, "posts": 10,
        "quotes": 11, "readings": 7, "retail": 9, "rumor": 24, "shipments": 11, "stock": 15, "trades": 6,
    }  # fmt: skip


def test_every_rule_of_results_is_judged_here() -> None:
    files: list[Path] = [*(ROOT / "examples").glob("*/*.yaml"), *(ROOT / "conf" / "patterns").glob("*.yaml")]
    rules, sparks = 0, []
    for file in files:
        pattern = load_pattern(file)
        schema = load_contract(ROOT / "data_contracts" / f"{pattern.source}.yaml").event_schema()
        plan = compile_plan(pattern, schema)
        path = ROOT / "data_contracts" / f"{contract_name(plan)}.yaml"
        count, names = unjudged(results_contract(path, plan, pattern.name))
        rules += count
        sparks += names
    assert (rules, sparks) == (307, [])
