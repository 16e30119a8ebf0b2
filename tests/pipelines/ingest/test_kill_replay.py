"""SIGKILL of the driver that puts repaired rows back, at each boundary of its writes, as files appear and at random:
the source has the broken rows or the repaired ones, all of the file, each once; done again, it comes to its end.

`make chaos` runs it.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support import delta_files
from tests.support.flights import all_steps, renamed
from tests.support.kills import RECORD, Hunt, Killer, at_random
from tests.support.recomputation import recomputed
from tests.support.signal_patterns import PATTERNS
from tests.support.signals import DAY_US, START_US, signals
from tests.support.victim import REPLAY
from trendlake.pipelines.ingest.open_rows import open_rows
from trendlake.pipelines.ingest.replay import newest, read_repaired, replay
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.revise import revise

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.chaos]

NOTHING_YET = ("before merging source",)
ALL_DONE = ("after merging source", f"before {RECORD}", f"after {RECORD}")
KILLS = int(os.environ.get("TRENDLAKE_KILLS", "0"))
FIRST_DAY, LAST_DAY = 0.5, 2.5
BROKEN = 6
"""Rows to be repaired for each kill: four of a file of their own, two among good ones."""
SECONDS = 6.0
"""A replay takes about as long."""

Rows = Counter[tuple[Any, ...]]


def row(ident: str, number: int, price: int) -> dict[str, Any]:
    at = START_US + number * DAY_US // 24
    return {
        "event_id": ident,
        "event_time": at,
        "event_type": "A",
        "place": "ns"[number % 2],
        "price": price,
        "remark": "",
    }


@dataclass
class Replays(Hunt):
    """Victims that replay. `before`, `wanted` of the source, where a hunt has them of the results."""

    old: Rows | None = None
    new: Rows | None = None
    quarantined: Rows | None = None
    version: int = 0

    def break_rows(self, turn: int) -> None:
        """Some rows more that break the contract, set apart by a run, and the file in which they are mended."""
        names = [f"broken_{turn}_{number}" for number in range(BROKEN)]
        good = [row(f"good_{turn}_{number}", 13 + number, number) for number in range(5)]
        rows = [row(name, 14 + 5 * number, 20 + number) for number, name in enumerate(names)]
        self.lake.insert(rows[:4])
        self.lake.insert([*rows[4:], *good])
        check_source(renamed(self.run, f"finds {turn}"))
        self.version = newest(self.lake.lake, self.lake.contract)
        still_open = open_rows(self.lake.lake, self.lake.contract, self.version)
        assert sorted(still_open["event_id"].to_pylist()) == names
        place = still_open.schema.get_field_index("price")
        mended = still_open.set_column(
            place, "price", pa.array([turn % 10] * BROKEN, still_open.schema.field(place).type)
        )
        self.file = str(self.folder / f"mended_{turn}.parquet")
        pq.write_table(mended, self.file)
        self.old, self.quarantined = self.source(), self.set_apart()
        self.new = self.mended(names, turn % 10)

    def mended(self, names: list[str], price: int) -> Rows:
        columns = self.lake.contract_columns
        ident, cost = columns.index("event_id"), columns.index("price")
        new = Rows()
        for row, copies in (self.old or Rows()).items():
            new[(*row[:cost], price, *row[cost + 1 :]) if row[ident] in names else row] += copies
        return new

    def source(self) -> Rows:
        return self._rows(self.lake.source, self.lake.contract_columns)

    def set_apart(self) -> Rows:
        return self._rows(self.lake.warehouse.quarantine("signals"), [*self.lake.contract_columns, "run_id", "rule"])

    def _rows(self, path: str, names: list[str]) -> Rows:
        return Rows(tuple(row[name] for name in names) for row in delta_files.rows(path, names))

    def look(self, steps: tuple[str, ...], run_id: str) -> None:
        """What must hold at any time; the results are nobody's business here."""
        source, passed = self.source(), [line for _, lines in self.attempts[run_id] for line in lines]
        assert source in (self.old, self.new), "some rows of the file are in the source and others are not"
        if "after merging source" in passed:
            assert source == self.new
        if "before merging source" not in passed:
            assert source == self.old
        assert len(delta_files.commits(self.lake.source)) - 1 == self.version + (source == self.new)
        assert self.set_apart() == self.quarantined, "the record of what was set apart has changed"
        assert self.published() == self.before, "a replay touches no results"
        names = ["run_id", "stage", "status", "source_version"]
        records = [one for one in delta_files.rows(self.lake.warehouse.runs, names) if one["run_id"] == run_id]
        assert passed.count(f"after {RECORD}") <= len(records) <= passed.count(f"before {RECORD}")
        for one in records:
            assert (one["stage"], one["status"], one["source_version"]) == ("ingest", "succeeded", self.version + 1)
            assert source == self.new

    def again(self, run_id: str) -> None:
        """Done again, and once more: it comes to its end, and what is there is passed over."""
        there = BROKEN if self.source() == self.new else 0
        counts = ((BROKEN - there, there), (0, BROKEN))
        for name, wanted in zip((run_id, f"{run_id} once more"), counts, strict=True):
            file = read_repaired(Path(str(self.file)), self.lake.contract)
            done = replay(self.lake.lake, self.lake.contract, file, name)
            assert (done.repaired, done.there, done.unchanged, done.version) == (*wanted, 0, self.version + 1)
        assert self.source() == self.new
        assert self.set_apart() == self.quarantined
        assert len(delta_files.commits(self.lake.source)) - 1 == self.version + 1
        left = open_rows(self.lake.lake, self.lake.contract, self.version + 1)
        assert left.num_rows == 0


def at_entry(number: int) -> Killer:
    """As soon as so many entries have come to the source's table: data files, images for the change feed, the log."""

    def due(hunt: Hunt) -> None:
        least, deadline = entries(hunt) + number, time.monotonic() + 10 * SECONDS
        while entries(hunt) < least and time.monotonic() < deadline:
            time.sleep(0.001)

    return Killer("as a file appears", due)


def entries(hunt: Hunt) -> int:
    return sum(1 for _ in Path(hunt.lake.source).rglob("*"))


@pytest.fixture(scope="module")
def hunt(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replays]:
    """A lake with some good signals, published."""
    lake = signals(spark, tmp_path_factory.mktemp("replays") / "project", PATTERNS["plain"])
    lake.insert([row(f"e{number}", 10 + number, number % 10) for number in range(40)])
    run = lake.run(FIRST_DAY, LAST_DAY, "any")
    all_steps(renamed(run, "first"))
    replays = Replays(lake, run, random.Random(3))
    replays.before = replays.published()
    yield replays
    replays.close()


def test_killed_at_each_boundary(hunt: Replays) -> None:
    """Each time with rows of its own; then done again."""
    for turn, place in enumerate((*NOTHING_YET, *ALL_DONE)):
        hunt.break_rows(turn)
        assert not hunt.attempt(REPLAY, f"replay {turn}", place)
        assert (hunt.source() == hunt.new) == (place in ALL_DONE)
        hunt.again(f"replay {turn}")


def test_killed_again_and_again(hunt: Replays) -> None:
    """The same rows: one victim dies before the commit, one after it, one that finds all done before it says so."""
    hunt.break_rows(10)
    for place in (NOTHING_YET[-1], *ALL_DONE[:2]):
        assert not hunt.attempt(REPLAY, "replay", place)
    assert hunt.attempts["replay"][-1][1] == [ALL_DONE[1]]  # nothing was left to merge
    assert hunt.attempt(REPLAY, "replay")
    hunt.again("replay")


def test_killed_as_files_appear_and_at_random(hunt: Replays) -> None:
    """While files are written, between them and their commit, in the middle of a commit."""
    killers = [at_entry(number) for number in (1, 3, 5)]
    killers += [at_random(hunt.rng.random() * SECONDS) for _ in range(max(2, KILLS // 20))]
    for turn, killer in enumerate(killers, start=20):
        hunt.break_rows(turn)
        hunt.attempt(REPLAY, f"replay {turn}", killer=killer)
        hunt.again(f"replay {turn}")


def test_a_revision_follows(hunt: Replays) -> None:
    """After all of it the results are those of a recomputation, repaired rows in them."""
    hunt.break_rows(50)
    hunt.again("replay 50")
    hunt.wanted = recomputed(hunt.run, hunt.lake.version(), hunt.run.windows)
    assert hunt.wanted != hunt.before
    revise(renamed(hunt.run, "revision"))
    hunt.done()
