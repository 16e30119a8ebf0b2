"""The log of a Delta table on this machine's disk, read in this process: what its commits say of themselves.

Only what has but one reading is read so; for all else `LocalUnsupportedError` says why, and the caller asks Spark.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from trendlake.pipelines.errors import LocalUnsupportedError, OtherwiseWrittenError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.log_cache import COMMIT, TABLES, Stamp, cache_by_commit, newest_commit, stamp
from trendlake.pipelines.lake.warehouse import on_disk

Action = dict[str, Any]
PLAIN_PATH = re.compile(r"[^%#?\[\]]+")
"""Of other paths some of delta-rs's answers are wrong."""


@contextmanager
def local_errors() -> Iterator[None]:
    """Turns what delta-rs, Arrow (also of a text that is not UTF-8) and the disk raise into LocalUnsupportedError, and
    a file that is otherwise written. A mistake of ours (KeyError, TypeError) is none of theirs, and goes on."""
    try:
        yield
    except (DeltaError, pa.ArrowException, UnicodeDecodeError, OSError, OtherwiseWrittenError) as error:
        raise LocalUnsupportedError(f"{type(error).__name__}: {error}") from error


def folder_on_disk(spark: SparkSession, path: str) -> Path:
    """The folder of the table at `path`, on this machine's disk. Raises LocalUnsupportedError."""
    folder = on_disk(spark, path)
    if folder is None or not PLAIN_PATH.fullmatch(str(folder)) or not (folder / "_delta_log").is_dir():
        raise LocalUnsupportedError(f"no table on disk at {path}")
    return folder


@dataclass
class _View:
    """`commit`: the version that `table` has come to, and the stamp of its file; None where `table` is of no use."""

    lock: Lock = field(default_factory=Lock)
    table: DeltaTable | None = None
    commit: tuple[int, Stamp] | None = None


@contextmanager
def opened(folder: Path, version: int | None = None) -> Iterator[DeltaTable]:
    """delta-rs's view of the table at a version, the newest one where it is None: for this thread alone meanwhile, and
    not to be changed. Raises LocalUnsupportedError where it has many files: to say which they are would take long."""
    if _files_in_checkpoint(folder / "_delta_log" / "_last_checkpoint") > limits.FILES:
        raise LocalUnsupportedError("many files")
    if version is None or version == newest_commit(f"{folder}/_delta_log"):
        with newest_view(folder) as table:
            if version is None or table.version() == version:
                checksum(folder, table.version())
                yield table
                return
    checksum(folder, version)
    yield _older_view(folder, version)


def _files_in_checkpoint(last: Path) -> int:
    """As `_last_checkpoint` says it; 0 where it does not. Raises LocalUnsupportedError for one that is not whole."""
    if not last.exists():
        return 0
    files = _parsed(last.read_bytes(), last).get("numOfAddFiles") or 0
    if not isinstance(files, int):
        raise LocalUnsupportedError(f"{last} says no number of files")
    return files


def _parsed(line: bytes, file: Path) -> Action:
    """A JSON object of a file of the log. Raises LocalUnsupportedError for one that is not whole."""
    try:
        parsed = json.loads(line)
    except ValueError as error:
        raise LocalUnsupportedError(f"{file} is not whole: {error}") from error
    if not isinstance(parsed, dict):
        raise LocalUnsupportedError(f"{file} holds no JSON object")
    return parsed


@contextmanager
def newest_view(folder: Path) -> Iterator[DeltaTable]:
    """delta-rs's view of the newest version of the table, for this thread alone meanwhile; it may be left at a version
    that is newer still. It is held, and of the log only what is new is read: to read all takes longer with each commit.
    Where the commit that it has come to is another file by now, it is another table, and read from its beginning."""
    view, log = _newest_view(folder), f"{folder}/_delta_log"
    with view.lock:
        before, view.commit = view.commit, None
        if view.table is None or before is None or before != _commit(log, before[0]):
            before = _commit(log, newest_commit(log))
            view.table = DeltaTable(folder)
        elif before[0] != newest_commit(log):
            view.table.update_incremental()
        yield view.table
        after = _commit(log, view.table.version())
        if before is not None and before == _commit(log, before[0]):  # or else `after` may be another table's
            view.commit = after


def _commit(log: str, version: int | None) -> tuple[int, Stamp] | None:
    entry = None if version is None else stamp(f"{log}/{version:020d}.json")
    return None if version is None or entry is None else (version, entry)


@lru_cache(maxsize=TABLES)
def _newest_view(_: Path) -> _View:
    return _View()


@cache_by_commit
def _older_view(folder: Path, version: int | None) -> DeltaTable:
    return DeltaTable(folder, version=version)


@cache_by_commit
def checksum(folder: Path, version: int | None) -> Action:
    """The contents of the checksum of a version (`VERSION.crc`); empty where there is none, or it is half a file, which
    delta-rs ignores too. Raises LocalUnsupportedError for one that another commit has left: delta-rs takes the columns
    and the id of a table from it, and only Spark compares it with the log."""
    try:
        about = json.loads((folder / "_delta_log" / f"{version:020d}.crc").read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(about, dict) or version is None:
        return {}
    own = about.get("txnId")
    if own is not None and own != commit_info(folder, version).get("txnId", own):
        raise LocalUnsupportedError(f"the checksum of version {version} is another commit's")
    return {name: about.get(name) for name in ("numFiles", "tableSizeBytes")}


def commit_info(folder: Path, version: int) -> Action:
    """The information of a commit about itself."""
    return next((action["commitInfo"] for action in commit_actions(folder, version) if "commitInfo" in action), {})


def logged_versions(folder: Path) -> list[int]:
    """The versions whose commits the log has, the newest first. Raises LocalUnsupportedError where there is none."""
    names = os.listdir(folder / "_delta_log")
    versions = sorted((int(name[:20]) for name in names if len(name) == 25 and COMMIT.fullmatch(name)), reverse=True)
    if not versions:
        raise LocalUnsupportedError(f"no commit in the log of {folder}")
    return versions


def transaction_in_log(spark: SparkSession, path: str, application: str, number: int, limit: int) -> bool:
    """Whether one of the `limit` newest commits is of the transaction `application`, with at least this number. Raises
    LocalUnsupportedError."""
    folder = folder_on_disk(spark, path)
    with local_errors():
        versions = logged_versions(folder)
        transactions = (item["txn"] for v in versions[:limit] for item in commit_actions(folder, v) if "txn" in item)
        return any(item["appId"] == application and item["version"] >= number for item in transactions)


def commit_actions(folder: Path, version: int) -> list[Action]:
    """Raises LocalUnsupportedError."""
    file = folder / "_delta_log" / f"{version:020d}.json"
    return [_parsed(line, file) for line in file.read_bytes().splitlines()]
