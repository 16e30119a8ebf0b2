"""The report of real runs over real Delta tables."""

from __future__ import annotations

import math
import random
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as st

from tests.reference.page_numbers import in_order, reasons_of
from tests.support.bare_lake import bare_lake
from tests.support.flights import Flights
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.report.amounts import Amount
from trendlake.pipelines.report.build import build_report, read_facts
from trendlake.pipelines.report.errors import RunNotFoundError
from trendlake.pipelines.report.facts import PatternFacts, ReportFacts, ResultFacts, RunFacts
from trendlake.pipelines.report.read_pattern import read_pattern
from trendlake.pipelines.report.read_quarantine import REASONS_SHOWN, SAMPLES_SHOWN, TEXT_LIMIT, read_quarantine
from trendlake.pipelines.report.read_run import read_run
from trendlake.pipelines.report.read_windows import read_results
from trendlake.pipelines.runs.record import recorded
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.spark.frames import frame_of

pytestmark = pytest.mark.spark

DAY = datetime(2013, 3, 2, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")


def facts_of_run(lake: Flights, run_id: str) -> ReportFacts:
    return read_facts(lake.lake, Path(lake.pattern()), run_id)


@pytest.mark.long
def test_a_run_is_reported_with_the_history_before_it(story: Flights) -> None:
    """It counts its own day and draws both."""
    facts = facts_of_run(story, "two")
    assert facts.results is not None
    assert {group.key[0]: group.amount.exact for group in facts.results.top_groups} == {"EV": 4095, "B6": 63, "UA": 7}
    assert facts.results.headline.exact == 4165
    assert [point.amount.exact for point in facts.results.series["UA",]] == [31, 7]
    assert dict(facts.results.largest[2].values) == {
        "snowballs": Amount.of_count(7),
        "legs": Amount.of_count(12),
        "worst": Amount(12.0),
        "mean": Amount(11.0),
    }
    assert [stage.stage for stage in facts.run.stages] == ["check_source", "compute", "check_results", "publish"]
    assert all(stage.status == "succeeded" for stage in facts.run.stages)
    assert len(facts.run.checks) > 2


def test_its_files_stand_alone(story: Flights, tmp_path: Path) -> None:
    """A page with the answer, the origin and the pattern, and a picture."""
    paths = build_report(story.lake, Path(story.pattern()), "two", tmp_path / "reports")
    html = paths.html.read_text(encoding="utf-8")
    assert "EV leads with 4,095 snowballs, 98 % of all" in html
    assert str(facts_of_run(story, "two").run.plan_hash) in html
    assert "All stages: in this process" in html
    assert "SEQ" not in html
    assert "NEXT(F).dep_delay" in html
    assert paths.png.read_bytes().startswith(b"\x89PNG")


def test_the_automaton_is_that_of_the_run(story: Flights, tmp_path: Path) -> None:
    """Drawn where the file still says what the run computed; left out once it says something else."""
    run = story.run(story.pattern(), "2013-03-01", "2013-03-02", "two")
    same = build_report(story.lake, Path(story.pattern()), "two", tmp_path / "same", run.plan)
    assert 'class="automaton"' in same.html.read_text(encoding="utf-8")
    other = story.run(story.pattern(within="2 days"), "2013-03-01", "2013-03-02", "two").plan
    later = build_report(story.lake, Path(story.pattern()), "two", tmp_path / "later", other)
    assert 'class="automaton"' not in later.html.read_text(encoding="utf-8")


def test_a_report_made_later_shows_what_was_published_then(story: Flights) -> None:
    """The results are read at the version of the run, not at the newest."""
    counts = [
        {group.key[0]: group.amount.exact for group in results.top_groups}
        for results in (facts_of_run(story, "two").results, facts_of_run(story, "late").results)
        if results is not None
    ]
    assert [count["UA"] for count in counts] == [7, 15]


def test_rows_that_broke_the_contract_are_shown_as_they_came(story: Flights) -> None:
    """Of the run's own source version only; by rule and reason, with samples."""
    run = read_run(story.lake, "test_pattern", "two")
    quarantine = read_quarantine(story.lake, "flights", run)
    assert (quarantine.rows, quarantine.stored, sum(reason.rows for reason in quarantine.reasons)) == (1, 1, 1)
    assert quarantine.samples[0].rule == quarantine.reasons[0].rule
    assert ("carrier", "<b>&") in quarantine.samples[0].values
    other = read_quarantine(story.lake, "flights", replace(run, source_version=99))
    assert (other.rows, other.stored) == (1, 0)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_random_quarantines(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """The reference's reasons and samples, of a table that this process reads and of one that only Spark reads; texts
    are Spark's."""
    rng = random.Random(seed)
    rows = [
        {
            "id": i,
            "name": rng.choice(["x" * 300, "<b>", "", None]),
            "at": rng.choice([DAY + timedelta(microseconds=i), None]),
            "price": rng.choice([1e10, math.nan, 0.5, None]),
            "rule": rng.choice(["r1", "r2", "", None]),
            "reason": rng.choice([*(f"because {n}" for n in range(9)), None]),
            "run_id": rng.choice(["r", "r", "other"]),
            "source_version": rng.choice([7, 7, 8, None]),
            "quarantined_at": DAY + timedelta(seconds=rng.randrange(3)),
        }
        for i in range(rng.choice([0, 200]))
    ]
    kinds = [("id", pa.int64()), ("name", pa.string()), ("at", TIME), ("price", pa.float64()), ("rule", pa.string())]
    kinds += [
        ("reason", pa.string()),
        ("run_id", pa.string()),
        ("source_version", pa.int64()),
        ("quarantined_at", TIME),
    ]
    table = pa.Table.from_pylist(rows, pa.schema(kinds))
    mine = [row for row in rows if (row["run_id"], row["source_version"]) == ("r", 7)]
    turns: Counter[str | None] = Counter()
    samples = []
    for row in sorted(mine, key=lambda row: (in_order(row["reason"]), row["quarantined_at"], row["id"])):
        turns[row["rule"]] += 1
        samples.append((turns[row["rule"]], in_order(row["rule"]), row))
    samples = sorted(samples, key=lambda item: item[:2])[:SAMPLES_SHOWN]
    reasons = reasons_of(mine)
    for mapping in ("none", "name"):
        warehouse = Warehouse(str(tmp_path / mapping))
        writer = frame_of(spark, table).coalesce(1).write.format("delta").option("delta.columnMapping.mode", mapping)
        writer.save(warehouse.quarantine("s"))
        facts = read_quarantine(Lake.of(spark, warehouse), "s", replace(_run(None), source_version=7))
        assert [(item.rule or None, item.reason or None, item.rows) for item in facts.reasons] == [
            (rule or None, reason or None, n) for rule, reason, n in reasons[:REASONS_SHOWN]
        ]
        assert (facts.rows, facts.stored, facts.other_reasons) == (
            len(mine),
            len(mine),
            len(reasons) - len(facts.reasons),
        )
        assert facts.other_rows == sum(n for _, _, n in reasons[REASONS_SHOWN:])
        assert [dict(sample.values) for sample in facts.samples] == [_shown(row) for _, _, row in samples]


def _shown(row: dict[str, Any]) -> dict[str, str]:
    texts = {"id": str(row["id"])}
    if row["name"] is not None:
        texts["name"] = row["name"] if len(row["name"]) <= TEXT_LIMIT else row["name"][:TEXT_LIMIT] + "…"
    if row["at"] is not None:
        texts["at"] = row["at"].strftime("%Y-%m-%d %H:%M:%S.%f").rstrip("0").rstrip(".")
    if row["price"] is not None:
        texts["price"] = "1.0E10" if row["price"] == 1e10 else "NaN" if math.isnan(row["price"]) else "0.5"
    return texts


def test_an_unknown_run_is_an_error_of_its_own(lake: Flights, tmp_path: Path) -> None:
    """With or without a table of runs."""
    pattern = Path(lake.pattern())
    with pytest.raises(RunNotFoundError, match="no run 'x' of pattern 'test_pattern'"):
        build_report(lake.lake, pattern, "x", tmp_path)
    record = Record(run_id="y", pattern="test_pattern", stage="compute")
    with recorded(lake.lake, record):
        pass
    with pytest.raises(RunNotFoundError) as error:
        build_report(lake.lake, pattern, "x", tmp_path)
    assert error.value.code == "RUN_NOT_FOUND"


def test_the_last_attempt_of_a_stage_counts(lake: Flights, tmp_path: Path) -> None:
    """A failed attempt is remembered as one; a report of a run that never published can be made."""
    for error in ("[X] <b>boom</b>", None):
        record = Record(run_id="r", pattern="test_pattern", stage="compute", source="flights", windows=3)
        record.interval_from, record.interval_to = _micros(DAY), _micros(DAY + timedelta(days=1))
        with suppress(ValueError), recorded(lake.lake, record):
            if error is not None:
                raise ValueError(error)
    run = read_run(lake.lake, "test_pattern", "r")
    assert [(stage.status, stage.attempts, stage.error) for stage in run.stages] == [("succeeded", 2, None)]
    assert (run.interval_from, run.interval_to, run.windows) == (DAY, DAY + timedelta(days=1), 3)
    paths = build_report(lake.lake, Path(lake.pattern()), "r", tmp_path)
    assert "No results have been published yet" in paths.html.read_text(encoding="utf-8")


@pytest.mark.long
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
    facts = read_results(bare_lake(spark), path, pattern, _run("now"))
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
    first = _read(spark, path, tmp_path)
    monkeypatch.setattr(limits, "PAGE_ROWS", 10)
    assert _read(spark, path, tmp_path) == first
    assert first.headline.exact == sum(i * i + 1 for i in range(11 * 20))


def _read(spark: SparkSession, path: str, folder: Path) -> ResultFacts:
    return read_results(bare_lake(spark), path, _pattern(folder), _run(None))


def _pattern(folder: Path) -> PatternFacts:
    file = folder / "p.yaml"
    file.write_text("name: p\n")
    return read_pattern(file)


def _run(plan_hash: str | None) -> RunFacts:
    return RunFacts("r", "p", DAY, DAY + timedelta(days=1), plan_hash, None, None, None, None, None, None, (), ())


def _micros(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000
