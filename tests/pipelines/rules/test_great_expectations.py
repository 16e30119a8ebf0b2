"""One contract, two readers: the quarantine's conditions and Great Expectations agree on every kind of rule."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.contracts.rules import Limit
from trendlake.pipelines.quality.quarantine import BROKEN, annotate, bad_rows, good_rows, is_good, keeping
from trendlake.pipelines.quality.scan import scan, sharing
from trendlake.pipelines.rules import great_expectations
from trendlake.pipelines.rules.great_expectations import (
    judge,
    judge_truth_values,
    judge_truth_values_of,
    judge_without,
    truth_values,
)

pytestmark = pytest.mark.spark

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: odd
version: 1.0.0
status: active
schema:
  - name: odd
    properties:
      - {name: id, logicalType: string, unique: true, required: true, logicalTypeOptions: {minLength: 2, maxLength: 3}}
      - name: "two-words`"
        logicalType: integer
        logicalTypeOptions: {exclusiveMinimum: 0, maximum: 10, multipleOf: 2}
      - {name: x, physicalType: double, logicalTypeOptions: {minimum: -1.5, exclusiveMaximum: 1.5}, logicalType: number}
      - name: at
        logicalType: timestamp
        logicalTypeOptions: {minimum: "2013-01-01T00:00:00Z", exclusiveMaximum: "2013-01-02T00:00:00Z"}
      - {name: day, logicalType: date, logicalTypeOptions: {minimum: "2013-01-01"}}
      - name: kind
        logicalType: string
        quality:
          - {metric: invalidValues, arguments: {validValues: [a, b]}, mustBe: 0}
          - {name: no_placeholder, metric: missingValues, arguments: {missingValues: ["", n/a]}, mustBe: 0}
          - {name: mostly_there, metric: nullValues, mustBeLessThan: 50, unit: percent}
          - {name: letters, metric: invalidValues, arguments: {pattern: "^[a-z]*$"}, mustBe: 0}
    quality:
      - {name: x_below_two, type: custom, engine: trendlake, implementation: "x + 1 < 2"}
      - {name: a_has_day, type: custom, engine: trendlake, implementation: "kind <> 'a' OR day IS NOT NULL"}
      - {name: pair_unique, metric: duplicateValues, arguments: {properties: [kind, day]}, mustBe: 0}
      - {name: enough, metric: rowCount, mustBeGreaterOrEqualTo: 5}
"""
NAMES = ["id", "two-words`", "x", "at", "day", "kind"]
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
ROWS = [
    ("r1", 2, 0.0, NOON, date(2013, 1, 1), "a"),
    ("r2", 3, 1.5, NOON.replace(day=2, hour=0), date(2012, 12, 31), "b"),
    ("r3", 0, float("nan"), NOON, date(2013, 1, 3), "c"),
    ("r4", 10, -1.5, NOON.replace(hour=0), date(2013, 1, 4), "A"),
    ("r5", None, None, None, None, None),
    ("x", 12, 9.0, NOON, date(2013, 1, 5), ""),
    ("long", 4, float("-inf"), NOON, date(2013, 1, 6), "n/a"),
    (None, 4, 0.5, NOON, None, "a"),
    ("r1", 6, 0.25, NOON, date(2013, 1, 8), "b"),
    ("r6", 6, 0.25, NOON, date(2013, 1, 8), "b"),
]


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Contract:
    path: Path = tmp_path_factory.mktemp("contract") / "odd.yaml"
    path.write_text(CONTRACT)
    return load_contract(path, events=False)


@pytest.fixture(scope="module")
def frame(spark: SparkSession, contract: Contract) -> DataFrame:
    types = {column.name: column.type for column in contract.columns}
    ddl = ", ".join(f"`{name.replace('`', '``')}` {types[name]}" for name in NAMES)
    return spark.createDataFrame(ROWS, ddl).persist()


def test_both_readers_count_the_same(frame: DataFrame, contract: Contract) -> None:
    """For every rule of rows, as many rows break it by the split as by the suite."""
    verdicts = {item.name: item for item in judge(frame.toArrow(), contract.rules, "odd")}
    assert list(verdicts) == [rule.name for rule in contract.rules]
    by_row = [rule for rule in contract.rules if rule.kind not in ("unique", "row_count")]
    counts = frame.agg(*[sf.sum((~is_good(rule)).cast("int")).alias(rule.name) for rule in by_row]).collect()[0]
    for rule in by_row:
        assert verdicts[rule.name].data == {"rows": 10, "broken": counts[rule.name]}, rule


def test_what_breaks_which_rule(frame: DataFrame, contract: Contract) -> None:
    """NULL keeps all but required and conditions; NaN is above every bound; sets, bounds, lengths as written."""
    observed = {
        rule.name: [row[0] for row in frame.where(~is_good(rule)).select("id").collect()]
        for rule in contract.rules
        if rule.kind not in ("unique", "row_count")
    }
    assert observed == {
        "id_required": [None],
        "id_length": ["x", "long"],
        "two-words`_range": ["r3", "x"],
        "two-words`_multiple": ["r2"],
        "x_range": ["r2", "r3", "x", "long"],
        "at_range": ["r2"],
        "day_range": ["r2"],
        "kind_valid": ["r3", "r4", "x", "long"],
        "no_placeholder": ["x", "long"],
        "mostly_there": ["r5"],
        "letters": ["r4", "long"],
        "x_below_two": ["r2", "r3", "r5", "x"],
        "a_has_day": ["r5", None],
    }


def test_the_split_loses_nothing(frame: DataFrame, contract: Contract) -> None:
    """Good and bad are the input. Of two rows with one id that differ and break nothing else neither counts; the
    pair of the second with a third row is then none. A rule with room for exceptions sets nothing apart."""
    annotated = annotate(frame, contract.rules).persist()
    good = good_rows(annotated).orderBy("id").collect()
    bad = bad_rows(annotated, "run", 7).collect()
    assert [(row["id"], row["two-words`"]) for row in good] == [("r6", 6)]
    assert len(bad) + len(good) == len(ROWS)
    repeated = [row for row in bad if row["id"] == "r1"]
    assert sorted((row["two-words`"], row["rule"]) for row in repeated) == [(2, "id_unique"), (6, "id_unique")]
    why = "id_unique: another row has the same id and other values, and no sequence says which row counts"
    assert {row["reason"] for row in repeated} == {why}
    rules = {row["rule"] for row in annotated.select(sf.explode(BROKEN).alias("b")).select("b.rule").collect()}
    assert not rules & {"mostly_there", "enough", "pair_unique"}
    annotated.unpersist()


def test_good_rows_by_a_plain_filter(frame: DataFrame, contract: Contract) -> None:
    """Where no row is a duplicate, the rows that keep every rule are those that are given no reason."""
    slow = good_rows(annotate(frame, contract.rules, unique=False)).orderBy("id")
    fast = keeping(frame, contract.rules).orderBy("id").collect()
    assert [row["id"] for row in fast] == ["r1", "r1", "r6"]
    assert fast == slow.collect()
    assert keeping(frame, []).count() == len(ROWS)


@pytest.mark.parametrize("piece", [3, 1000])
def test_rows_that_workers_count_have_the_same_verdicts(
    frame: DataFrame, contract: Contract, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NULL, NaN, duplicates and all, whatever the number of rows that are judged together."""
    monkeypatch.setattr(great_expectations, "PIECE", piece)
    for rows in (frame, frame.limit(0)):
        scanned = scan(rows, contract.rules, [], sf.lit(None), [])
        checks = scanned.checks(scanned.within(), sharing(rows, contract.rules), contract.rules, "odd")
        assert checks == judge(rows.toArrow(), contract.rules, "odd")


def test_verdicts_without_great_expectations(frame: DataFrame, contract: Contract) -> None:
    """A small revision's own count of broken rows gives every verdict that Great Expectations gives, word for word."""
    for rows in (frame, frame.limit(0)):
        assert judge_without(rows.toArrow(), contract.rules) == judge(rows.toArrow(), contract.rules, "odd")


def test_verdicts_of_several_tables_at_once(frame: DataFrame, contract: Contract) -> None:
    """Each has those of its own rows: a key that another table has too is not repeated."""
    good = keeping(frame, contract.rules).dropDuplicates(["id"])
    parts = [part.toArrow() for part in (good, frame, frame.limit(0), good)]
    ends = [sum(part.num_rows for part in parts[: at + 1]) for at in range(len(parts))]
    starts = [0, *ends[:-1]]
    truth = truth_values(pa.concat_tables(parts).combine_chunks(), contract.rules, starts)
    tables = [
        ({name: values[start:end] for name, values in truth.items()}, contract.rules, end - start)
        for start, end in zip(starts, ends, strict=True)
    ]
    alone = [judge(part, contract.rules, "odd") for part in parts]
    assert judge_truth_values_of(tables, "odd") == alone
    assert alone[0] != alone[1]


@pytest.mark.long
@pytest.mark.parametrize("rows", [0, 1, 9])
@pytest.mark.parametrize("broken", [0, 1, 2, 13])
def test_rules_that_no_row_breaks_are_judged_together(contract: Contract, rows: int, broken: int) -> None:
    """Each rule has the verdict that it has alone: of none, one, two or all rules that some row breaks."""
    rng = np.random.default_rng([rows, broken])
    of_rows = [rule.name for rule in contract.rules if rule.kind != "row_count"]
    truth = {name: np.ones(rows, np.bool_) for name in of_rows}
    for name in rng.permutation(of_rows)[:broken]:
        truth[name] = rng.random(rows) < 0.5
    alone = [
        judge_truth_values({rule.name: truth[rule.name]} if rule.name in truth else {}, [rule], "odd", rows)[0]
        for rule in contract.rules
    ]
    assert judge_truth_values(truth, contract.rules, "odd", rows) == alone
    counts = [int(np.count_nonzero(~truth[rule.name])) if rule.name in truth else None for rule in contract.rules]
    assert [check.data.get("broken") for check in alone] == counts
    assert sum(count or 0 for count in counts) > 0 or rows * broken < 9


def test_bounds_on_how_many(frame: DataFrame, contract: Contract) -> None:
    """Percent of rows and numbers of rows are held against their bounds."""
    verdicts = {item.name: item for item in judge(frame.toArrow(), contract.rules, "odd")}
    assert verdicts["mostly_there"].success
    assert verdicts["mostly_there"].expected == "not null; broken by fewer than 50 % of rows"
    assert verdicts["enough"].success
    assert verdicts["enough"].observed == "10 rows"
    assert not verdicts["id_unique"].success
    assert not verdicts["pair_unique"].success


@pytest.mark.parametrize(
    ("operator", "low", "high", "holds"),
    [
        ("must_be", 3, 3, [False, True, False]),
        ("must_not_be", 3, 3, [True, False, True]),
        ("must_be_greater_than", 3, 3, [False, False, True]),
        ("must_be_greater_or_equal_to", 3, 3, [False, True, True]),
        ("must_be_less_than", 3, 3, [True, False, False]),
        ("must_be_less_or_equal_to", 3, 3, [True, True, False]),
        ("must_be_between", 3, 4, [False, True, True]),
        ("must_not_be_between", 3, 4, [True, False, False]),
    ],
)
def test_operators(operator: str, low: float, high: float, holds: list[bool]) -> None:
    assert [Limit(operator, low, high).holds(value) for value in (2, 3, 4)] == holds
