"""Files read by the workers hold what Spark reads of the same version, or are left to Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tests.support.flights import Flights, flight
from tests.support.worked_cases import CHECKED
from trendlake.cep_core import compile_plan, load_pattern
from trendlake.pipelines.contracts.contract import Column, Contract
from trendlake.pipelines.contracts.sources import Sources
from trendlake.pipelines.execute.channel import Member, channels_of, joint, together
from trendlake.pipelines.execute.shard_plan import Cut, likely
from trendlake.pipelines.lake.here.parquet_scan import Files
from trendlake.pipelines.lake.lake import Lake, latest_version
from trendlake.pipelines.lake.versions import table_id
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Limits, Profile
from trendlake.pipelines.results.computation import computed, cut_and_stage, stage_together
from trendlake.pipelines.results.source_events import SourceEvents, files_of, read_events
from trendlake.pipelines.results.staging import read_staged
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.steps.compute import compute

pytestmark = pytest.mark.spark

TYPES = {
    "event_id": pa.string(),
    "event_time": pa.timestamp("us", "UTC"),
    "event_type": pa.string(),
    "name": pa.string(),
    "x": pa.float64(),
    "f": pa.float32(),
    "n": pa.int32(),
    "k": pa.int64(),
    "b": pa.bool_(),
    "d": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "m": pa.decimal128(10, 2),
}
QUERY: dict[str, Any] = {
    "name": "q",
    "kind": "trends",
    "source": "t",
    "pattern": "SEQ(A a+, B b)",
    "where": ["[name]", "a.x < NEXT(a).x"],
    "return": {"n": "COUNT(*)", "far": "MAX(a.at)", "k": "SUM(a.k)", "m": "MIN(a.m)", "f": "MAX(b.f)", "d": "MAX(b.d)"},
    "group_by": ["name"],
    "within": "1 hour",
}
"""Reads every column but the id, `n` and `b`."""


def row(number: int) -> dict[str, Any]:
    """Events a minute apart, from 1970-01-01T00:00; every fifth lacks something, every third is of a type that nobody
    asks for."""
    absent = number % 5 == 0
    return {
        "event_id": f"e{number}",
        "event_time": None if number == 40 else datetime.fromtimestamp(60 * number, UTC),
        "event_type": ["A", "B", "C"][number % 3],
        "name": None if absent else f"name {number % 4}",
        "x": [0.5, -0.0, float("nan"), None][number % 4],
        "f": None if absent else number / 4,
        "n": number,
        "k": None if absent else 2**60 - number,
        "b": number % 2 == 0,
        "d": date(1960 + number % 50, 1, 1),
        "at": None if absent else datetime(1700 + number, 1, 2, 3, 4, 5, 6, UTC),
        "m": Decimal(number) / 100,
    }


def table(first: int, last: int) -> pa.Table:
    return pa.Table.from_pylist([row(number) for number in range(first, last)], pa.schema(TYPES))


@pytest.fixture
def odd(spark: SparkSession, project: Project, tmp_path: Path) -> Run:
    """Hours 1 and 2 of a table in a folder whose name needs quoting."""
    home = replace(project, state=tmp_path / "a folder, 100% odd+é")
    pattern = load_pattern(QUERY)
    columns = tuple(
        Column(field.name, field.dataType.simpleString(), required=False)
        for field in spark.createDataFrame(table(0, 1)).schema.fields
    )
    roles = {name: name for name in ("event_id", "event_time", "event_type")}
    contract = Contract("t", "1.0.0", columns, rules=(), key=("event_id",), roles=roles)
    plan = compile_plan(pattern, contract.event_schema())
    warehouse = Warehouse(Profile().warehouse_of(home))
    return Run(
        Lake.of(spark, warehouse),
        home,
        Profile(),
        pattern,
        Sources.of(contract),
        plan,
        "r",
        3_600_000_000,
        3 * 3_600_000_000,
    )


def write(run: Run, rows: pa.Table, **options: str) -> str:
    path = run.warehouse.source("t")
    writer = run.lake.spark.createDataFrame(rows).repartition(3, "n").write.format("delta").mode("append")
    writer.options(**options).save(path)
    return path


def read(files: Files) -> list[str]:
    """The rows, as text in order: a NaN is itself."""

    def as_text(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [repr(tuple(row.values())) for row in batch.to_pylist()]
            yield pa.RecordBatch.from_arrays([pa.array(rows, pa.string())], ["row"])  # of an empty one too

    return sorted(row[0] for row in files.mapInArrow(as_text, StructType.fromDDL("row string")).collect())


def by_spark(run: Run, version: int) -> list[str]:
    frame = read_events(run, replace(CHECKED, source_version=version)).where("event_time IS NOT NULL")
    return sorted(repr(tuple(row.values())) for row in frame.toArrow().to_pylist())


def files_at(run: Run, version: int) -> Files | None:
    return files_of(run, replace(CHECKED, source_version=version))


def test_every_type_is_read_as_spark_reads_it(odd: Run) -> None:
    """Old moments, missing values, a column that older files do not have; a version that is not the newest; files of
    writers that have other types of Arrow's for texts."""
    path = write(odd, table(0, 100).drop_columns(["m"]))
    write(odd, table(100, 200), mergeSchema="true")
    DeltaTable.forPath(odd.lake.spark, path).delete("n % 7 = 0")
    for number, file in enumerate(sorted(Path(path).glob("*.parquet"))):
        other_texts(file, (pa.string(), pa.large_string(), pa.string_view())[number % 3])
    for version, rows in ((1, 80), (2, 68)):
        files = files_at(odd, version)
        assert files is not None
        files = replace(files, numbered=False)
        assert read(files) == by_spark(odd, version)
        assert len(read(files)) == rows


def other_texts(file: Path, kind: pa.DataType) -> None:
    """The file written anew, with all texts of that type of Arrow's."""
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    rows = pq.read_table(file)
    fields = [field.with_type(kind) if pa.types.is_string(field.type) else field for field in rows.schema]
    pq.write_table(rows.cast(pa.schema(fields)), file)


@pytest.mark.long
def test_only_files_that_may_hold_rows_of_the_windows(odd: Run) -> None:
    """Delta's statistics leave out the files of other times; one has a row without a time, which may be of any."""
    for first in (0, 60, 120, 180):
        write(odd, table(first, first + 60))
    files = files_at(odd, 3)
    assert files is not None
    assert len(files.paths) == 7
    assert read(replace(files, numbered=False)) == by_spark(odd, 3)


def test_results_are_the_same(odd: Run) -> None:
    """The kernels over the files, and over Spark's rows."""
    write(odd, table(0, 200))
    checked = CHECKED
    files = files_at(odd, 0)
    assert files is not None
    staged_rows: list[list[str]] = []
    for events in (files, read_events(odd, checked)):
        version, rows = cut_and_stage(odd, events, 200, Versions.one(0), None)
        assert rows > 3
        staged = read_staged(odd, version)
        staged_rows.append(sorted(map(repr, staged.select(*odd.plan.result_schema.names).collect())))
    assert staged_rows[0] == staged_rows[1]


@pytest.mark.long
@pytest.mark.parametrize("road", ["files", "frame"])
def test_plans_whose_events_are_read_together_and_computed_apart(odd: Run, road: str) -> None:
    """A plan without groups needs its events counted, so each plan has a job of its own: of all that was read together,
    it takes the events of its own types, whatever numbers they had together."""
    write(odd, table(0, 200))
    texts = {"first": {}, "second": {"pattern": "SEQ(C c+, A a)", "where": ["c.n < NEXT(c).n"], **ALONE}}
    odd = replace(odd, profile=Profile(limits=Limits(shard_rows=40)))
    runs = {}
    for number, (name, text) in enumerate(texts.items()):
        pattern = load_pattern({**QUERY, **text, "name": name})
        plan = compile_plan(pattern, odd.contract.event_schema())
        runs[number] = replace(odd, pattern=pattern, plan=plan)
    members = [Member(number, run.plan, run.windows) for number, run in runs.items()]
    assert len(together(members)) == 1
    source = SourceEvents.of([(run, CHECKED) for run in runs.values()], joint(channels_of(members)))
    events = source.files() if road == "files" else source.frame()
    assert events is not None
    outcomes = stage_together(runs, events, 200, Versions.one(0), None)
    for number, run in runs.items():
        outcome = outcomes[number]
        assert not isinstance(outcome, Exception), outcome
        version, rows = cut_and_stage(run, read_events(run, CHECKED), 200, Versions.one(0), None)
        assert outcome[1] == rows > 0
        assert rows_of(run, outcome[0]) == rows_of(run, version)


ALONE = {"return": {"n": "COUNT(*)"}, "group_by": []}


def rows_of(run: Run, version: int) -> list[str]:
    return sorted(map(repr, read_staged(run, version).select(*run.plan.result_schema.names).collect()))


def _deletion_vectors(run: Run) -> None:
    path = write(run, table(0, 200))
    run.lake.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    DeltaTable.forPath(run.lake.spark, path).delete("n = 80")


def _column_mapping(run: Run) -> None:
    path = write(run, table(0, 200))
    run.lake.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    run.lake.spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN k TO j")
    run.lake.spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN n TO k")
    run.lake.spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN j TO n")


def _partitions(run: Run) -> None:
    frame: DataFrame = run.lake.spark.createDataFrame(table(0, 200))
    frame.write.format("delta").partitionBy("event_type").save(run.warehouse.source("t"))


def _a_default(run: Run) -> None:
    """Which older files do not hold."""
    path = write(run, table(0, 200).drop_columns(["k"]))
    named = f"delta.`{path}`"
    run.lake.spark.sql(f"ALTER TABLE {named} SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')")
    run.lake.spark.sql(f"ALTER TABLE {named} ADD COLUMN k bigint")
    run.lake.spark.sql(f"ALTER TABLE {named} ALTER COLUMN k SET DEFAULT 7")


@pytest.mark.long
@pytest.mark.parametrize("make", [_deletion_vectors, _column_mapping, _partitions, _a_default])
def test_what_a_file_does_not_say_alone_is_sparks(odd: Run, make: Any) -> None:
    """Deletion vectors, mapped columns, partitions and defaults: no file is read by itself."""
    make(odd)
    version = DeltaTable.forPath(odd.lake.spark, odd.warehouse.source("t")).history(1).collect()[0]["version"]
    assert files_at(odd, version) is None


@pytest.mark.long
@pytest.mark.parametrize("fault", ["old_calendar", "other_type", "torn"])
def test_a_file_that_is_otherwise_is_left_to_spark(lake: Flights, fault: str) -> None:
    """The workers refuse it, and the step ends with the rows of Spark's own reader, or with its error."""
    lake.deliver([flight(n, f"2013-03-01T{n:02d}:00:00") for n in range(1, 12)])
    run = lake.run(lake.pattern(), "2013-03-01", "2013-03-02", fault)
    version = latest_version(lake.lake, lake.warehouse.source("flights"))
    rows = computed_rows(run, read_events(run, replace(CHECKED, source_version=version)))
    _as_checked(run, version)
    (file,) = Path(run.warehouse.source("flights")).glob("*.parquet")
    spoil(file, fault)
    if fault == "torn":
        with pytest.raises(Exception, match="FILE_DAMAGED"):
            compute(run)
        return
    assert files_of(run, run.need("check_source")) is not None
    done = compute(run)
    staged = read_staged(run, int(done.staged_version or 0))
    assert sorted(map(repr, staged.select(*run.plan.result_schema.names).collect())) == rows
    assert rows


@pytest.mark.long
def test_a_file_that_is_otherwise_is_found_out_by_counting(lake: Flights) -> None:
    """A stream of one group is counted before it is cut: what the counting workers refuse is left to Spark too."""
    lake.deliver([flight(n, f"2013-03-01T{n:02d}:00:00") for n in range(1, 12)])
    run = lake.run(lake.pattern("1 hour", "1 hour", group_by=""), "2013-03-01", "2013-03-02", "counted", limit=6)
    assert likely(run.plan, 11, run.windows, 6, lake.spark.sparkContext.defaultParallelism) is None
    (file,) = Path(run.warehouse.source("flights")).glob("*.parquet")
    spoil(file, "other_type")
    version = latest_version(lake.lake, lake.warehouse.source("flights"))
    _as_checked(run, version)
    done = compute(run)
    assert done.rows_out == 11


def _as_checked(run: Run, version: int) -> None:
    record = run.record("check_source")
    record.source_version, record.rows_out, record.rows_quarantined, record.succeeded = version, 11, 0, True
    record.basis = run.basis(Versions.one(version, table_id(run.lake, run.warehouse.source("flights"), version)))


def computed_rows(run: Run, events: DataFrame) -> list[str]:
    return sorted(map(repr, computed(run, events, Cut(run.windows, len(run.windows))).collect()))


def spoil(file: Path, fault: str) -> None:
    """The file written anew in a way that means the same to Spark; or cut off."""
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    if fault == "torn":
        file.write_bytes(file.read_bytes()[:-200])
        return
    rows = pq.read_table(file, coerce_int96_timestamp_unit="us")
    at = rows.schema.get_field_index("event_time")
    rows = rows.set_column(at, "event_time", rows["event_time"].cast(pa.timestamp("us", "UTC")))
    if fault == "other_type":
        at = rows.schema.get_field_index("dep_delay")
        rows = rows.set_column(at, "dep_delay", rows["dep_delay"].cast(pa.float32()))
    if fault == "old_calendar":
        rows = rows.replace_schema_metadata({"org.apache.spark.version": "3.0.1", "org.apache.spark.legacyINT96": ""})
    pq.write_table(rows, file)
