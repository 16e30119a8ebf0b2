"""A driver that dies: a Python process and a JVM of its own that do steps of a run, and are killed with SIGKILL.

    python -m tests.support.victim PROJECT MASTER

starts Spark and waits for orders (a line of JSON each, an `Order`) on its standard input. Around each
write to a table lies a boundary; they are counted, and at number `kill_at` the process kills its own group, the JVM
included. The writes are pyspark's and Delta's own: nothing in the pipeline knows of this.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from delta.tables import DeltaMergeBuilder, DeltaTableBuilder
from pyspark.sql import DataFrameWriter

from tests.conftest import FEW_ROWS, SETTINGS
from trendlake.pipelines.execute import worker
from trendlake.pipelines.execute.worker import Answers, Batches, Work
from trendlake.pipelines.ingest.deliver import ingest
from trendlake.pipelines.ingest.replay import read_repaired, replay
from trendlake.pipelines.lake import create, limits
from trendlake.pipelines.lake.here import write
from trendlake.pipelines.lake.here.read import TableHere
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Limits, Profile
from trendlake.pipelines.results import computation
from trendlake.pipelines.runs import record
from trendlake.pipelines.runs.run import Run, prepare
from trendlake.pipelines.spark.session import EXECUTOR, start_session
from trendlake.pipelines.steps.batch import Member, run_batch
from trendlake.pipelines.steps.revise import revise, revise_together
from trendlake.pipelines.steps.sequence import STEPS

REPLAY = ("replay",)
INGEST = ("ingest",)
BATCH, REVISE_BATCH = ("run batch",), ("revise batch",)
"""Of an order of several patterns."""
DELIVERY = "delivery"
"""Column of a file of deliveries: the number of the one that has the row, from 1."""
HELD = 60.0
"""Seconds that a held kernel waits for its killer."""


@dataclass(frozen=True)
class Order:
    """What to do, and when to die: at boundary `kill_at`, its number (from 1) or its name; None: not by one's own hand.

    `pattern`: a file, or several with `os.pathsep` between them. `places`: a file that gets a line for each boundary.
    `held`: a file that the first kernel makes, with its process's number, before it waits to be killed. `file`: the
    repaired rows of the step `replay`, or the deliveries of `ingest`. `by_spark`: no revision is computed here.
    """

    pattern: str
    steps: tuple[str, ...]
    run_id: str
    start_us: int
    end_us: int
    places: str
    kill_at: int | str | None = None
    held: str | None = None
    file: str | None = None
    by_spark: bool = False

    def text(self) -> str:
        return json.dumps(asdict(self))


def order_of(text: str) -> Order:
    document = json.loads(text)
    return Order(**document | {"steps": tuple(document["steps"])})


class Boundaries:
    """Counts the boundaries of an order, writes them down, and kills at the one that is asked for."""

    def __init__(self) -> None:
        self.file, self.kill_at, self.number = -1, cast("int | str | None", None), 0
        self.merged = ""

    def begin(self, order: Order) -> None:
        self.file = os.open(order.places, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.kill_at, self.number = order.kill_at, 0
        self.merged = "source" if order.steps in (REPLAY, INGEST) else "results"

    def reached(self, name: str) -> None:
        self.number += 1
        os.write(self.file, f"{name}\n".encode())
        if self.kill_at in (self.number, name):
            die()

    def around(self, kind: Any, method: str, name_of: Callable[..., str]) -> None:
        """Put a boundary before and after each call of `kind.method`."""
        real = getattr(kind, method)

        def wrapped(writer: Any, *args: Any, **named: Any) -> Any:
            name = name_of(writer, *args, **named)
            self.reached(f"before {name}")
            done = real(writer, *args, **named)
            self.reached(f"after {name}")
            return done

        setattr(kind, method, wrapped)


def die() -> None:
    """This process and its JVM, with no time for last words."""
    os.killpg(os.getpgid(0), signal.SIGKILL)


def table_of(path: str) -> str:
    """What is written to `path`, in a few words."""
    if "/staging/" in path:
        return "difference" if path.endswith("-difference") else "staging"
    if path.endswith("_quarantine"):
        return "quarantine"
    if "/sources/" in path:
        return "source"
    return "run record" if path.endswith("/trendlake_runs") else "results"


def committed(table: TableHere, note: str | None, line: Any, work: Callable[..., None]) -> str:
    """A commit of delta-rs. To the quarantine it has the name that Spark's write has; to a source, of more than an
    append, that of Spark's MERGE."""
    name = table_of(str(table.folder))
    if name == "quarantine":
        return f"writing {name}"
    merges = name == "source" and work.__qualname__.startswith(write.change.__name__)
    return f"{'merging' if merges else 'committing'} {name}"


def watch(boundaries: Boundaries) -> None:
    """Boundaries around all that pyspark, Delta and delta-rs write."""
    located = DeltaTableBuilder.location

    def location(builder: Any, path: str) -> DeltaTableBuilder:
        builder.place = path
        return located(builder, path)

    DeltaTableBuilder.location = location  # type: ignore[method-assign]
    boundaries.around(DataFrameWriter, "save", lambda writer, path: f"writing {table_of(path)}")
    boundaries.around(computation, "leave_staged", lambda *_: "writing staging")
    boundaries.around(record, "append_any", lambda *_: "writing run record")
    boundaries.around(write, "_commit", committed)
    boundaries.around(create, "created_here", lambda _, path, *__: f"creating {table_of(path)}")
    boundaries.around(DeltaTableBuilder, "execute", lambda builder: f"creating {table_of(builder.place)}")
    boundaries.around(DeltaMergeBuilder, "execute", lambda builder: f"merging {boundaries.merged}")


@contextmanager
def holding(marker: str | None, by_spark: bool) -> Iterator[None]:
    """The first kernel of all waits, once, for whoever kills its process or its executor: it runs in one, where no
    revision is small, or is to be `by_spark`. Where workers are processes of this machine, another function asks for
    its answers."""
    real, rows = worker.answers_of, limits.REVISED

    def held(work: Work) -> Callable[[Batches], Answers]:
        answers = real(work)

        def wait(batches: Batches) -> Answers:
            if not Path(str(marker)).exists():
                fresh = Path(f"{marker}.{os.getpid()}")
                fresh.write_text(str(os.getpid()))
                fresh.rename(str(marker))
                time.sleep(HELD)
            yield from answers(batches)

        return wait

    if marker is not None:
        worker.answers_of = computation.answers_of = held
    if marker is not None or by_spark:
        limits.REVISED = 0
    try:
        yield
    finally:
        worker.answers_of = computation.answers_of = real
        limits.REVISED = rows


def profile_of(folder: Path, master: str) -> Profile:
    """Light: one small JVM."""
    own = {
        EXECUTOR: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(folder / "tables"),
        "spark.local.dir": str(folder / "scratch"),
    }
    return Profile(master=master, spark=SETTINGS | FEW_ROWS | own, limits=Limits(driver_rows=1))


def main(folder: Path, master: str) -> None:
    project, profile = Project(folder, folder / "state"), profile_of(folder, master)
    spark = start_session(project, profile, "victim")
    boundaries = Boundaries()
    watch(boundaries)
    print("ready", flush=True)
    for line in sys.stdin:
        order = order_of(line)
        boundaries.begin(order)
        runs = [
            prepare(
                Lake.of(spark, Warehouse.of(profile, project)),
                project,
                profile,
                pattern,
                order.run_id,
                order.start_us,
                order.end_us,
            )
            for pattern in order.pattern.split(os.pathsep)
        ]
        with holding(order.held, order.by_spark):
            for step in order.steps:
                do(step, runs, order)
        print("survived", flush=True)
    die()


def do(step: str, runs: list[Run], order: Order) -> None:
    run = runs[0]
    if step in BATCH:
        members = [Member(run.name, run) for run in runs]
        list(run_batch(run.lake, members))
        raise_first(member.error for member in members)
    elif step in REVISE_BATCH:
        raise_first(attempt.error for attempt in revise_together(runs))
    elif step == "replay":
        replay(run.lake, run.contract, read_repaired(Path(str(order.file)), run.contract), run.run_id)
    elif step == "ingest":
        file = Path(str(order.file))
        ingest(run.lake, run.contract, deliveries_of(file), feed=file.stem, run_id=run.run_id)
    else:
        (revise if step == "revise" else STEPS[step])(run)


def raise_first(errors: Iterable[Exception | None]) -> None:
    for error in errors:
        if error is not None:
            raise error


def deliveries_of(file: Path) -> Iterator[pa.Table]:
    """In their order."""
    rows = pq.read_table(file)
    for number in range(1, pc.max(rows[DELIVERY]).as_py() + 1):
        yield rows.filter(pc.equal(rows[DELIVERY], number)).drop_columns([DELIVERY])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
