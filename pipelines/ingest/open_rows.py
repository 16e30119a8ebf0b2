"""The open rows of a source's quarantine: rows that a run has quarantined, that the source still has, and that break
the contract as it is.

Of a table on this machine's disk they are judged in this process, which takes a fraction of a second; of any other, and
where only Spark can say which they are, by Spark. Both give the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from trendlake.cep_core.events.arrays import arrow
from trendlake.pipelines.contracts.column_names import ID, RUNS, SINCE
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.ingest.row_ids import row_id_column, row_ids
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import Lake, exists, read_at
from trendlake.pipelines.lake.road import either, refuse
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.quality.quarantine import check_columns
from trendlake.pipelines.quality.uniqueness import BROKEN
from trendlake.pipelines.rules.split import split
from trendlake.pipelines.spark.columns import column

OLD = "__trendlake_old_"


def open_rows(lake: Lake, contract: Contract, version: int, run_id: str | None = None) -> pa.Table:
    """The source's rows at `version` that a run (`run_id`, else any) has quarantined and that break the contract as it
    is, in some order: the contract's columns, `ID`, `rule` (the first broken), `reason` (all), `RUNS` (how many have
    quarantined it), `SINCE` (when the first did). Raises SourceSchemaError, ContractRuleError."""
    about = lake, contract, version, run_id
    return either(lambda: open_rows_here(*about), lambda: open_rows_by_spark(*about).toArrow())


def open_rows_by_spark(lake: Lake, contract: Contract, version: int, run_id: str | None = None) -> DataFrame:
    """As `open_rows`. Raises SourceSchemaError, ContractRuleError."""
    source = read_at(lake, lake.warehouse.source(contract.name), version)
    check_columns(source.schema, contract)
    names = [item.name for item in contract.columns]
    source = source.select(*map(column, names))
    if not exists(lake, lake.warehouse.quarantine(contract.name)):
        seen = source.limit(0).withColumns({"run_id": sf.lit(""), "quarantined_at": sf.current_timestamp()})
    else:
        seen = lake.spark.read.format("delta").load(lake.warehouse.quarantine(contract.name))
    if run_id is not None:
        seen = seen.where(sf.col("run_id") == run_id)
    log = seen.groupBy(*map(column, names)).agg(
        sf.count_distinct("run_id").alias(RUNS), sf.min("quarantined_at").alias(SINCE)
    )
    keys = sf.broadcast(log.select(*_renamed(names)))
    same = _all([column(name).eqNullSafe(sf.col(f"{OLD}{i}")) for i, name in enumerate(names)])
    annotated = q.annotate(
        source.join(keys, same, "left_semi"), contract.rules, rest=source.join(keys, same, "left_anti")
    )
    bad = annotated.where(sf.size(BROKEN) > 0).select(
        *map(column, names),
        row_id_column(names).alias(ID),
        sf.get(BROKEN, sf.lit(0)).getField("rule").alias("rule"),
        sf.array_join(sf.col(BROKEN).getField("reason"), "; ").alias("reason"),
    )
    return bad.join(sf.broadcast(log.select(row_id_column(names).alias(ID), RUNS, SINCE)), ID)


def open_rows_here(lake: Lake, contract: Contract, version: int, run_id: str | None = None) -> pa.Table:
    """As `open_rows`. Raises NotHereError where it is not certain of them, and SourceSchemaError."""
    source = table_here(lake, lake.warehouse.source(contract.name), version)
    check_columns(source.schema, contract)
    if contract.documents is not None:
        source.refuse_large()
    names = [item.name for item in contract.columns]
    quarantined = _quarantined(lake, lake.warehouse.quarantine(contract.name), names, run_id)
    rows = source.every(names, limits.JUDGED).combine_chunks()
    parted = split(rows, contract)
    bad = np.flatnonzero(parted.broken >= 0)
    broken = parted.with_reasons(contract, bad, rows.take(arrow(bad)))
    broken = broken.append_column(ID, row_ids(broken, names))
    rows = broken.filter(pc.is_in(broken[ID], pa.array(list(quarantined), pa.string())))
    about = [quarantined[identity] for identity in rows[ID].to_pylist()]
    columns = {
        **{name: rows[name] for name in (ID, *names, "rule", "reason")},
        RUNS: pa.array([len(runs) for runs, _ in about], pa.int64()),
        SINCE: pa.array([since for _, since in about], pa.timestamp("us", "UTC")),
    }
    return pa.table(columns)


def _quarantined(
    lake: Lake, path: str, names: Sequence[str], run_id: str | None
) -> dict[str, tuple[set[str], datetime]]:
    """For each quarantined row, by its identity: the runs that did it, and when the first of them did."""
    if not exists(lake, path):
        return {}
    rows = table_here(lake, path).every([*names, "run_id", "quarantined_at"], limits.QUARANTINE_READ)
    if run_id is not None:
        rows = rows.filter(pc.equal(rows["run_id"], run_id))
    unknown = rows["run_id"].null_count or rows["quarantined_at"].null_count
    refuse({"rows that no run wrote": unknown > 0})
    quarantined: dict[str, tuple[set[str], datetime]] = {}
    about = zip(rows["run_id"].to_pylist(), rows["quarantined_at"].to_pylist(), strict=True)
    for identity, (run, moment) in zip(row_ids(rows, names).to_pylist(), about, strict=True):
        runs, since = quarantined.get(identity, (set[str](), moment))
        quarantined[identity] = (runs | {run}, min(since, moment))
    return quarantined


def _renamed(names: Sequence[str]) -> Iterator[Column]:
    return (column(name).alias(f"{OLD}{i}") for i, name in enumerate(names))


def _all(conditions: Sequence[Column]) -> Column:
    return reduce(lambda a, b: a & b, conditions)
