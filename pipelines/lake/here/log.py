"""The log of a Delta table on this machine's disk, read in this process: what its commits say of themselves.

Only what has but one reading is read so; all else is an error, and Spark is asked (`pipelines.lake.road`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any

from deltalake import DeltaTable

from trendlake.pipelines.errors import OtherwiseWrittenError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.commit import Commit, commit_of
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.log_cache import COMMIT, TABLES, Stamp, cache_by_commit, newest_commit, stamp
from trendlake.pipelines.lake.road import refuse, refuse_more

Action = dict[str, Any]
PLAIN_PATH = re.compile(r"[^%#?\[\]]+")
"""Of other paths some of delta-rs's answers are wrong."""


def folder_on_disk(lake: Lake, path: str) -> Path:
    """The folder of the table at `path`. Raises NotHereError unless there is one, on this machine's disk."""
    folder = lake.on_disk(path)
    there = folder is not None and PLAIN_PATH.fullmatch(str(folder)) and (folder / "_delta_log").is_dir()
    refuse({f"no table on disk at {path}": not there})
    return Path(folder or "")


@dataclass
class _View:
    """`commit`: the version that `table` has come to, and the stamp of its file; None where `table` is of no use."""

    lock: Lock = field(default_factory=Lock)
    table: DeltaTable | None = None
    commit: tuple[int, Stamp] | None = None


@contextmanager
def opened(folder: Path, version: int | None = None) -> Iterator[DeltaTable]:
    """delta-rs's view of the table at a version, the newest one where it is None: for this thread alone meanwhile, and
    not to be changed. Raises NotHereError where it has many files: to say which they are would take long."""
    refuse_more(_files_in_checkpoint(folder / "_delta_log" / "_last_checkpoint"), limits.FILES, "files")
    if version is None or version == newest_commit(f"{folder}/_delta_log"):
        with newest_view(folder) as table:
            if version is None or table.version() == version:
                checksum(folder, table.version())
                yield table
                return
    checksum(folder, version)
    yield _older_view(folder, version)


def _files_in_checkpoint(last: Path) -> int:
    """As `_last_checkpoint` says it; 0 where it does not. Raises as `_parsed`."""
    if not last.exists():
        return 0
    files = _parsed(last.read_bytes(), last).get("numOfAddFiles") or 0
    if not isinstance(files, int):
        raise OtherwiseWrittenError(f"{last} says no number of files")
    return files


def _parsed(line: bytes, file: Path) -> Action:
    """A JSON object of a file of the log. Raises JSONDecodeError or OtherwiseWrittenError for one that is not whole."""
    parsed = json.loads(line)
    if not isinstance(parsed, dict):
        raise OtherwiseWrittenError(f"{file} holds no JSON object")
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
    delta-rs ignores too. Raises OtherwiseWrittenError for one that another commit has left: delta-rs takes the columns
    and the id of a table from it, and only Spark compares it with the log."""
    try:
        about = json.loads((folder / "_delta_log" / f"{version:020d}.crc").read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(about, dict) or version is None:
        return {}
    own = about.get("txnId")
    if own is not None and own != commit_info(folder, version).get("txnId", own):
        raise OtherwiseWrittenError(f"the checksum of version {version} is another commit's")
    return {name: about.get(name) for name in ("numFiles", "tableSizeBytes")}


def commit_info(folder: Path, version: int) -> Action:
    """The information of a commit about itself."""
    return next((action["commitInfo"] for action in commit_actions(folder, version) if "commitInfo" in action), {})


def logged_versions(folder: Path) -> list[int]:
    """The versions whose commits the log has, the newest first. Raises OtherwiseWrittenError where there is none."""
    names = os.listdir(folder / "_delta_log")
    versions = sorted((int(name[:20]) for name in names if len(name) == 25 and COMMIT.fullmatch(name)), reverse=True)
    if not versions:
        raise OtherwiseWrittenError(f"no commit in the log of {folder}")
    return versions


def transaction_in_log(lake: Lake, path: str, application: str, number: int, limit: int) -> bool:
    """Whether one of the `limit` newest commits is of the transaction `application`, with at least this number."""
    folder = folder_on_disk(lake, path)
    versions = logged_versions(folder)
    transactions = (item["txn"] for v in versions[:limit] for item in commit_actions(folder, v) if "txn" in item)
    return any(item["appId"] == application and item["version"] >= number for item in transactions)


def commit_actions(folder: Path, version: int) -> list[Action]:
    """The actions of a commit, in its order. Raises OSError, and as `_parsed`."""
    file = folder / "_delta_log" / f"{version:020d}.json"
    return [_parsed(line, file) for line in file.read_bytes().splitlines()]


@partial(cache_by_commit, versions=10_000)
def commit_in_log(folder: Path, version: int | None) -> Commit:
    """The facts that the log in `folder` has of a version."""
    assert version is not None
    return commit_of(version, commit_info(folder, version))
