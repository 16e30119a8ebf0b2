"""The newest runs of several patterns, read together: those that each has alone, and those of a plain look."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from trendlake.pipelines.check import Check
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.runs.record import recorded
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.site import build, read_runs
from trendlake.pipelines.site.build import Site, Together

pytestmark = pytest.mark.spark

PATTERNS = {"every": range(9), "even": range(0, 9, 2), "one": [4], "none": []}
SHOWN, JUDGED = 5, 2


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Run r0 of every pattern that has it, then r1, and so on; r4 of the first one again at the end."""
    warehouse = Warehouse(str(tmp_path_factory.mktemp("runs")))
    for number in (*range(9), 4):
        for pattern in [name for name, numbers in PATTERNS.items() if number in numbers]:
            with recorded(
                Lake.of(spark, warehouse), Record(f"r{number}", pattern, "compute", rows_out=number)
            ) as record:
                record.checks = [Check("looked_at", True, pattern, "any")]
    return warehouse


@pytest.mark.long
@pytest.mark.parametrize("few", [True, False])
def test_together_as_alone(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, few: bool
) -> None:
    """In this process, and by Spark where the records are too many for it."""
    monkeypatch.setattr(read_runs, "RUNS_SHOWN", SHOWN)
    monkeypatch.setattr(read_runs, "RUNS_JUDGED", JUDGED)
    if not few:
        monkeypatch.setattr(limits, "RECORDS", 1)
        monkeypatch.setattr(limits, "NARROW_RECORDS", 1)
    together = read_runs.read_runs(Lake.of(spark, warehouse), list(PATTERNS))
    assert together == {
        name: facts
        for pattern in PATTERNS
        for name, facts in read_runs.read_runs(Lake.of(spark, warehouse), [pattern]).items()
    }
    shown = {name: [run.run_id for run in facts.runs] for name, facts in together.items()}
    assert shown == {
        "every": ["r4", "r8", "r7", "r6", "r5"],
        "even": ["r4", "r8", "r6", "r2", "r0"],
        "one": ["r4"],
        "none": [],
    }
    for pattern, facts in together.items():
        assert (facts.total, facts.judged) == (len(PATTERNS[pattern]), min(JUDGED, len(PATTERNS[pattern])))
        checks = [[check.observed for check in run.checks] for run in facts.runs]
        assert checks == [[pattern]] * facts.judged + [[]] * (len(facts.runs) - facts.judged)


@pytest.mark.parametrize("size", [1, 3, 50])
def test_a_group_after_another(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """In whatever order they are asked for, and of a pattern that is not among the files too."""
    monkeypatch.setattr(build, "GROUP", size)
    files = [tmp_path / f"{name}.yaml" for name in PATTERNS if name != "one"]
    together = Together(Site(Lake.of(spark, warehouse), None, None), files)  # type: ignore[arg-type]
    for name in ("none", "every", "one", "even", "every"):
        assert {name: together.runs(name)} == read_runs.read_runs(Lake.of(spark, warehouse), [name])
        publications = together.publications(name)
        assert publications is not None
        assert publications.of(name) == []
    newest = together.run("every", "r8")
    assert newest is not None
    assert (newest.run_id, [check.check for check in newest.checks]) == ("r8", ["looked_at"])
    assert together.run("every", "r9") is None


def test_a_run_that_is_recorded_meanwhile(spark: SparkSession, tmp_path: Path) -> None:
    """By another process, while the pages of the others are written: the page shows it."""
    warehouse = Warehouse(str(tmp_path))
    together = Together(Site(Lake.of(spark, warehouse), None, None), [Path("a.yaml"), Path("b.yaml")])  # type: ignore[arg-type]
    assert together.runs("a").runs == ()
    for number in range(2):
        with recorded(Lake.of(spark, warehouse), Record(f"r{number}", "b", "compute")):
            pass
        assert [run.run_id for run in together.runs("b").runs] == [f"r{n}" for n in range(number, -1, -1)]


def test_a_record_that_cannot_be_read_is_its_own_pattern_s(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its page says so; those of the others are as ever."""
    warehouse = Warehouse(str(tmp_path_factory.mktemp("runs")))
    for pattern in ("good", "bad", "other"):
        with recorded(Lake.of(spark, warehouse), Record("r", pattern, "compute")):
            pass
    row = spark.read.format("delta").load(warehouse.runs).where("pattern = 'bad'")
    spoilt = row.withColumns({"run_id": sf.lit("r2"), "checks": sf.lit("no JSON")})
    spoilt.write.format("delta").mode("append").save(warehouse.runs)
    files = [Path(f"{name}.yaml") for name in ("good", "bad", "other")]
    together = Together(Site(Lake.of(spark, warehouse), None, None), files)  # type: ignore[arg-type]
    for name in ("good", "other"):
        assert [run.run_id for run in together.runs(name).runs] == ["r"]
    checks = {run.run_id: [(check.check, check.success) for check in run.checks] for run in together.runs("bad").runs}
    assert checks == {"r": [], "r2": [("run_record", False)]}
