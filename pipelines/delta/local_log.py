"""The log of a Delta table on this machine's disk, read in this process: what its commits say of themselves.

Only what has but one reading is read so; for all else `LocalUnsupportedError` says why, and the caller asks Spark.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from cep_core.errors import TrendlakeError
from pipelines.delta.log_cache import COMMIT, cache_by_commit
from pipelines.delta.tables import on_disk
from pipelines.errors import LocalUnsupportedError

Action = dict[str, Any]
PLAIN_PATH = re.compile(r"[^%#?\[\]]+")
"""Of other paths some of delta-rs's answers are wrong."""
FILES = 2_000
"""Files of a table that are looked at one after the other; Spark looks at those of larger tables together."""

_UNSUPPORTED = (
    DeltaError, pa.ArrowException, TrendlakeError, ArithmeticError, LookupError, OSError, ValueError, TypeError,
)  # fmt: skip


@contextmanager
def local_errors() -> Iterator[None]:
    """Turns what delta-rs, Arrow, arithmetic and the reader of files raise into LocalUnsupportedError."""
    try:
        yield
    except _UNSUPPORTED as error:
        raise LocalUnsupportedError(f"{type(error).__name__}: {error}") from error


def folder_on_disk(spark: SparkSession, path: str) -> Path:
    """The folder of the table at `path`, on this machine's disk. Raises LocalUnsupportedError."""
    folder = on_disk(spark, path)
    if folder is None or not PLAIN_PATH.fullmatch(str(folder)) or not (folder / "_delta_log").is_dir():
        raise LocalUnsupportedError(f"no table on disk at {path}")
    return folder


def opened(folder: Path, version: int | None = None) -> DeltaTable:
    """delta-rs's view of the table at a version. Raises LocalUnsupportedError where it has many files: to say which
    they are would take long."""
    checkpoint = folder / "_delta_log" / "_last_checkpoint"
    if checkpoint.exists() and json.loads(checkpoint.read_text()).get("numOfAddFiles", 0) > FILES:
        raise LocalUnsupportedError("many files")
    return view(folder, version)


@cache_by_commit
def view(folder: Path, version: int | None) -> DeltaTable:
    """Not to be changed."""
    return DeltaTable(folder, version=version)


def commit_info(folder: Path, version: int) -> Action:
    """What a commit says of itself."""
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
    return [json.loads(line) for line in (folder / "_delta_log" / f"{version:020d}.json").read_text().splitlines()]
