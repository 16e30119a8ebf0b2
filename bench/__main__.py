"""All benchmarks, as a table, JSON and docs/benchmarks.md: `make bench`. One alone: `python -m bench.automata`."""

from __future__ import annotations

import os
from pathlib import Path

from bench.airflow_batch import airflow_batch
from bench.algebra import algebra
from bench.automata import automata
from bench.batches import batches
from bench.dag_import import dag_import
from bench.daily_history import daily_history
from bench.engine import engine
from bench.family import family
from bench.flights_backfill import flights_backfill
from bench.flink.java import jars
from bench.flink.peers import peers
from bench.matches import matches
from bench.measured import Measured, show
from bench.memory import memory
from bench.page import PAGE, benchmarks_page, machine
from bench.revisions import revisions
from bench.sharing import sharing
from bench.small_runs import small_runs
from bench.spark_job import spark_job
from bench.time_shards import time_shards
from bench.warm_start import warm_start


def measured(folder: Path) -> dict[str, list[Measured]]:
    """The rows of every benchmark, by the title of their section. Tables are made under `folder`."""
    return {
        "Kind trends": [*engine(), memory()],
        "Kind automaton": automata(),
        "Kind matches": matches(),
        "Kind algebra": algebra(),
        "Many patterns": [*sharing(), *family(), *batches(folder / "batches")],
        "Start of a worker": [warm_start()],
        "The whole Spark job": spark_job(folder / "lake"),
        "Revisions": revisions(folder / "lake"),
        "One hot key": time_shards(folder / "lake"),
        "Small runs": [*small_runs(folder / "small"), *daily_history(folder / "daily")],
        "Airflow": [flights_backfill(folder / "flights"), *dag_import(), *airflow_batch(folder / "airflow")],
        "Flink CEP": peers(folder / "flink") if jars(folder / "flink") else [],
    }


if __name__ == "__main__":
    sections = measured(Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve() / "bench")
    show([row for rows in sections.values() for row in rows])
    PAGE.write_text(benchmarks_page(sections, machine()))
    print(f"Page: {PAGE}")
