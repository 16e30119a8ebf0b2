"""All benchmarks in one table: `make bench`. One file alone: `python -m bench.automata`."""

from __future__ import annotations

import os
from pathlib import Path

from bench.automata import automata
from bench.dag_import import dag_import
from bench.engine import engine
from bench.flights_backfill import flights_backfill
from bench.flink.java import jars
from bench.flink.peers import peers
from bench.matches import matches
from bench.measured import show
from bench.memory import memory
from bench.revisions import revisions
from bench.small_runs import small_runs
from bench.spark_job import spark_job
from bench.time_shards import time_shards
from bench.warm_start import warm_start

if __name__ == "__main__":
    folder = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve() / "bench"
    rows = [*engine(), *automata(), *matches(), memory(), warm_start()]
    rows += [*spark_job(folder / "lake"), *revisions(folder / "lake"), *time_shards(folder / "lake")]
    rows += small_runs(folder / "small")
    rows += [flights_backfill(folder / "flights"), *dag_import()]
    if jars(folder / "flink"):
        rows += peers(folder / "flink")
    show(rows)
