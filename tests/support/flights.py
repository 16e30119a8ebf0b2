"""Small sources of flights for the tests, and runs over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

from tests.support import plain_writer
from tests.support.empty_tables import empty_tables
from trendlake.jobs.terminal.times import micros_of
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.ingest.deliver import ingest
from trendlake.pipelines.ingest.flights import SCHEMA
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Limits, Profile
from trendlake.pipelines.runs.run import Run, prepare
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.sequence import STEPS

PATTERN = """\
name: {name}
kind: trends
description: For the tests.
source: flights
pattern: Flight F+
where: ["[tailnum]", "F.dep_delay < NEXT(F).dep_delay"]
return: {{snowballs: COUNT(*), legs: COUNT(F), worst: MAX(F.dep_delay), mean: AVG(F.dep_delay)}}
group_by: [{group_by}]
within: {within}
slide: {slide}
origin: 2013-01-01T00:00:00Z
"""


def flight(number: int, at: str, **values: Any) -> dict[str, Any]:
    """A flight that keeps every rule, departing at `at` (ISO, UTC), save for the `values` given."""
    moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
    row: dict[str, Any] = {
        "event_id": f"UA-{number}",
        "event_time": moment,
        "event_type": "Flight",
        "carrier": "UA",
        "flight": number,
        "tailnum": "N10UA",
        "origin": "EWR",
        "dest": "IAH",
        "dep_time": 900,
        "dep_delay": float(number),
        "arr_time": 1200,
        "arr_delay": 1.0,
        "air_time": 180.0,
        "distance": 1400.0,
    }
    assert not set(values) - set(row)
    return row | values


def table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema=SCHEMA)


@dataclass(frozen=True)
class Flights:
    """A warehouse of one test."""

    spark: SparkSession
    project: Project
    profile: Profile

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse.of(self.profile, self.project)

    @property
    def lake(self) -> Lake:
        return Lake.of(self.spark, self.warehouse)

    @property
    def contract(self) -> Contract:
        return load_contract(self.project.contract_path("flights"))

    def deliver(self, rows: Iterable[Mapping[str, Any]], feed: str = "test") -> Record:
        """Rows as one delivery, by the pipeline's own ingestion."""
        empty_tables(self.spark, self.warehouse, self.contract)
        return ingest(self.lake, self.contract, [table(rows)], feed=feed, run_id=f"ingest {feed}")

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Rows as other programs may leave them, or an older version of `ingest`: keys may be repeated."""
        empty_tables(self.spark, self.warehouse, self.contract)
        plain_writer.append(self.spark, self.warehouse.source("flights"), table(rows))

    def change(self, new: Callable[[plain_writer.Row], plain_writer.Row | None]) -> None:
        """The source changed by another program: each row is what `new` makes of it, or goes."""
        plain_writer.change(self.spark, self.warehouse.source("flights"), new)

    def pattern(self, within: str = "1 day", slide: str = "1 day", group_by: str = "carrier") -> str:
        """A pattern file of the test's own; its path."""
        path = self.project.state / "patterns" / "test_pattern.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PATTERN.format(name="test_pattern", within=within, slide=slide, group_by=group_by))
        return str(path)

    def run(self, pattern: str | Path, since: str, until: str, run_id: str, limit: int | None = None) -> Run:
        profile = self.profile
        if limit is not None:
            profile = replace_limits(profile, limit)
        start, end = micros_of(since, "--from"), micros_of(until, "--to")
        return prepare(
            Lake.of(self.spark, Warehouse.of(profile, self.project)),
            self.project,
            profile,
            str(pattern),
            run_id,
            start,
            end,
        )

    def results(self, run: Run) -> DataFrame:
        return self.spark.read.format("delta").load(self.warehouse.results(run.name))

    def quarantined(self) -> DataFrame:
        """What runs have set apart, without what ingestion has."""
        table = self.spark.read.format("delta").load(self.warehouse.quarantine("flights"))
        return table.where("run_id NOT LIKE 'ingest %'")


def replace_limits(profile: Profile, rows: int) -> Profile:
    return profile.model_copy(update={"limits": Limits(shard_rows=rows)})


def all_steps(run: Run) -> Record:
    """Every step in order; the record of the last."""
    records = [step(run) for step in STEPS.values()]
    return records[-1]


def answers(frame: DataFrame, run: Run) -> list[dict[str, Any]]:
    """The published rows without their origin, in order."""
    names = run.plan.result_schema.names
    keys = [*run.plan.group_by, "window_start"]
    rows: list[Row] = frame.select(*names).collect()
    return sorted((row.asDict() for row in rows), key=lambda row: [str(row[key]) for key in keys])


def renamed(run: Run, run_id: str) -> Run:
    """The same run under another id."""
    return replace(run, run_id=run_id)


def snowball(day: int, legs: int, carrier: str = "UA") -> list[dict[str, Any]]:
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
