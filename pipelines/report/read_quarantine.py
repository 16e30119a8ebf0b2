"""The rows that a run has set aside, from the quarantine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_type

from trendlake.pipelines.contracts.column_names import ADDED
from trendlake.pipelines.lake.lake import Lake, exists
from trendlake.pipelines.lake.road import NotHere
from trendlake.pipelines.lake.table import Having, Table
from trendlake.pipelines.report.database import Column, Database, spill_folder
from trendlake.pipelines.report.facts import QuarantineFacts, ReasonFacts, RunFacts, SampleFacts
from trendlake.pipelines.results.spark_order import texts_here
from trendlake.pipelines.spark.frames import frame_of

REASONS_SHOWN = 12
SAMPLES_SHOWN = 8
TEXT_LIMIT = 200
"""Characters of a quarantined value that are shown; a longer one ends in an ellipsis."""


def read_quarantine(lake: Lake, source: str, run: RunFacts) -> QuarantineFacts:
    """The rows that this run quarantined: how many rows, the most frequent rules and reasons, a sample row or more of
    each.

    The rows are those of the run's id and source version, whichever pattern's run of that id wrote them. Of a run that
    reads several tables only how many they are.
    """
    path = lake.warehouse.quarantine(source)
    recorded = next((s.rows_quarantined for s in run.stages if s.rows_quarantined is not None), None)
    if recorded == 0 or "," in source or not exists(lake, path):
        return QuarantineFacts(rows=recorded or 0)
    table = Table.at(lake, path)
    names = [name for name in table.names if name not in ADDED]
    columns = {"rule": Column("rule"), "reason": Column("reason"), "moment": Column("quarantined_at")}
    columns |= {f"v{i}": Column(name, shortened=TEXT_LIMIT + 1) for i, name in enumerate(names)}
    if run.source_version is not None:
        columns["version"] = Column("source_version")
    with Database(spill_folder(lake.warehouse)) as database:
        database.load(table, columns, Having("run_id", run.run_id))
        if run.source_version is not None:
            database.run("DELETE FROM rows WHERE version IS DISTINCT FROM ?", run.source_version)
        return _facts(lake, database, table, names, recorded)


def _facts(lake: Lake, database: Database, table: Table, names: Sequence[str], recorded: int | None) -> QuarantineFacts:
    stored, all_reasons = database.one("SELECT count(*), count(DISTINCT (rule, reason)) FROM rows")
    top = database.all(
        "SELECT rule, reason, count(*) AS n FROM rows GROUP BY ALL "
        f"ORDER BY n DESC, rule NULLS FIRST, reason NULLS FIRST LIMIT {REASONS_SHOWN}"
    )
    reasons = tuple(ReasonFacts(_str(rule), _str(reason), n) for rule, reason, n in top)
    return QuarantineFacts(
        rows=stored if recorded is None else recorded,
        stored=stored,
        reasons=reasons,
        other_reasons=all_reasons - len(reasons),
        other_rows=stored - sum(reason.rows for reason in reasons),
        samples=_samples(lake, database, table, names),
    )


def _samples(lake: Lake, database: Database, table: Table, names: Sequence[str]) -> tuple[SampleFacts, ...]:
    """A few rows, the rules taking turns: the first of each rule before the second of any."""
    asked = ", ".join(["rule", "reason", *(f"v{i}" for i in range(len(names)))])
    rows = database.all(
        f"SELECT {asked} FROM rows ORDER BY row_number() OVER "
        "(PARTITION BY rule ORDER BY reason NULLS FIRST, moment NULLS FIRST, rowid), "
        f"rule NULLS FIRST LIMIT {SAMPLES_SHOWN}"
    )
    kinds = [to_arrow_type(table.schema[name].dataType, timezone="UTC") for name in names]
    values = _texts(lake, [pa.array([row[2 + i] for row in rows], kind) for i, kind in enumerate(kinds)])
    return tuple(
        SampleFacts(
            _str(rule),
            _str(reason),
            tuple(
                (name, _short(texts[at])) for name, texts in zip(names, values, strict=True) if texts[at] is not None
            ),
        )
        for at, (rule, reason, *_) in enumerate(rows)
    )


def _texts(lake: Lake, columns: Sequence[pa.Array]) -> list[list[Any]]:
    """The values of each of the columns as Spark writes them, which is asked for those whose text is Java's own: of so
    few rows without a job."""
    texts, others = {}, {}
    for i, values in enumerate(columns):
        as_text = texts_here(values)
        if isinstance(as_text, NotHere):
            others[f"v{i}"] = values
        else:
            texts[i] = as_text.to_pylist()
    if any(len(values) for values in others.values()):
        frame = frame_of(lake.spark, pa.table(others))  # first: a column of Spark's needs a session that has started
        short = [sf.substring(sf.col(alias).cast("string"), 1, TEXT_LIMIT + 1).alias(alias) for alias in others]
        written = frame.select(*short).collect()
        texts |= {int(alias[1:]): [row[alias] for row in written] for alias in others}
    return [texts.get(i, []) for i in range(len(columns))]


def _str(value: str | None) -> str:
    return "" if value is None else str(value)


def _short(value: str) -> str:
    return value if len(value) <= TEXT_LIMIT else value[:TEXT_LIMIT] + "…"
