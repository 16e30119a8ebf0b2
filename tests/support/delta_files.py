"""A Delta table read from its files alone, without Spark: what any reader sees, told by the log, in milliseconds.

For tables as the pipeline writes them: not partitioned, no deletion vectors, every commit's JSON still there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def commits(path: str) -> list[list[dict[str, Any]]]:
    """The actions of each version, from version 0. The log has no gap; a torn commit would not parse."""
    files = sorted(Path(path, "_delta_log").glob("[0-9]*.json"))
    assert [int(file.stem) for file in files] == list(range(len(files))), f"the log of {path} has a gap"
    return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]


def table(path: str, version: int | None = None) -> pa.Table | None:
    """The rows of a version, else of the newest; columns as the table has them now. None where there is no table."""
    log = commits(path)
    if not log:
        return None
    there: dict[str, None] = {}
    columns: list[str] = []
    for actions in log[: len(log) if version is None else version + 1]:
        for action in actions:
            if "metaData" in action:
                columns = [field["name"] for field in json.loads(action["metaData"]["schemaString"])["fields"]]
            if "remove" in action:
                there.pop(action["remove"]["path"], None)
            if "add" in action:
                there[action["add"]["path"]] = None
    parts = [_plain(pq.read_table(Path(path, name))) for name in there]
    if not parts:
        return pa.table({name: pa.nulls(0) for name in columns})
    return pa.concat_tables(parts, promote_options="permissive")


def _plain(part: pa.Table) -> pa.Table:
    """The columns of a file under the types that Delta knows, whoever wrote it."""
    for number, column in enumerate(part.schema):
        values = part[column.name]
        if pa.types.is_timestamp(column.type):  # INT96 in the files: nanoseconds of UTC that do not say so
            values = values.cast(pa.timestamp("us"), safe=False).cast(pa.timestamp("us", "UTC"))
        elif pa.types.is_string_view(column.type):  # as delta-rs writes in a MERGE
            values = values.cast(pa.string())
        part = part.set_column(number, column.name, values)
    return part


def rows(path: str, names: list[str], version: int | None = None) -> list[dict[str, Any]]:
    """Columns `names` of the rows; none where there is no table."""
    stored = table(path, version)
    return [] if stored is None else stored.select(names).to_pylist()
