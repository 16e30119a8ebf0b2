"""The rows that a run has set aside, from the quarantine. Few rows are counted in this process; more, and those of a
table elsewhere, by Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as sf

from trendlake.pipelines.contracts.column_names import ADDED
from trendlake.pipelines.delta import limits
from trendlake.pipelines.delta.local_log import local_errors
from trendlake.pipelines.delta.local_reader import table_here
from trendlake.pipelines.delta.tables import Warehouse, exists
from trendlake.pipelines.errors import LocalUnsupportedError
from trendlake.pipelines.report.facts import QuarantineFacts, ReasonFacts, RunFacts, SampleFacts
from trendlake.pipelines.spark.columns import column
from trendlake.pipelines.spark.frames import frame_of

REASONS_SHOWN = 12
SAMPLES_SHOWN = 8
TEXT_LIMIT = 200
"""Characters of a quarantined value that are shown; a longer one ends in an ellipsis."""
_COUNTED = ("run_id", "source_version", "rule", "reason", "quarantined_at")


def read_quarantine(spark: SparkSession, warehouse: Warehouse, source: str, run: RunFacts) -> QuarantineFacts:
    """The rows that this run quarantined: how many rows, the most frequent rules and reasons, a sample row or more of
    each.

    The rows are those of the run's id and source version, whichever pattern's run of that id wrote them.
    """
    path = warehouse.quarantine(source)
    recorded = next((s.rows_quarantined for s in run.stages if s.rows_quarantined is not None), None)
    if recorded == 0 or not exists(spark, path):
        return QuarantineFacts(rows=recorded or 0)
    try:
        return _read_here(spark, path, run, recorded)
    except LocalUnsupportedError:
        return _read_by_spark(spark, path, run, recorded)


def _read_here(spark: SparkSession, path: str, run: RunFacts, recorded: int | None) -> QuarantineFacts:
    """Raises LocalUnsupportedError."""
    table = table_here(spark, path).near("run_id", run.run_id)
    names = [name for name in table.schema.names if name not in _COUNTED]
    with local_errors():
        mine = table.rows_with((*_COUNTED, *names), pa.array([run.run_id], pa.string()), limits.QUARANTINE_READ)
        if run.source_version is not None:
            mine = mine.filter(pc.equal(mine["source_version"], run.source_version))
        mine = mine.combine_chunks()
        keys = mine.select(["rule", "reason", "quarantined_at"])
        rules, reasons, moments = (keys[name].to_pylist() for name in keys.column_names)
    counts = sorted(
        Counter(zip(rules, reasons, strict=True)).items(),
        key=lambda item: (-item[1], *(_place(text) for text in item[0])),
    )
    top = [{"rule": rule, "reason": reason, "n": n} for (rule, reason), n in counts[:REASONS_SHOWN]]
    places = sorted(range(mine.num_rows), key=lambda row: (_place(reasons[row]), _place(moments[row])))
    turns: Counter[str | None] = Counter()
    shown = []
    for row in places:
        turns[rules[row]] += 1
        if turns[rules[row]] <= SAMPLES_SHOWN:
            shown.append((turns[rules[row]], _place(rules[row]), row))
    chosen = [row for _, _, row in sorted(shown)[:SAMPLES_SHOWN]]
    columns = [name for name in table.schema.names if name not in ADDED]
    samples = []
    if chosen:  # Spark writes the values as texts: of so few rows without a job
        frame = frame_of(spark, mine.take(pa.array(chosen)))
        samples = frame.select("rule", "reason", *_texts(columns)).collect()
    return _facts(recorded, mine.num_rows, len(counts), top, _samples(samples, columns))


def _place(value: Any) -> tuple[bool, Any]:
    """A value's place in Spark's order: NULL comes first."""
    return (False, 0) if value is None else (True, value)


def _read_by_spark(spark: SparkSession, path: str, run: RunFacts, recorded: int | None) -> QuarantineFacts:
    mine = spark.read.format("delta").load(path).where(sf.col("run_id") == run.run_id)
    if run.source_version is not None:
        mine = mine.where(sf.col("source_version") == run.source_version)
    everything = SqlWindow.partitionBy(sf.lit(1))
    by_reason = mine.groupBy("rule", "reason").agg(sf.count(sf.lit(1)).alias("n"))
    ranked = by_reason.withColumns(
        {"all_rows": sf.sum("n").over(everything), "all_reasons": sf.count(sf.lit(1)).over(everything)}
    )
    top = [row.asDict() for row in ranked.orderBy(sf.desc("n"), "rule", "reason").limit(REASONS_SHOWN).collect()]
    if not top:
        return QuarantineFacts(rows=recorded or 0)
    columns = [name for name in mine.columns if name not in ADDED]
    samples = _samples(_samples_by_spark(mine, columns), columns)
    return _facts(recorded, top[0]["all_rows"], top[0]["all_reasons"], top, samples)


def _samples_by_spark(mine: DataFrame, columns: Sequence[str]) -> list[Any]:
    """A few rows, the rules taking turns: the first of each rule before the second of any."""
    turn = sf.row_number().over(SqlWindow.partitionBy("rule").orderBy("reason", "quarantined_at"))
    shown = mine.select("rule", "reason", turn.alias("turn"), *_texts(columns))
    return shown.where(sf.col("turn") <= SAMPLES_SHOWN).orderBy("turn", "rule").limit(SAMPLES_SHOWN).collect()


def _texts(columns: Sequence[str]) -> list[Any]:
    return [
        sf.substring(column(name).cast("string"), 1, TEXT_LIMIT + 1).alias(f"v{i}") for i, name in enumerate(columns)
    ]


def _samples(rows: Sequence[Any], columns: Sequence[str]) -> tuple[SampleFacts, ...]:
    return tuple(
        SampleFacts(
            rule=_str(row["rule"]),
            reason=_str(row["reason"]),
            values=tuple((name, _short(row[f"v{i}"])) for i, name in enumerate(columns) if row[f"v{i}"] is not None),
        )
        for row in rows
    )


def _facts(
    recorded: int | None,
    stored: int,
    all_reasons: int,
    top: Sequence[Mapping[str, Any]],
    samples: tuple[SampleFacts, ...],
) -> QuarantineFacts:
    reasons = tuple(ReasonFacts(_str(row["rule"]), _str(row["reason"]), row["n"]) for row in top)
    return QuarantineFacts(
        rows=stored if recorded is None else recorded,
        stored=stored,
        reasons=reasons,
        other_reasons=all_reasons - len(reasons),
        other_rows=stored - sum(reason.rows for reason in reasons),
        samples=samples,
    )


def _str(value: str | None) -> str:
    return "" if value is None else str(value)


def _short(value: str) -> str:
    return value if len(value) <= TEXT_LIMIT else value[:TEXT_LIMIT] + "…"
