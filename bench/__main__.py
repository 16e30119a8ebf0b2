"""All benchmarks, as a table, JSON and docs/benchmarks.md: `make bench`.

Some sections only: `python -m bench "Kind algebra" "Airflow"`, and the page has the last numbers of the others. One
benchmark alone, without the page: `python -m bench.automata`.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.airflow_batch import airflow_batch
from bench.algebra import algebra
from bench.automata import automata
from bench.batches import batches
from bench.calendar import calendar
from bench.changed_tables import changed_tables
from bench.commands import commands
from bench.dag_import import dag_import
from bench.daily_history import daily_history
from bench.engine import engine
from bench.family import family
from bench.flights_backfill import flights_backfill
from bench.flink.java import jars
from bench.flink.peers import peers
from bench.lengths import lengths
from bench.lookups import lookups
from bench.matches import matches
from bench.measured import Measured, show
from bench.memory import memory
from bench.page import PAGE, benchmarks_page, machine
from bench.revisions import revisions
from bench.row_patterns import row_patterns
from bench.row_patterns_on_spark import on_spark as row_patterns_on_spark
from bench.scale import scale
from bench.sharing import sharing
from bench.small_runs import small_runs
from bench.sources import sources
from bench.spark_job import spark_job
from bench.time_shards import time_shards
from bench.warm_start import warm_start
from bench.xml_history import xml_history
from bench.xml_join import xml_join
from bench.xml_spark import on_spark

# The sections of the page in their order: each takes the folder in which its tables are made.
SECTIONS: Mapping[str, Callable[[Path], list[Measured]]] = {
    "Kind trends": lambda folder: [*engine(), *calendar(), memory()],
    "Length of trends": lambda folder: lengths(),
    "Kind automaton": lambda folder: automata(),
    "Kind matches": lambda folder: matches(),
    "Kind algebra": lambda folder: algebra(),
    "Kind match_recognize": lambda folder: row_patterns(),
    "Kind match_recognize on Spark": lambda folder: row_patterns_on_spark(folder / "row_patterns"),
    "Reference tables": lambda folder: lookups(),
    "Several tables": lambda folder: sources(),
    "Revisions of several tables": lambda folder: changed_tables(folder / "changed_tables"),
    "Kind xml_join": lambda folder: xml_join(folder / "xml_join"),
    "Many patterns in process": lambda folder: [*sharing(), *family()],
    "Many patterns on Spark": lambda folder: batches(folder / "batches"),
    "Start of a worker": lambda folder: [warm_start()],
    "The whole Spark job": lambda folder: spark_job(folder / "lake"),
    "Scale": lambda folder: scale(folder / "scale"),
    "Revisions": lambda folder: revisions(folder / "lake"),
    "One hot key": lambda folder: time_shards(folder / "lake"),
    "Commands": lambda folder: commands(folder / "commands"),
    "Small runs": lambda folder: small_runs(folder / "small"),
    "A long history": lambda folder: daily_history(folder / "daily"),
    "Many queries over documents on Spark": lambda folder: on_spark(folder / "xml_spark"),
    "A history of documents": lambda folder: xml_history(folder / "xml_history"),
    "Airflow": lambda folder: [flights_backfill(folder / "flights"), *dag_import(), *airflow_batch(folder / "airflow")],
    "Flink CEP": lambda folder: peers(folder / "flink") if jars(folder / "flink") else [],
}


def main(titles: Sequence[str], folder: Path) -> int:
    """Measures the sections `titles`, all of them if none is named; the page is written after each. The exit code.

    A section that fails is named at the end, and does not keep the others from the page.
    """
    if unknown := [title for title in titles if title not in SECTIONS]:
        print(f"No section {', '.join(unknown)}. Sections: {', '.join(SECTIONS)}", file=sys.stderr)
        return 2
    failed = []
    for title in titles or SECTIONS:
        try:
            rows = SECTIONS[title](folder)
        except (Exception, SystemExit):
            traceback.print_exc()
            failed.append(title)
            continue
        show(rows, section_name(title))
        PAGE.write_text(benchmarks_page(measured_sections(folder), machine(), PAGE.read_text()))
        print(f"Page: {PAGE}", flush=True)
    if failed:
        print(f"Failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def section_name(title: str) -> str:
    """The name of a section's JSON file: 'section_kind_trends'."""
    return f"section_{title.lower().replace(' ', '_')}"


def measured_sections(folder: Path) -> dict[str, list[Measured]]:
    """The last rows of every section that was measured in this clone, by title; no rows for the others."""
    files = {title: folder / f"{section_name(title)}.json" for title in SECTIONS}
    return {
        title: [Measured(**row) for row in json.loads(file.read_text())] if file.exists() else []
        for title, file in files.items()
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve() / "bench"))
