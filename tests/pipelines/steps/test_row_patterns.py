"""Kind match_recognize: a run goes back to matches that new rows change; what `strong` holds back."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.flights import all_steps, renamed
from tests.support.promises import agree, replayed
from tests.support.signals import DAY_US, START_US, Signals, signals
from trendlake.cep_core import PatternErrors, TrendlakeError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.results.ledger import read_ledger
from trendlake.pipelines.results.next_windows import next_windows
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

HOUR = DAY_US // 24
RUNS = """\
kind: match_recognize
{keys}
pattern: |
  FROM signals MATCH_RECOGNIZE (
    PARTITION BY place ORDER BY event_time MEASURES COUNT(*) AS n PATTERN (a+) DEFINE a AS event_type = 'A')
"""


def lake_of(spark: SparkSession, folder: Path, keys: str) -> Signals:
    return signals(spark, folder / "project", RUNS.format(keys=keys))


def event(number: int, hour: float, kind: str = "A", place: str = "n") -> dict[str, Any]:
    at = round(START_US + hour * HOUR)
    row = {"event_id": f"e{number}", "event_time": at, "event_type": kind, "place": place, "price": 1, "remark": ""}
    return row


def rows(lake: Signals, run: Run) -> list[tuple[str, int]]:
    table = DeltaTable(lake.warehouse.results(run.name)).to_pyarrow_table(columns=["match_id", "n"])
    return sorted((row["match_id"], row["n"]) for row in table.to_pylist())


@pytest.mark.long
@pytest.mark.parametrize("keys", ["", "within: 30 hours", "within: 20 hours"])
def test_a_run_goes_back_to_open_matches(spark: SparkSession, tmp_path: Path, keys: str) -> None:
    """A match that goes on after midnight leaves the day before for the next, in the run's one commit."""
    lake = lake_of(spark, tmp_path, keys)
    lake.insert([event(1, 20), event(2, 23), event(3, 22, place="s"), event(4, 23, "B", "s")])
    first = lake.run(0, 1, "first")
    all_steps(first)
    assert rows(lake, first) == [("e1", 2), ("e3", 1)]
    lake.insert([event(5, 25), event(6, 26, place="s")])
    second = lake.run(1, 2, "second")
    record = all_steps(second)
    assert rows(lake, second) == [("e1", 3), ("e3", 1), ("e6", 1)]
    assert (record.rows_inserted, record.rows_updated, record.rows_deleted) in ((1, 1, 0), (2, 0, 1))
    agree(lake, lake.run(0, 2, "both"))
    if not keys:  # by Spark
        replayed(lake, second)


def test_a_weak_pattern_corrects_nothing(spark: SparkSession, tmp_path: Path) -> None:
    lake = lake_of(spark, tmp_path, "consistency: weak")
    lake.insert([event(1, 20), event(2, 23)])
    all_steps(lake.run(0, 1, "first"))
    lake.insert([event(3, 25), event(4, 26, "B"), event(5, 27)])
    second = lake.run(1, 2, "second")
    all_steps(second)
    assert rows(lake, second) == [("e1", 2), ("e1", 3), ("e5", 1)]


@pytest.mark.long
def test_strong_waits_until_no_row_can_change_a_match(spark: SparkSession, tmp_path: Path) -> None:
    """The contract allows 6 hours: a pane of 2 hours is published when there is an event 8 hours after its end, by a
    revision and by a run alike."""
    lake = lake_of(spark, tmp_path, "within: 2 hours\nconsistency: strong")
    lake.insert([event(1, 1), event(2, 2.5), event(3, 11.9)])
    run = lake.run(0, 1, "first")
    all_steps(run)
    assert rows(lake, run) == []
    lake.insert([event(4, 12)])
    revise(renamed(run, "revised"))
    assert rows(lake, run) == [("e1", 2)]
    lake.insert([event(5, 40)])
    all_steps(renamed(run, "again"))
    assert rows(lake, run) == [("e1", 2), ("e3", 2)]


@pytest.mark.parametrize("pattern", [("a+", ""), ("a+ $", "within: 1 hour"), ("a", "within: 1 hour")])
def test_strong_is_refused_where_any_row_may_change_a_match(
    spark: SparkSession, tmp_path: Path, pattern: tuple[str, str]
) -> None:
    text, keys = pattern
    lake = lake_of(spark, tmp_path, f"consistency: strong\n{keys}")
    written = Path(lake.pattern).read_text().replace("(a+)", f"({text})")
    if text == "a":
        written = written.replace("= 'A'", "= NEXT(event_type)")
    Path(lake.pattern).write_text(written)
    with pytest.raises(PatternErrors, match="any later row may") as raised:
        lake.run(0, 1, "first")
    assert raised.value.errors[0].code == "NOT_SUPPORTED"


def test_a_column_that_another_one_s_name_hides(spark: SparkSession, tmp_path: Path) -> None:
    """Partitions by columns whose names were exchanged: a changed row is looked for by what it is."""
    lake = lake_of(spark, tmp_path, "")
    text = Path(lake.pattern).read_text()
    swapped = "(SELECT event_type, place AS remark, remark AS place FROM signals)"
    text = text.replace("FROM signals", f"FROM {swapped}").replace("BY place", "BY place, remark")
    Path(lake.pattern).write_text(text)
    lake.insert([event(1, 20) | {"remark": "x"}, event(2, 23) | {"remark": "x"}])
    run = lake.run(0, 1, "first")
    all_steps(run)
    assert rows(lake, run) == [("e1", 2)]
    lake.insert([event(3, 22, "B") | {"remark": "x"}])
    revise(renamed(run, "revised"))
    assert rows(lake, run) == [("e1", 1), ("e2", 1)]
    agree(lake, run)


@pytest.mark.long
def test_an_error_of_a_revision(spark: SparkSession, tmp_path: Path) -> None:
    """This process leaves it to Spark to say what is wrong. What is published stays."""
    lake = lake_of(spark, tmp_path, "")
    path = Path(lake.pattern)
    path.write_text(path.read_text().replace("PATTERN (a+)", "AFTER MATCH SKIP TO b PATTERN (a b?)") + "\n")
    path.write_text(path.read_text().replace("= 'A')", "= 'A', b AS event_type = 'B')"))
    lake.insert([event(1, 20), event(2, 21, "B"), event(3, 22, "B")])
    run = lake.run(0, 1, "first")
    all_steps(run)
    assert rows(lake, run) == [("e1", 2)]
    lake.insert([event(4, 20.5)])
    with pytest.raises(TrendlakeError, match="match e1: AFTER MATCH SKIP TO LAST B") as raised:
        revise(renamed(run, "revised"))
    assert raised.value.code == "SKIP_FAILED"
    assert rows(lake, run) == [("e1", 2)]


@pytest.mark.long
@pytest.mark.parametrize("column", ["place", "level", "rate", "account", "day"])
def test_a_small_revision_reads_the_changed_partitions_only(
    spark: SparkSession, tmp_path: Path, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many events and rows the others have: this process revises. -0.0 is 0.0, and NaN is NULL."""
    lake = lake_of(spark, tmp_path, "")
    path = Path(lake.pattern)
    path.write_text(path.read_text().replace("BY place", f"BY {column}"))
    few, others = {
        "place": (("n",), ("s", None)),
        "level": ((-0.0, 0.0), (1.5, None)),
        "rate": ((None, float("nan")), (0.0, 1.5)),
        "account": ((Decimal(2**53),), (Decimal(2**53 + 1), None)),
        "day": ((date(1500, 1, 1),), (date(2026, 1, 1), None)),
    }[column]
    many = [event(100 + n, n / 10, "AB"[n % 2]) | {column: others[n % 4 // 2]} for n in range(200)]
    lake.insert([*many, event(1, 9) | {column: few[0]}, event(2, 11) | {column: few[-1]}])
    run = lake.run(0, 1, "first")
    all_steps(run)
    monkeypatch.setattr(limits, "REVISED", 10)
    lake.insert([event(3, 10, "B") | {column: few[0]}, event(4, 12) | {column: few[-1]}])
    record = revise(renamed(run, "revised"))
    assert record.road == "here"
    assert (record.rows_inserted, record.rows_updated, record.rows_deleted) == (1, 1, 0)
    assert [row for row in rows(lake, run) if len(row[0]) == 2] == [("e1", 1), ("e2", 2)]
    agree(lake, run)


AROUND = {
    "no bound": ("", "PATTERN (a+) DEFINE a AS event_type = 'A'"),
    "within": ("within: 30 minutes", "PATTERN (a b*) DEFINE a AS price > 0, b AS price >= PREV(price)"),
    "to a variable": (
        "within: 30 minutes",
        "AFTER MATCH SKIP TO b PATTERN (a a b) DEFINE b AS NEXT(price) >= PREV(a.price)",
    ),
    "at the edges": (
        "within: 30 minutes",
        "PATTERN (^ a | a b $ | b c) DEFINE a AS price > 1, b AS price > PREV(price), c AS price < 6",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", AROUND)
def test_a_small_revision_reads_the_rows_around_a_change(
    spark: SparkSession, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rows their partition has: this process revises."""
    keys, clause = AROUND[name]
    lake = lake_of(spark, tmp_path, keys)
    path = Path(lake.pattern)
    path.write_text(path.read_text().replace("PATTERN (a+) DEFINE a AS event_type = 'A'", clause))
    lake.insert([event(100 + n, n / 20, "AB"[n * n % 3 % 2]) | {"price": n * n % 7} for n in range(400)])
    run = lake.run(0, 1, "first")
    all_steps(run)
    monkeypatch.setattr(limits, "REVISED", 250)
    lake.insert([event(1, 10.01) | {"price": 5}])
    lake.delete(event_id="e305")
    record = revise(renamed(run, "revised"))
    assert record.road == "here"
    assert (record.rows_inserted, record.rows_updated, record.rows_deleted) != (0, 0, 0)
    agree(lake, run)


@pytest.mark.parametrize(("keys", "last"), [("", 2), ("within: 1 day", 2), ("within: 1 day\nconsistency: strong", 1)])
def test_the_windows_of_a_run_without_an_interval(spark: SparkSession, tmp_path: Path, keys: str, last: int) -> None:
    """Those that the newest event has passed, though later rows may change them; with `strong` none such."""
    lake = lake_of(spark, tmp_path, keys)
    lake.insert([event(1, 1), event(2, 60)])  # the contract allows 6 hours
    run = lake.run(0, 1, "first")
    windows = next_windows(
        run, read_ledger(run.lake, run.name, run.plan, "signals"), Versions.one(lake.version())
    ).windows
    assert windows[-1] == run.plan.windows.after(START_US) + last - 1
