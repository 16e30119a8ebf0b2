"""The open rows of a source's quarantine for people: how many by rule, and the first of them.

Many are counted and put in order by Spark. Both give the same rows in the same order.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf

from trendlake.pipelines.contracts.column_names import ID
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.ingest.open_rows import open_rows_by_spark, open_rows_here
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import either


@dataclass(frozen=True)
class OpenRows:
    """`counts`: of all open rows, by rule; `rows`: the first, by rule and `ID`, with the columns of `open_rows`."""

    counts: Counter[str]
    rows: pa.Table


def look(
    lake: Lake, contract: Contract, version: int, run_id: str | None, rule: str | None, limit: int | None
) -> OpenRows:
    """Those of `run_id`, else of any run, that break `rule`, else any; of the rows `limit`, else all. Raises
    SourceSchemaError, ContractRuleError."""
    return either(
        lambda: _picked(open_rows_here(lake, contract, version, run_id), rule, limit),
        lambda: _by_spark(lake, contract, version, run_id, rule, limit),
    )


def _picked(rows: pa.Table, rule: str | None, limit: int | None) -> OpenRows:
    if rule is not None:
        rows = rows.filter(pc.equal(rows["rule"], rule))
    counts = Counter(rows["rule"].to_pylist())
    ordered = rows.sort_by([("rule", "ascending"), (ID, "ascending")])
    return OpenRows(_by_name(counts), ordered if limit is None else ordered.slice(0, limit))


def _by_spark(
    lake: Lake, contract: Contract, version: int, run_id: str | None, rule: str | None, limit: int | None
) -> OpenRows:
    rows = open_rows_by_spark(lake, contract, version, run_id)
    if rule is not None:
        rows = rows.where(sf.col("rule") == rule)
    rows.persist()  # the count and the rows both read it
    try:
        counts = Counter({row["rule"]: row["count"] for row in rows.groupBy("rule").count().collect()})
        ordered = rows.orderBy("rule", ID)
        return OpenRows(_by_name(counts), (ordered if limit is None else ordered.limit(limit)).toArrow())
    finally:
        rows.unpersist()


def _by_name(counts: Counter[str]) -> Counter[str]:
    return Counter(dict(sorted(counts.items())))
