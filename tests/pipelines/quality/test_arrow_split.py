"""The split that a process makes alone is the one that Spark makes: every kind of rule over every kind of value."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pipelines.contracts.contract import Column, Contract
from pipelines.contracts.row_conditions import parse_row_condition
from pipelines.contracts.rules import Kind, Rule
from pipelines.quality import quarantine as q
from pipelines.quality.arrow_split import split

pytestmark = pytest.mark.spark

MOMENTS = [datetime(1582, 1, 1, tzinfo=UTC), datetime(2020, 2, 29, 23, 59, 59, 999999, UTC), None]
VALUES: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "s": ("string", pa.string(), ["", "a", "A", "ab", "b1", "é", "\U0001f600x", "a b", "\u00a0", "N123", "[", None]),
    "lines": ("string", pa.string(), ["a\n", "a\r", "\x0b", "a\u2028", "a", None]),
    "x": ("double", pa.float64(), [0.0, -0.0, 1.5, -3.0, 1e300, float("inf"), -float("inf"), float("nan"), None]),
    "f": ("float", pa.float32(), [0.0, 0.1, -2.5, float("nan"), 3e38, None]),
    "n": ("int", pa.int32(), [0, 1, -4, 7, 2**31 - 1, None]),
    "z": ("int", pa.int32(), [0, -(2**31), 5, None]),
    "k": ("bigint", pa.int64(), [0, 3, -(2**63), 2**63 - 1, 2**53 + 1, None]),
    "m": ("decimal(10,2)", pa.decimal128(10, 2), [Decimal("0.00"), Decimal("-1.50"), Decimal("99999999.99"), None]),
    "b": ("boolean", pa.bool_(), [True, False, None]),
    "d": ("date", pa.date32(), [date(1500, 3, 1), date(2024, 2, 29), None]),
    "at": ("timestamp", pa.timestamp("us", "UTC"), MOMENTS),
}
NUMBERS = ("x", "f", "n", "k", "m")
PATTERNS = (
    "a", "^a", "a$", "^$", "^[a-z]+$", "^N[0-9]{1,5}$", r"\d", r"\s", r"^\w+$", ".", "^.{2}$", "(a|b)+1?", r"\[",
    "[^a]", "a?b*", "x{0,2}$",
)  # fmt: skip
OURS_ALONE = ("(?i)a", r"\bb", "[a[b]]", "a++", "(?=a)", r"\p{L}", "[a-z&&[^b]]", r"(a)\1")
"""Which Arrow's regular expressions do not know, or know otherwise."""
ROWS = ("s = 'a' AND NOT b", "n % 2 = 0", "b AND n > 0", "m > 1")
ROWS_LEFT_TO_SPARK = (
    "x > 0", "x * 2 <= 3", "d < at", "n + 1 > k OR b", "n + 1 > 0", "-k > 0", "-z > 0", "abs(z) >= 1", "abs(k) > 1",
    "abs(m) > 1",
)  # fmt: skip
"""There NaN or a date is compared, Spark's whole numbers overflow and ours do not, or decimals are computed with."""
RANGES_LEFT_TO_SPARK = {(name, 2**53 + 1) for name in ("x", "f", "k", "m")} | {("k", 1.5)}
"""Bounds that one of the two would round."""


def rules() -> list[Rule]:
    rules_drawn = [Rule("", "not_null", (name,)) for name in VALUES]
    for name, (_, _, values) in VALUES.items():
        there = [value for value in values if value is not None]
        if name == "m":
            there = [0, -1.5, 99999999]  # a contract's values are those of YAML
        rules_drawn.append(Rule("", "in_set", (name,), values=tuple(there[:2])))
        rules_drawn.append(Rule("", "not_missing", (name,), values=(*there[1:2], None)))
        rules_drawn.append(Rule("", "not_missing", (name,), values=tuple(there[:1])))
    for name in NUMBERS:
        for low, high in ((0, None), (None, 1.5), (-3, 7), (0.1, 2**53 + 1)):
            for strict in (False, True):
                rules_drawn.append(
                    Rule("", "range", (name,), low=low, high=high, low_strict=strict, high_strict=strict)
                )
        rules_drawn += [Rule("", "multiple", (name,), high=by) for by in (2, 0.5, 3)]
    rules_drawn += [Rule("", "length", ("s",), low=low, high=high) for low, high in ((1, None), (None, 2), (2, 2))]
    rules_drawn += [Rule("", "range", (name,), low=VALUES[name][2][1]) for name in ("at", "d")]
    rules_drawn += [_pattern(text, name) for text in PATTERNS for name in ("s", "lines")]
    rules_drawn += [_pattern(text, "s") for text in OURS_ALONE]
    for text in ROWS + ROWS_LEFT_TO_SPARK:
        rules_drawn.append(Rule("", "row", (), text=text))
    return [replace(rule, name=f"rule_{number}") for number, rule in enumerate(rules_drawn)]


def _pattern(text: str, column: str) -> Rule:
    kind: Kind = "pattern"
    return Rule("", kind, (column,), text=text)


def test_every_rule_of_single_rows(spark: SparkSession) -> None:
    most = max(len(values) for _, _, values in VALUES.values())
    table = pa.table(
        {
            name: pa.array([values[i % len(values)] for i in range(3 * most)], kind)
            for name, (_, kind, values) in VALUES.items()
        }
    )
    columns = tuple(Column(name, type_name, required=False) for name, (type_name, _, _) in VALUES.items())
    every = []
    for rule in rules():
        condition = parse_row_condition(rule.text) if rule.kind == "row" else None
        every.append(replace(rule, condition=condition))
    frame = spark.createDataFrame(table).coalesce(1)
    theirs = frame.select(*[q.is_good(rule).alias(rule.name) for rule in every]).toArrow()
    unjudged: set[Rule] = set()
    for rule in every:
        local = split(table, Contract("t", "1", columns, (rule,), (), {}))
        if local.unjudged:
            unjudged.add(rule)
        else:
            assert [number < 0 for number in local.broken.tolist()] == theirs.column(rule.name).to_pylist(), rule
    assert {rule.text for rule in unjudged if rule.columns == ("s",)} == set(OURS_ALONE)
    assert {rule.columns for rule in unjudged if rule.kind == "pattern"} == {("s",), ("lines",)}
    assert {rule.text for rule in unjudged if rule.kind == "row"} == set(ROWS_LEFT_TO_SPARK)
    assert {(*rule.columns, rule.high) for rule in unjudged if rule.kind == "range"} == RANGES_LEFT_TO_SPARK
    assert {rule.columns for rule in unjudged if rule.kind == "multiple"} == {("m",), ("k",)}
    assert {rule.columns for rule in unjudged if rule.kind in ("in_set", "not_missing")} == {("x",)}  # -0.0
    assert {rule.kind for rule in unjudged} == {"pattern", "row", "range", "multiple", "in_set", "not_missing"}
