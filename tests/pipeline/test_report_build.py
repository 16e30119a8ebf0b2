"""The report of real runs over real Delta tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from pipelines.report import RunNotFoundError, build_report
from pipelines.report import read_results as reading
from pipelines.report.amounts import Amount
from pipelines.report.build import read_facts
from pipelines.report.facts import PatternFacts, ResultFacts, RunFacts
from pipelines.report.read_pattern import read_pattern
from pipelines.report.read_results import read_results
from pipelines.report.read_run import read_quarantine, read_run
from pipelines.runs import Record, append
from tests.pipeline.flights import Lake, all_steps, flight, renamed

pytestmark = pytest.mark.spark

DAY = datetime(2013, 3, 2, tzinfo=UTC)


def snowball(day: int, legs: int, carrier: str = "UA") -> list[dict[str, object]]:
    """`legs` flights of one aircraft, each later than the one before: 2^legs - 1 trends."""
    return [
        flight(
            10 * day + leg,
            f"2013-03-{day:02d}T{8 + leg:02d}:00:00",
            event_id=f"{carrier}-{day}-{leg}",
            carrier=carrier,
            tailnum=f"N1{carrier}",
            dep_delay=10.0 + leg,
        )
        for leg in range(legs)
    ]


def test_a_run_is_reported_with_the_history_before_it(lake: Lake, tmp_path: Path) -> None:
    """Two days, published one after the other: the second's report counts its own and draws both."""
    lake.deliver([*snowball(1, 5), *snowball(2, 3), *snowball(2, 2, "EV")])
    pattern = lake.pattern()
    all_steps(lake.run(pattern, "2013-03-01", "2013-03-02", "one"))
    all_steps(lake.run(pattern, "2013-03-02", "2013-03-03", "two"))
    facts = read_facts(lake.spark, lake.warehouse, Path(pattern), "two")
    assert facts.results is not None
    assert {group.key[0]: group.amount.exact for group in facts.results.top_groups} == {"UA": 7, "EV": 3}
    assert facts.results.headline.exact == 10
    assert [point.amount.exact for point in facts.results.series["UA",]] == [31, 7]
    assert facts.results.measures == ("snowballs", "legs", "worst", "mean")
    assert dict(facts.results.largest[0].values) == {
        "snowballs": Amount.of_count(7),
        "legs": Amount.of_count(12),
        "worst": Amount(12.0),
        "mean": Amount(pytest.approx(11.333, abs=0.01)),
    }
    assert [stage.stage for stage in facts.run.stages] == ["check_source", "compute", "check_results", "publish"]
    assert all(stage.status == "succeeded" for stage in facts.run.stages)
    assert facts.run.checks
    paths = build_report(lake.spark, lake.warehouse, Path(pattern), "two", tmp_path / "reports")
    html = paths.html.read_text(encoding="utf-8")
    assert "UA leads with 7 trends, 70 % of all" in html
    assert facts.run.plan_hash is not None
    assert facts.run.plan_hash in html
    assert paths.png.read_bytes().startswith(b"\x89PNG")


def test_a_report_made_later_shows_what_was_published_then(lake: Lake) -> None:
    """The results are read at the version of the run, not at the newest."""
    lake.deliver(snowball(2, 3))
    run = lake.run(lake.pattern(), "2013-03-02", "2013-03-03", "early")
    all_steps(run)
    lake.deliver([flight(999, "2013-03-02T20:00:00", tailnum="N1UA", dep_delay=50.0)], feed="late")
    all_steps(renamed(run, "late"))
    pattern = Path(lake.pattern())
    early = read_facts(lake.spark, lake.warehouse, pattern, "early").results
    late = read_facts(lake.spark, lake.warehouse, pattern, "late").results
    assert early is not None
    assert late is not None
    assert (early.headline.exact, late.headline.exact) == (7, 15)


def test_rows_that_broke_the_contract_are_shown_as_they_came(lake: Lake) -> None:
    """Of the run's own source version only; by rule and reason, with samples."""
    good = snowball(2, 12)
    bad = [flight(500 + i, "2013-03-02T12:00:00", carrier="<b>&", tailnum=f"N{i}XX") for i in range(1)]
    lake.deliver([*good, *snowball(2, 10, "EV"), *bad])
    all_steps(lake.run(lake.pattern(), "2013-03-02", "2013-03-03", "q"))
    run = read_run(lake.spark, lake.warehouse, "test_pattern", "q")
    found = read_quarantine(lake.spark, lake.warehouse, "flights", run)
    assert (found.rows, found.found, sum(reason.rows for reason in found.reasons)) == (1, 1, 1)
    assert found.samples[0].rule == found.reasons[0].rule
    assert ("carrier", "<b>&") in found.samples[0].values
    other = read_quarantine(lake.spark, lake.warehouse, "flights", replace(run, source_version=99))
    assert (other.rows, other.found) == (1, 0)


def test_an_unknown_run_is_an_error_of_its_own(lake: Lake, tmp_path: Path) -> None:
    """With or without a table of runs."""
    pattern = Path(lake.pattern())
    with pytest.raises(RunNotFoundError, match="no run 'x' of pattern 'test_pattern'"):
        build_report(lake.spark, lake.warehouse, pattern, "x", tmp_path)
    record = Record(run_id="y", pattern="test_pattern", stage="compute")
    append(lake.spark, lake.warehouse, record, status="succeeded", seconds=1.0, started_at=DAY)
    with pytest.raises(RunNotFoundError) as error:
        build_report(lake.spark, lake.warehouse, pattern, "x", tmp_path)
    assert error.value.code == "RUN_NOT_FOUND"


def test_the_last_attempt_of_a_stage_counts(lake: Lake, tmp_path: Path) -> None:
    """A failed attempt is remembered as one; a report of a run that never published can be made."""
    for status, error in (("failed", "[X] <b>boom</b>"), ("succeeded", None)):
        record = Record(run_id="r", pattern="test_pattern", stage="compute", source="flights", windows=3)
        record.interval_from, record.interval_to = _micros(DAY), _micros(DAY + timedelta(days=1))
        append(lake.spark, lake.warehouse, record, status=status, seconds=1.5, started_at=DAY, error=error)
    run = read_run(lake.spark, lake.warehouse, "test_pattern", "r")
    assert [(stage.status, stage.attempts, stage.error) for stage in run.stages] == [("succeeded", 2, None)]
    assert (run.interval_from, run.interval_to, run.windows) == (DAY, DAY + timedelta(days=1), 3)
    paths = build_report(lake.spark, lake.warehouse, Path(lake.pattern()), "r", tmp_path)
    assert "No results have been published yet" in paths.html.read_text(encoding="utf-8")


def test_columns_of_any_name_and_counts_of_any_size(spark: SparkSession, tmp_path: Path) -> None:
    """Group columns with dots, quotes and NULLs, a count of 10^3000, an average, a text, an earlier pattern's rows."""
    schema = st.StructType(
        [
            st.StructField("a.b", st.StringType()),
            st.StructField("c`d", st.IntegerType()),
            st.StructField("window_start", st.TimestampType()),
            st.StructField("window_end", st.TimestampType()),
            st.StructField("mean", st.DoubleType()),
            st.StructField("n", st.DecimalType(38, 0)),
            st.StructField("n_log10", st.DoubleType()),
            st.StructField("note", st.StringType()),
            st.StructField("plan_hash", st.StringType()),
            st.StructField("old_column", st.DoubleType()),
        ]
    )
    window = (DAY, DAY + timedelta(days=1))
    nines = 10**38 - 1
    rows = [
        ("x", 1, *window, 1.5, None, 3000.25, "<i>", "now", None),
        (None, None, *window, None, Decimal(nines), None, None, "now", None),
        ("z", 3, *window, 2.5, Decimal(0), None, "zero", "now", None),
        ("x", 1, DAY - timedelta(days=1), DAY, 9.0, Decimal(5), 0.69897, "old", "before", 1.0),
    ]
    path = str(tmp_path / "results")
    spark.createDataFrame(rows, schema).write.format("delta").save(path)
    returns = {"mean": "AVG(F.x)", "n": "COUNT(*)", "note": "MIN(F.y)"}
    pattern = replace(_pattern(tmp_path), group_by=("a.b", "c`d"), returns=returns)
    facts = read_results(spark, path, pattern, _run("now"))
    assert facts.group_columns == ("a.b", "c`d")
    assert facts.measures == ("mean", "n", "note")
    assert facts.measure.name == "n"
    assert [group.key for group in facts.top_groups] == [("x", "1"), (None, None), ("z", "3")]
    assert [group.amount.exact for group in facts.top_groups] == [None, nines, 0]
    assert facts.headline == Amount(None, 3000.25)
    assert (facts.rows, facts.older_rows, facts.span_windows) == (3, 1, 1)
    assert facts.largest[0].values == (("mean", Amount(1.5)), ("n", Amount(None, 3000.25)), ("note", "<i>"))


def test_more_rows_than_are_kept_give_the_same_facts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read again partition by partition, or held in memory: one answer."""
    schema = "carrier string, window_start timestamp, window_end timestamp, n decimal(38,0), n_log10 double"
    rows = [
        (f"C{i % 11}", DAY + timedelta(hours=i // 11), DAY + timedelta(hours=i // 11 + 1), Decimal(i * i + 1), None)
        for i in range(11 * 20)
    ]
    path = str(tmp_path / "results")
    spark.createDataFrame(rows, schema).repartition(4).write.format("delta").save(path)
    kept = _read(spark, path, tmp_path)
    monkeypatch.setattr(reading, "ROWS_KEPT", 10)
    assert _read(spark, path, tmp_path) == kept
    assert kept.headline.exact == sum(i * i + 1 for i in range(11 * 20))


def _read(spark: SparkSession, path: str, folder: Path) -> ResultFacts:
    return read_results(spark, path, _pattern(folder), _run(None))


def _pattern(folder: Path) -> PatternFacts:
    file = folder / "p.yaml"
    file.write_text("name: p\n")
    return read_pattern(file)


def _run(plan_hash: str | None) -> RunFacts:
    return RunFacts(
        "r", "p", DAY, DAY + timedelta(days=1), plan_hash, None, None, None, None, None, None, (), ()
    )  # fmt: skip


def _micros(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000
