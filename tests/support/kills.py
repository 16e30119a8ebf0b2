"""Killing drivers: a source that changes, victims that work on it, and what must hold after each kill.

After a kill the published rows are those of before or those of a recomputation, whole; of the quarantine each run has
all of its rows once or none; the run record tells of ended stages only. Then the work is done again, to its end.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq

from tests.conftest import PART
from tests.support import delta_files
from tests.support.drivers import PATIENCE, REVISE, RUN, Victim, executor_of
from tests.support.flights import renamed
from tests.support.recomputation import in_order, recomputed
from tests.support.signal_changes import change
from tests.support.signals import Signals
from tests.support.victim import Order
from trendlake.pipelines.lake.lake import read_at
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.runs.record import find
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Stage
from trendlake.pipelines.steps.revise import revise
from trendlake.pipelines.steps.sequence import STEPS

TALLY: Counter[str] = Counter()
"""Kills by where they came; `make chaos` prints them."""
RECORD = "writing run record"


@dataclass
class Hunt:
    """A lake, one pattern over it, and the victims."""

    lake: Signals
    run: Run
    rng: random.Random
    file: str | None = None
    """The repaired rows that are replayed, or the rows that are ingested, where that is the work."""
    tidy: bool = False
    """Whether what happens to the source breaks nothing."""
    by_spark: bool = False
    """Whether Spark computes its victims' revisions, however small."""
    before: list[dict[str, Any]] = field(default_factory=list)
    wanted: list[dict[str, Any]] = field(default_factory=list)
    seen: int = 0
    """The version of the source that the results showed before."""
    anew: bool = False
    """Whether the source is another table since: a revision then sets apart as a run does."""
    spare: Victim | None = None
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    kills: int = 0
    seconds: dict[tuple[str, ...], float] = field(default_factory=lambda: {RUN: 12.0, REVISE: 6.0})
    """How long a victim is thought to take; learnt as they live and die."""
    attempts: dict[str, list[tuple[tuple[str, ...], list[str]]]] = field(default_factory=dict)
    """What each victim of a run was to do, and the boundaries it has passed."""
    bad: dict[int, Counter[tuple[Any, ...]]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.lake.project.root

    def change(self, *, first: bool = False) -> None:
        """Something happens to the source; from now on other rows are wanted."""
        self.before, self.seen, self.anew = self.wanted, self.lake.version(), False
        while True:
            if not first:
                for _ in range(self.rng.randrange(2, 5)):
                    if change(self.rng, self.lake, tidy=self.tidy) == "recreate":
                        self.anew = True
                        self.bad.clear()
            first = False  # where there are no results yet, something has to happen all the same
            self.wanted = recomputed(self.run, self.lake.version(), self.run.windows)
            if self.wanted != self.before:
                return

    def victim(self) -> Victim:
        mine = self.spare or Victim(self.folder, next(self.numbers))
        self.spare = None
        return mine

    def attempt(
        self,
        steps: tuple[str, ...],
        run_id: str,
        kill_at: int | str | None = None,
        killer: Killer | None = None,
        *,
        last: bool = False,
    ) -> bool:
        """One victim does the steps and is killed; whether it came to its end before. Then all is looked at. `last`: no
        other victim follows, so none is started ahead."""
        tries = self.attempts.setdefault(run_id, [])
        places = self.folder / f"places_{run_id.replace(' ', '_')}_{len(tries)}"
        run = self.run
        victim = self.victim()
        try:
            bounds = run.start_us, run.end_us
            victim.order(
                Order(
                    self.lake.pattern,
                    steps,
                    run_id,
                    *bounds,
                    str(places),
                    kill_at,
                    file=self.file,
                    by_spark=self.by_spark,
                )
            )
            if not last:
                self.spare = Victim(self.folder, next(self.numbers))  # comes up while this one works
            if killer is not None:
                killer(self, victim)
            survived = victim.survived()
        finally:
            victim.kill()
        passed = places.read_text().splitlines() if places.exists() else []
        tries.append((steps, passed))
        if not survived:
            self.kills += 1
            last = passed[-1] if passed else "the beginning"
            what = "run" if steps[-1] in STEPS else steps[-1]
            TALLY[f"driver, {what}: {last}" if kill_at else f"driver, {what}: {killer.name if killer else ''}"] += 1
        self.look(steps, run_id)
        return survived

    def each_boundary(self, steps: tuple[str, ...], run_id: str) -> None:
        """Killed at the first boundary; the step that was killed done again and killed at its second, and so on, from
        step to step, until the last comes to its end."""
        left, number = steps, 1
        while True:
            if self.attempt(left, run_id, kill_at=number):
                break
            passed = self.attempts[run_id][-1][1]
            ends = [place for place, line in enumerate(passed, start=1) if line == f"after {RECORD}"]
            left = left[len(ends) :]
            number = number - ends[-1] + 1 if ends else number + 1
            if not left:
                break
        self.done()

    def beneath(self, victim: Victim, steps: tuple[str, ...], run_id: str, what: str) -> None:
        """The `executor` of a kernel, or its Python `worker`, is killed while the kernel runs; the victim comes to its
        end all the same, with no more said to it."""
        marker, places = self.folder / f"held_{run_id}", self.folder / f"places_{run_id}"
        run = self.run
        victim.send(Order(self.lake.pattern, steps, run_id, run.start_us, run.end_us, str(places), held=str(marker)))
        deadline = time.monotonic() + PATIENCE
        while not marker.exists():
            assert victim.process.poll() is None, victim.log.read_text()
            assert time.monotonic() < deadline, victim.log.read_text()
            time.sleep(0.01)
        worker = int(marker.read_text())
        os.kill(worker if what == "worker" else executor_of(worker), signal.SIGKILL)
        assert victim.survived(), victim.log.read_text()
        TALLY[f"{what}, {'revise' if steps == REVISE else 'run'}: in a kernel"] += 1
        self.attempts[run_id] = [(steps, places.read_text().splitlines())]
        self.look(steps, run_id)
        self.done()

    def look(self, steps: tuple[str, ...], run_id: str) -> None:
        """What must hold at any time."""
        rows = self.published()
        assert rows in (self.before, self.wanted), "neither what was published nor what should be"
        self.look_at_quarantine(steps, run_id)
        self.look_at_record(run_id, rows)

    def published(self) -> list[dict[str, Any]]:
        schema = self.run.plan.result_schema
        rows = delta_files.table(self.lake.warehouse.results(self.run.name))
        if rows is None or not rows.num_rows:
            return []
        return in_order(rows.select(schema.names).cast(schema).to_pylist(), self.run)

    def look_at_quarantine(self, steps: tuple[str, ...], run_id: str) -> None:
        """All of the rows that this run sets apart, each as often as it is there, or none."""
        version = self.lake.version()
        names = self.lake.contract_columns
        path = self.lake.warehouse.quarantine("signals")
        mine = [
            tuple(row[name] for name in names)
            for row in delta_files.rows(path, [*names, "run_id", "source_version"])
            if (row["run_id"], row["source_version"]) == (run_id, version)
        ]
        if not mine:
            return
        if steps == REVISE and not self.anew:
            expected = as_text(self.broken(version)) - as_text(self.broken(self.seen))
        else:
            time_at = names.index("event_time")
            low, high = self.run.span
            expected = as_text(
                Counter(
                    {
                        row: copies
                        for row, copies in self.broken(version).items()
                        if row[time_at] is None or low <= micros(row[time_at]) < high
                    }
                )
            )
        assert as_text(Counter(mine)) == expected, "the quarantine lacks rows of this run, or has them twice"

    def broken(self, version: int) -> Counter[tuple[Any, ...]]:
        """The rows of a version that break the contract."""
        if version not in self.bad:
            self.bad[version] = self._broken(version)
        return self.bad[version]

    def _broken(self, version: int) -> Counter[tuple[Any, ...]]:
        source = read_at(self.lake.lake, self.lake.source, version)
        bad = q.bad_rows(q.annotate(source, self.run.contract.rules), "", 0)
        return Counter(tuple(row.values()) for row in bad.select(*self.lake.contract_columns).toArrow().to_pylist())

    def look_at_record(self, run_id: str, rows: list[dict[str, Any]]) -> None:
        """The stages that have ended are told of, once for each time; no other is."""
        names = ["run_id", "stage", "status", "staged_version", "rows_out", "source_version"]
        records = [row for row in delta_files.rows(self.lake.warehouse.runs, names) if row["run_id"] == run_id]
        assert {row["status"] for row in records} <= {"succeeded"}
        begun, ended = Counter[str](), Counter[str]()
        for steps, passed in self.attempts[run_id]:
            for kind, count in (("before", begun), ("after", ended)):
                marks = [line for line in passed if line == f"{kind} {RECORD}"]
                count.update(step for step, _ in zip(steps, marks, strict=False))
        stages = Counter(str(row["stage"]) for row in records)
        assert ended <= stages <= begun, "the record does not tell what happened"
        for row in records:
            if row["stage"] in ("publish", "revise"):
                assert rows == self.wanted
            if row["stage"] == "compute":
                path = Path(self.lake.warehouse.staging(self.run.name, run_id), str(row["staged_version"]))
                assert sum(pq.read_metadata(file).num_rows for file in path.glob("*.parquet")) == row["rows_out"]

    def finish(self, steps: tuple[str, ...], run_id: str) -> None:
        """The rest of the steps, here: as Airflow does again the one that was killed, and then the others."""
        run = renamed(self.run, run_id)
        for step in steps:
            if find(run.lake, run.name, run_id, cast(Stage, step)) is None:
                (revise if step == "revise" else STEPS[step])(run)
        self.done()

    def done(self) -> None:
        assert self.published() == self.wanted, "done again, the results are not those of a recomputation"

    def close(self) -> None:
        if self.spare is not None:
            self.spare.kill()


@contextmanager
def hunting(lake: Signals, run: Run, seed: object, *, tidy: bool = False, by_spark: bool = False) -> Iterator[Hunt]:
    hunt = Hunt(lake, run, random.Random(f"{seed}{PART}"), tidy=tidy, by_spark=by_spark)
    try:
        yield hunt
    finally:
        hunt.close()


@dataclass(frozen=True)
class Killer:
    """Kills a victim from outside, when `due` returns."""

    name: str
    due: Callable[[Hunt], None]

    def __call__(self, hunt: Hunt, victim: Victim) -> None:
        self.due(hunt)
        victim.strike()


def at_random(seconds: float) -> Killer:
    return Killer("a random moment", lambda hunt: time.sleep(seconds))


def at_file(number: int, seconds: float) -> Killer:
    """As soon as so many entries have come to the logs of the tables and beside them: while files are written, between
    a file and its commit, in the middle of a commit. After `seconds` in any case."""

    def due(hunt: Hunt) -> None:
        root = Path(hunt.lake.warehouse.root)
        deadline, least = time.monotonic() + seconds, entries(root) + number
        while entries(root) < least and time.monotonic() < deadline:
            time.sleep(0.001)

    return Killer("as a file appears", due)


def entries(root: Path) -> int:
    """Entries of every table's folder and of its log."""
    tables = [*root.glob("*"), *root.glob("sources/*_quarantine"), *root.glob("results/*"), *root.glob("staging/*/*/*")]
    return sum(
        len(list(place.iterdir())) for table in tables for place in (table, table / "_delta_log") if place.is_dir()
    )


def as_text(rows: Counter[tuple[Any, ...]]) -> Counter[str]:
    """Rows as they can be compared: a NaN is not equal to another, and -0.0 is 0.0, which is what a revision sets apart
    in its place (docs/limits.md)."""
    plain = (tuple(value + 0.0 if isinstance(value, float) else value for value in row) for row in rows.elements())
    return Counter(map(repr, plain))


def micros(moment: Any) -> int:
    return round(moment.timestamp() * 1_000_000)
