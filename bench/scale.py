"""The whole Spark job at scale: five times the events, a thousand times the keys, and what it holds in memory.

Each job is in a process and a session of its own, over a table that is there before; the first one fills the cache of
compiled kernels. Seconds are those of a processor, in the whole process tree; memory is the resident set, sampled four
times a second.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import duckdb
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from bench.measured import Measured, processor, show
from bench.spark_job import STEPS, by_step
from bench.trades import bench_project, run_of, session, trades
from trendlake.pipelines.project.paths import Project, find_project

EVENTS, MANY, COMPANIES, KEYS = 10_000_000, 50_000_000, 1_000, 1_000_000
EXPONENT = 1.2
"""Of Zipf's law: the share of the k-th key is proportional to k ** -EXPONENT."""
GB = 1e9


def scale(state: Path) -> list[Measured]:
    """Rows 24 to 27."""
    project = bench_project(state)
    few = job(project, "few", EVENTS, COMPANIES)
    few = job(project, "few", EVENTS, COMPANIES)
    many = job(project, "many", MANY, COMPANIES)
    skewed = job(project, "skewed", EVENTS, KEYS)
    growth = {name: many["seconds"][name] / few["seconds"][name] for name in few["seconds"]}
    worst = max(growth, key=lambda name: growth[name])
    after = [
        sum(seconds for name, seconds in one["seconds"].items() if name != "check_source") for one in (skewed, few)
    ]
    steps = f"{by_step(many['seconds'])}; {EVENTS:,}: {by_step(few['seconds'])}"
    peaks = f"all of it {few['all'] / GB:.2f} GB, Java {few['java'] / GB:.2f} GB"
    peer = few["duckdb"]
    return [
        Measured(
            f"{MANY:,} events of {EVENTS:,}: {worst}, the step that grows most",
            growth[worst],
            "times",
            7.0,
            steps,
            at_most=True,
        ),
        Measured(
            f"{KEYS:,} keys by Zipf's law of {COMPANIES:,} evenly: compute, check_results, publish",
            after[0] / after[1],
            "times",
            4.0,
            f"{EVENTS:,} events, {skewed['rows']:,} result rows: {by_step(skewed['seconds'])}",
            at_most=True,
        ),
        Measured(
            "peak of the largest worker", few["worker"] / GB, "GB", 1.0, f"{EVENTS:,} events; {peaks}", at_most=True
        ),
        Measured(
            "all memory of the job, of DuckDB's for the sort",
            few["all"] / peer,
            "times",
            3.0,
            f"DuckDB {peer / GB:.2f} GB",
            at_most=True,
        ),
    ]


def job(project: Project, name: str, events: int, keys: int) -> dict[str, Any]:
    """What a job says of itself; its table is made by the first one of that name."""
    words = [str(project.state), name, str(events), str(keys)]
    for action in ("write", "run", "sort"):
        command = [sys.executable, "-m", "bench.scale", action, *words]
        done = subprocess.run(command, cwd=find_project().root, stdout=subprocess.PIPE, text=True, check=True)
        if action == "run":
            said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        elif action == "sort":
            said["duckdb"] = json.loads(done.stdout.splitlines()[-1])
    return said


def act(action: str, state: str, name: str, events: int, keys: int) -> Any:
    """One part of `job`, in a process of its own."""
    project = replace(find_project(), state=Path(state) / name)
    source = project.state / "warehouse" / "sources" / "trades"
    if action == "sort":
        query = (
            f"SELECT company, event_time, price FROM read_parquet('{source}/*.parquet') ORDER BY company, event_time"
        )
        duckdb.sql(query).to_arrow_table()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if action == "write" and source.exists():
        return None
    spark = session()
    try:
        return write(spark, str(source), events, keys) if action == "write" else measured(spark, project, name)
    finally:
        spark.stop()


def write(spark: SparkSession, path: str, events: int, keys: int) -> None:
    """Trades in order of time; many keys are drawn by Zipf's law."""
    drawn = trades(spark, events, keys)
    if keys > COMPANIES:
        power = 1 - EXPONENT  # the inverse of the law's distribution, as if k were a real number
        share = sf.rand(1) * (1 - float(keys) ** power)
        drawn = drawn.withColumn("company", sf.format_string("C%07d", sf.floor(sf.pow(1 - share, 1 / power))))
    drawn.write.format("delta").save(path)


def measured(spark: SparkSession, project: Project, name: str) -> dict[str, Any]:
    """Seconds by step, bytes at the peak, rows published."""
    run = run_of(spark, project, f"{name}_{os.getpid()}")
    with peaks() as held:
        seconds = {step.__name__: processor(lambda step=step: step(run)) for step in STEPS}  # type: ignore[misc]
    return {"seconds": seconds, "rows": run.need("publish").rows_out, **held}


@contextmanager
def peaks() -> Iterator[dict[str, int]]:
    """The largest resident sets of a worker, of Java, and of all processes together; this one among them."""
    held, ended = {"worker": 0, "java": 0, "all": 0}, Event()

    def look() -> None:
        while not ended.wait(0.25):
            sizes = {"worker": [0], "java": [0], "this": [0]}
            for process, kind in tree():
                try:
                    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
                except OSError:  # it has ended
                    continue
                sizes[kind].append(pages * os.sysconf("SC_PAGE_SIZE"))
            held["worker"] = max(held["worker"], *sizes["worker"])
            held["java"] = max(held["java"], *sizes["java"])
            held["all"] = max(held["all"], sum(map(sum, sizes.values())))

    thread = Thread(target=look, daemon=True)
    thread.start()
    try:
        yield held
    finally:
        ended.set()
        thread.join()


def tree() -> Iterator[tuple[int, str]]:
    """This process and those that it has started, with what they are."""
    children: dict[int, list[tuple[int, str]]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, rest = (folder / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        children.setdefault(int(rest.split()[1]), []).append((int(folder.name), name))
    waiting = [(os.getpid(), "this")]
    while waiting:
        process, kind = waiting.pop()
        yield process, kind
        waiting += [(one, "java" if name == "java" else "worker") for one, name in children.get(process, [])]


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(json.dumps(act(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))))
    else:
        folder = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve()
        show(scale(folder / "bench" / "scale"), "scale")
