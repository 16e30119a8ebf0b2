"""SIGKILL of the driver that ingests two deliveries, at each boundary of its writes and at random: the source has each
delivery whole or not at all, and each row once; done again, it comes to its end.

The first delivery appends; the second also replaces rows, whose files are written anew, and passes one over. Each has a
row that breaks the contract. `make chaos` runs it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support import delta_files
from tests.support.flights import all_steps, renamed
from tests.support.kills import RECORD, Hunt, at_random
from tests.support.recomputation import recomputed
from tests.support.signal_patterns import PATTERNS
from tests.support.signals import CONTRACT, DAY_US, SCHEMA, START_US, signals
from tests.support.victim import DELIVERY, INGEST, deliveries_of
from trendlake.pipelines.ingest.deliver import ingest
from trendlake.pipelines.ingest.open_rows import open_rows
from trendlake.pipelines.ingest.replay import newest
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.revise import revise

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.chaos]

BOUNDARIES = [
    f"{side} {what}"
    for what in ("committing source", "merging source", "writing quarantine", RECORD)
    for side in ("before", "after")
]
KILLS = int(os.environ.get("TRENDLAKE_KILLS", "0"))
FIRST_DAY, LAST_DAY = 0.5, 2.5
REPLACING = CONTRACT.replace("value: 1}]", "value: 1}, {property: corrections, value: replace}]", 1)
SECONDS = 8.0
"""An ingestion takes about as long."""

Row = dict[str, Any]
Rows = dict[str, Row]
"""By the event's id."""


def row(ident: str, number: int, price: int) -> Row:
    at = START_US + number * DAY_US // 24
    return {"event_id": ident, "event_time": at, "event_type": "A", "place": "ns"[number % 2], "price": price}


@dataclass
class Ingestions(Hunt):
    """Victims that ingest. `states`: the rows of the source before the deliveries, after the first, after both."""

    states: list[Rows] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    """Ids of all rows that break the contract."""
    version: int = 0

    def deliver(self, turn: int) -> None:
        """Writes the file of two deliveries that nobody has taken yet."""
        there = self.source()
        known = sorted(set(there) - self.broken)
        corrected = [there[name] | {"price": (there[name]["price"] + 1) % 10} for name in self.rng.sample(known, 2)]
        equal = there[self.rng.choice([name for name in known if name not in {one["event_id"] for one in corrected}])]
        first = [row(f"first_{turn}_{n}", 14 + n, n) for n in range(4)] + [row(f"bad_first_{turn}", 20, 50)]
        second = [row(f"second_{turn}_{n}", 13 + 7 * n, n) for n in range(2)] + [row(f"bad_second_{turn}", 21, 60)]
        self.states = [there]
        for rows in (first, [*second, *corrected]):
            self.states.append(self.states[-1] | {one["event_id"]: one for one in rows})
        self.broken |= {f"bad_first_{turn}", f"bad_second_{turn}"}
        rows = [one | {DELIVERY: 1} for one in first] + [one | {DELIVERY: 2} for one in (*second, *corrected, equal)]
        self.file = str(self.folder / f"delivered_{turn}.parquet")
        schema = pa.schema([*SCHEMA, pa.field(DELIVERY, "int64")])
        pq.write_table(pa.Table.from_pylist(rows, schema), self.file)
        self.version = len(delta_files.commits(self.lake.source)) - 1

    def source(self) -> Rows:
        """Fails where an id is there twice."""
        names = list(row("", 0, 0))
        rows = [
            dict(zip(names, (one[name] for name in names), strict=True))
            for one in delta_files.rows(self.lake.source, names)
        ]
        for one in rows:
            one["event_time"] = round(one["event_time"].timestamp() * 1e6)
        by_id = {one["event_id"]: one for one in rows}
        assert len(by_id) == len(rows), "a row is there twice"
        return by_id

    def taken(self) -> int:
        """How many of the deliveries are in the source, each whole."""
        return self.states.index(self.source())

    def set_apart(self, run_id: str) -> list[str]:
        path = self.lake.warehouse.quarantine("signals")
        return [one["event_id"] for one in delta_files.rows(path, ["event_id", "run_id"]) if one["run_id"] == run_id]

    def look(self, steps: tuple[str, ...], run_id: str) -> None:
        """What must hold at any time; the results are nobody's business here."""
        source, passed = self.source(), [line for _, lines in self.attempts[run_id] for line in lines]
        assert source in self.states, "a part of a delivery is in the source"
        taken = self.taken()
        writes = [line for line in passed if line.endswith(" source")]
        assert len({line for line in writes if line.startswith("after")}) <= taken
        assert taken <= len({line for line in writes if line.startswith("before")})
        assert len(delta_files.commits(self.lake.source)) - 1 == self.version + taken
        apart = self.set_apart(run_id)
        assert len(apart) == len(set(apart)), "the quarantine has a row twice"
        assert set(apart) <= self.broken
        assert bool(apart) or "after writing quarantine" not in passed
        assert self.published() == self.before, "an ingestion touches no results"
        names = ["run_id", "stage", "status", "source_version"]
        records = [one for one in delta_files.rows(self.lake.warehouse.runs, names) if one["run_id"] == run_id]
        assert passed.count(f"after {RECORD}") <= len(records) <= passed.count(f"before {RECORD}")
        for one in records:
            assert (one["stage"], one["status"], one["source_version"]) == ("ingest", "succeeded", self.version + 2)

    def again(self, run_id: str) -> None:
        """Done again, and once more: it comes to its end, and what is there is passed over."""
        left = 2 - self.taken()
        for name, wanted in ((run_id, left), (f"{run_id} once more", 0)):
            done = self.ingested(name)
            assert (done.rows_inserted, done.rows_updated) == ((0, 0), (3, 2), (8, 2))[wanted]
            assert self.source() == self.states[-1]
            assert len(delta_files.commits(self.lake.source)) - 1 == self.version + 2 == done.source_version

    def ingested(self, run_id: str) -> Record:
        """The file's deliveries, by this process."""
        lake, file = self.lake, Path(str(self.file))
        return ingest(lake.lake, lake.contract, deliveries_of(file), feed=file.stem, run_id=run_id)


@pytest.fixture(scope="module")
def hunt(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ingestions]:
    """A lake with some good signals, published, and one that is set apart."""
    lake = signals(spark, tmp_path_factory.mktemp("ingestions") / "project", PATTERNS["plain"], REPLACING)
    rows = [row(f"e{number}", 10 + number, number % 10) for number in range(40)] + [row("bad", 20, 99)]
    ingest(lake.lake, lake.contract, [pa.Table.from_pylist(rows, SCHEMA)], feed="first", run_id="beginning")
    run = lake.run(FIRST_DAY, LAST_DAY, "any")
    all_steps(renamed(run, "first"))
    ingestions = Ingestions(lake, run, random.Random(5), broken={"bad"})
    ingestions.before = ingestions.published()
    yield ingestions
    ingestions.close()


def test_killed_at_each_boundary(hunt: Ingestions) -> None:
    """Each time with deliveries of its own; then done again."""
    for turn, place in enumerate(BOUNDARIES):
        hunt.deliver(turn)
        assert not hunt.attempt(INGEST, f"ingest {turn}", place), place
        assert hunt.taken() == ((0, 1, 1)[turn] if turn < 3 else 2)
        hunt.again(f"ingest {turn}")


def test_killed_again_and_again(hunt: Ingestions) -> None:
    """The same deliveries: killed after the first, after the second, and when all is done but said."""
    hunt.deliver(len(BOUNDARIES))
    for place in ("after committing source", "after merging source", f"before {RECORD}"):
        assert not hunt.attempt(INGEST, "ingest", place)
    assert hunt.attempts["ingest"][-1][1] == [f"before {RECORD}"]  # nothing was left to write
    assert hunt.attempt(INGEST, "ingest")
    hunt.again("ingest")


def test_killed_at_random(hunt: Ingestions) -> None:
    first = len(BOUNDARIES) + 1
    for turn in range(first, first + max(2, KILLS // 20)):
        hunt.deliver(turn)
        hunt.attempt(INGEST, f"ingest {turn}", killer=at_random(hunt.rng.random() * SECONDS))
        hunt.again(f"ingest {turn}")


def test_what_follows(hunt: Ingestions) -> None:
    """A run finds every broken row, also those whose ingestion was killed before it could say so; a revision gives the
    results of a recomputation."""
    check_source(renamed(hunt.run, "finds all"))
    lake = hunt.lake
    still_open = open_rows(lake.lake, lake.contract, newest(lake.lake, lake.contract))
    assert {one["event_id"] for one in still_open.to_pylist()} == hunt.broken
    hunt.wanted = recomputed(hunt.run, lake.version(), hunt.run.windows)
    assert hunt.wanted != hunt.before
    revise(renamed(hunt.run, "revision"))
    hunt.done()
