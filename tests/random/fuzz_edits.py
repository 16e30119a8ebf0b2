"""Random chains of edits of a pattern, runs of parts of its time, changes of the source and revisions, each step
compared with a computation from nothing: `make fuzz KIND=edits SECONDS=600`.

A chain is drawn from a number. After each step each row of the table must be one of these:

- of the present form, in windows that the ledger calls published: there the rows are those that the kernels give at the
  version of the source that the ledger names;
- another one, in windows that the ledger calls another form's, so that `revise` and `show` tell of it.

A chain that fails is tried again without each of its steps, and the shortest one that still fails is printed.
"""

from __future__ import annotations

import random
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.conftest import FEW_ROWS, ROOT, SETTINGS
from tests.support.flights import all_steps, renamed
from tests.support.promises import agree, replayed
from tests.support.recomputation import in_order, recomputed
from tests.support.signal_changes import change
from tests.support.signal_patterns import EDITS, KEYS, PATTERNS
from tests.support.signals import DAY_US, IN_DRIVER, IN_WORKERS, START_US, batch, signals, tidy_batch
from trendlake.cep_core import AnyPlan
from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.errors import ResultsTypeError, StepOrderError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.lake import exists
from trendlake.pipelines.project.paths import find_project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.results.ledger import Ledger, read_ledger
from trendlake.pipelines.results.read import Selection, read_rows
from trendlake.pipelines.results.reuse import row_hashes
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.spark.session import start_session
from trendlake.pipelines.steps.revise import revise

EDGES = (0.0, 0.5, 1.0, 1.25, 2.0, 3.0)
"""Days at which runs begin and end."""
FORMS = {
    **KEYS,
    **{name: text for name, text in PATTERNS.items() if name != "matches without overlap"},
    **{f"{name}: {edit}": PATTERNS[name].replace(old, new) for edit, (name, old, new) in EDITS.items()},
}
DOCUMENTS = tuple(name for name, text in FORMS.items() if "kind: xml_join" in text)
EVENTS = tuple(name for name in FORMS if name not in DOCUMENTS)
ROADS = ("here",) * 12 + ("by Spark",) * 5 + ("in workers",)


@dataclass(frozen=True)
class Step:
    """`what`: edit, run, change, revise or heal (what a revision calls another form's is run again). `form`: of an
    edit; `days`: of a run; `road`: who writes; `number`: of what is drawn at random."""

    what: str
    form: str = ""
    days: tuple[float, float] = (EDGES[0], EDGES[-1])
    road: str = "here"
    number: int = 0

    def __str__(self) -> str:
        if self.what == "edit":
            return f"edit: {self.form}"
        if self.what == "change":
            return f"change number {self.number}"
        return f"{self.what} {self.road}" + (f", days {self.days[0]} to {self.days[1]}" if self.what == "run" else "")


@dataclass(frozen=True)
class Chain:
    """`number`: of its first events."""

    number: int
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return "\n".join([f"events number {self.number}", *map(str, self.steps)])


@dataclass
class Tally:
    """What was done, in how many chains."""

    chains: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    edits: Counter[str] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        done = ", ".join(f"{count:,} {what}" for what, count in sorted(self.steps.items()))
        return [f"{self.chains:,} chains: {done}", f"{len(self.edits):,} different edits"]


def chain(number: int, most: int = 9) -> Chain:
    """Of up to `most` steps; edits between few forms, so that there is a way there and back."""
    rng = random.Random(f"edits {number}")
    names = DOCUMENTS if rng.random() < 0.2 else EVENTS
    related = [name for name in names if name in KEYS] if rng.random() < 0.6 else list(names)
    forms = rng.sample(related, min(len(related), rng.choice([2, 2, 3])))
    steps = [Step("edit", form=forms[0]), Step("run", road=rng.choice(ROADS))]
    now = forms[0]
    for at in range(rng.randrange(2, most)):
        what = rng.choices(["edit", "run", "change", "revise", "heal"], [3, 4, 2, 2, 1])[0]
        if what == "edit":
            now = rng.choice([name for name in forms if name != now])
        first, last = sorted(rng.sample(range(len(EDGES)), 2))
        days = (EDGES[0], EDGES[-1]) if rng.random() < 0.3 else (EDGES[first], EDGES[last])
        steps.append(Step(what, now, days, rng.choice(ROADS), 1000 * number + at))
    return Chain(number, tuple(steps))


class Warehouse:
    """A table under a chain of steps."""

    def __init__(self, spark: SparkSession, folder: Path, done: Chain) -> None:
        text = next((FORMS[step.form] for step in done.steps if step.what == "edit"), FORMS["one group"])
        self.lake = signals(spark, folder / "project", text)
        self.rng = random.Random(f"events {done.number}")
        self.tidy = self.rng.random() < 0.7
        self.lake.insert((tidy_batch if self.tidy else batch)(self.rng, 24))
        self.plans: dict[str, AnyPlan] = {}
        """Of each hash that rows may have, the plan that made them."""

    def do(self, number: int, step: Step) -> None:
        """Does the step; raises AssertionError where something is not as it should be."""
        run = self._run(step.days, step.road, f"step {number}")
        if step.what == "edit":
            self.lake.edit(FORMS[step.form])
        elif step.what == "change":
            change(random.Random(f"change {step.number}"), self.lake, tidy=self.tidy, by_spark=False)
        elif step.what == "run":
            self._compute(run, step.road)
        elif step.what == "revise":
            self._revise(run, step.road)
        else:
            self._heal(run, number, step.road)
        self._look(f"look {number}")

    def end(self) -> None:
        """A run of all time: the table is then what a fresh warehouse would have, and nothing is said of other rows."""
        run = self._run((EDGES[0] - 2, EDGES[-1] + 2), "here", "end")
        if not self._compute(run, "here"):
            return
        agree(self.lake, run)
        record = revise(renamed(run, "last look"))
        assert [check.name for check in record.checks if check.name in ("stale_rows", "stale_versions")] == []
        replayed(self.lake, run)

    def _run(self, days: tuple[float, float], road: str, run_id: str) -> Run:
        lake = replace(self.lake, profile=IN_WORKERS if road == "in workers" else IN_DRIVER)
        run = lake.run(*days, run_id)
        self.plans |= dict.fromkeys(hashes(run), run.plan)
        return run

    def _compute(self, run: Run, road: str) -> bool:
        """False where the form has a column of another type than the table: the run is refused, and changes nothing."""
        before = self._rows(run)
        try:
            with written(road):
                all_steps(run)
        except ResultsTypeError:
            assert before == self._rows(run)
            return False
        return True

    def _revise(self, run: Run, road: str) -> None:
        try:
            with written(road):
                revise(run)
        except ResultsTypeError:
            return
        except StepOrderError as error:  # all that is published is of another form
            if "has published nothing" not in str(error):
                raise
            return
        mine = [item.sources for item in self._ledger(run).segments if item.plan_hash == run.plan.hash]
        shown = {None if sources is None else sources.version for sources in mine}
        assert shown <= {self.lake.version(), None}

    def _heal(self, run: Run, number: int, road: str) -> None:
        """Runs the windows that the ledger calls another form's, and says nothing of afterwards."""
        for at, segment in enumerate(self._ledger(run).segments):
            if segment.plan_hash == run.plan.hash:
                continue
            windows = run.plan.windows
            ends = windows.end(segment.first) - windows.slide, windows.end(segment.last)
            days = [(end - START_US) / DAY_US for end in ends]
            if not self._compute(self._run((days[0], days[1]), road, f"heal {number} {at}"), road):
                return
        others = [item for item in self._ledger(run).segments if item.plan_hash != run.plan.hash]
        assert others == []

    def _ledger(self, run: Run) -> Ledger:
        return read_ledger(run.lake, run.name, run.plan, run.contract.name)

    def _rows(self, run: Run) -> list[dict[str, Any]]:
        path = run.warehouse.results(run.name)
        return DeltaTable(path).to_pyarrow_table().to_pylist() if exists(run.lake, path) else []

    def _look(self, run_id: str) -> None:
        run = self._run((EDGES[0], EDGES[-1]), "here", run_id)
        rows, plan, known = self._rows(run), run.plan, hashes(run)
        if not rows:
            return
        segments = self._ledger(run).segments
        mine = [item for item in segments if item.plan_hash == plan.hash and item.sources is not None]
        others = [item for item in segments if item.plan_hash != plan.hash or item.sources is None]

        def within(items: Sequence[Any], windows: range) -> bool:
            return any(item.first <= window <= item.last for item in items for window in windows)

        published = []
        for row in rows:
            windows = windows_of_row(plan, self.plans[row["plan_hash"]], row)
            if row["plan_hash"] in known and within(mine, windows):
                published.append(row)
                continue
            form = "this" if row["plan_hash"] in known else "another"
            assert not within(mine, windows) or form == "this", f"a row of another form in published windows: {row}"
            assert within(others, windows), f"a row of {form} form in windows that nobody names: {row}"
        expected = [
            row for item in mine for row in recomputed(run, item.sources.only.version, range(item.first, item.last + 1))
        ]
        names = plan.result_schema.names
        there = in_order([{name: row.get(name) for name in names} for row in published], run)
        assert there == in_order(expected, run), "rows of published windows"
        if set(names) <= set(rows[0]):
            stale = read_rows(run.lake, run.warehouse.results(run.name), plan, Selection()).stale
            in_form = [row for row in rows if row["plan_hash"] in known]
            assert stale >= len(rows) - len(in_form), "rows of another form, as `show` counts them"


def hashes(run: Run) -> set[str]:
    """Those that rows of the run's form may have, in its windows and near them."""
    windows = run.windows
    return row_hashes(run.plan, range(windows[0] - 50, windows[-1] + 50)) if windows else set()


def windows_of_row(plan: AnyPlan, of: AnyPlan, row: dict[str, Any]) -> range:
    """The window of `plan` that a row belongs to which the plan `of` has made."""
    (column, low, _), (own, own_low, _) = plan.owned(range(1)), of.owned(range(1))
    if own == column or {own, column} == {"start", "end"}:
        at = (micros(row[column]) - low) // plan.windows.slide
        return range(at, at + 1)
    end = of.windows.end((micros(row[own]) - own_low) // of.windows.slide)
    at = -((plan.windows.end(0) - end) // plan.windows.slide)
    return range(at, at + 1)


def micros(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)


@contextmanager
def written(road: str) -> Iterator[None]:
    """Who compares and writes rows: this process, or Spark."""
    if road == "here":
        yield
        return
    with patch.multiple(limits, PUBLISHED=-1, REVISED=-1, REWRITTEN_BYTES=-1):
        yield


def failure(spark: SparkSession, done: Chain, tally: Tally | None = None) -> str | None:
    """What goes wrong in a chain; None if nothing does."""
    with TemporaryDirectory() as folder:
        now = ""
        try:
            warehouse = Warehouse(spark, Path(folder), done)
            for number, step in enumerate(done.steps):
                warehouse.do(number, step)
                if tally is not None:
                    tally.steps[f"{step.what} {step.road}" if step.what not in ("edit", "change") else step.what] += 1
                    if step.what == "edit":
                        tally.edits[f"{now} -> {step.form}"] += 1
                        now = step.form
            warehouse.end()
        except (AssertionError, TrendlakeError) as error:
            return f"{type(error).__name__}: {error}"[:2000]
        except Exception:
            return traceback.format_exc()[-3000:]
    if tally is not None:
        tally.chains += 1
    return None


def shortest(spark: SparkSession, failed: Chain) -> tuple[Chain, str]:
    """The chain without the steps that are not needed to make it fail, and how it fails."""
    words = failure(spark, failed) or "it does not fail again"
    at = len(failed.steps) - 1
    while at >= 0:
        fewer = replace(failed, steps=(*failed.steps[:at], *failed.steps[at + 1 :]))
        said = failure(spark, fewer) if fewer.steps else None
        if said is not None:
            failed, words = fewer, said
        at = min(at, len(failed.steps)) - 1
    return failed, words


def search(seconds: float, first: int) -> int:
    """Chain after chain until the time is over; the exit status. With the settings of the tests: chains are small."""
    with TemporaryDirectory() as scratch:
        settings = {"spark.sql.warehouse.dir": f"{scratch}/tables", "spark.local.dir": f"{scratch}/local"}
        profile = Profile(master="local[2]", spark=SETTINGS | FEW_ROWS | settings)
        return _search(start_session(find_project(ROOT), profile, "trendlake fuzz"), seconds, first)


def _search(spark: SparkSession, seconds: float, first: int) -> int:
    tally, number, until = Tally(), first, time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            said = failure(spark, chain(number), tally)
            if said is not None:
                small, words = shortest(spark, chain(number))
                print(f"# chain {number}: {words}\n{small}")
                return 1
            number += 1
    finally:
        print("\n".join(f"# {line}" for line in tally.lines()))
        spark.stop()
    return 0
