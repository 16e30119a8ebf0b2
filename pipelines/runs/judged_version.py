"""The newest version of a source whose rows some step has judged by the contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trendlake.pipelines.errors import RecordDamagedError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.lake import Lake, exists
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.lake.versions import table_id
from trendlake.pipelines.runs.record import BASIS, SOURCES
from trendlake.pipelines.runs.stored_record import basis_in, sources_in

JUDGES = ("ingest", "check_source", "revise")
"""Stages that judge the rows of a source."""


def judged_version(lake: Lake, source: str) -> int:
    """The newest version of a source's present table whose rows some step has checked by the contract; -1 where none
    has. Records that do not name their table count too."""
    if not exists(lake, lake.warehouse.runs):
        return -1
    table = table_id(lake, lake.warehouse.source(source))
    runs = Table.at(lake, lake.warehouse.runs)
    columns = ["source", "run_id", "stage", "status", "source_version", "rows_quarantined"]
    columns += [BASIS] if BASIS in runs.names else []
    several = _of_several(runs, source, table) if SOURCES in runs.names else []
    versions = several + [
        row["source_version"]
        for row in runs.having({"source": [source]}, columns, limits.RECORDS).to_pylist()
        if row["stage"] in JUDGES
        and row["source_version"] is not None
        # a run that the contract's tolerance stopped has set its rows apart before
        and (row["status"] == "succeeded" or row["rows_quarantined"] is not None)
        and _is_of(row, table)
    ]
    return max(versions, default=-1)


def _of_several(runs: Table, source: str, table: str | None) -> list[int]:
    """The versions that steps of patterns with `sources` have judged."""
    columns = ["stage", "run_id", "pattern", SOURCES, "status", "rows_quarantined"]
    versions = []
    for row in runs.having({"stage": list(JUDGES)}, columns, limits.RECORDS).to_pylist():
        try:
            read = (sources_in(row) or {}).get(source)
        except RecordDamagedError:
            continue
        judged = row["status"] == "succeeded" or row["rows_quarantined"] is not None
        if read is not None and judged and read["table_id"] in (None, table):
            versions.append(int(read["version"]))
    return versions


def _is_of(row: Mapping[str, Any], table: str | None) -> bool:
    """Whether the record is of this source's table, or names no table; False for a damaged one."""
    try:
        basis = basis_in(row)
    except RecordDamagedError:
        return False
    return basis is None or basis.sources is None or basis.sources.table_id in (None, table)
