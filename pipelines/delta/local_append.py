"""Appends to Delta tables on this machine's disk by delta-rs, of rows that no other process writes: no commit of
Spark's is planned for one row."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake
from pyspark.sql import SparkSession

from trendlake.pipelines.delta.local_log import folder_on_disk, local_errors, newest_view
from trendlake.pipelines.errors import LocalUnsupportedError

ROOM = 1 << 16
"""Bytes that a disk must have left: a file of a few rows takes some 10,000, its commit 1,000."""


def append_here(spark: SparkSession, path: str, rows: pa.Table) -> int:
    """Append `rows` to the table at `path` in a commit of their own, columns that it lacks too; its version. Raises
    OSError where the disk has no room, and LocalUnsupportedError: unless that is because there is no such table, the
    commit may have been made."""
    folder = folder_on_disk(spark, path)
    refuse_full_disk(folder)
    with local_errors(), newest_view(folder) as table:
        # Old logs are left to Delta, which knows what a checkpoint of its own holds.
        hooks = PostCommitHookProperties(cleanup_expired_logs=False)
        write_deltalake(table, rows, mode="append", schema_mode="merge", post_commithook_properties=hooks)
        return int(table.version())


def refuse_full_disk(folder: Path) -> None:
    """Raises OSError where delta-rs would write half a file and end its own thread with a stack trace."""
    about = os.statvfs(folder)
    if about.f_flag & os.ST_RDONLY:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(folder))
    if about.f_blocks and about.f_bavail * about.f_frsize < ROOM:  # some file systems count no blocks
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def compact_here(spark: SparkSession, path: str) -> None:
    """Makes one file of the small ones of the table at `path`: the rows stay what they are, and so do older versions.
    Where that cannot be done in this process, or another one is at it, they stay."""
    with suppress(LocalUnsupportedError):
        folder = folder_on_disk(spark, path)
        with local_errors(), compacting_alone(folder, wait=False) as alone:
            if alone:
                hooks = PostCommitHookProperties(cleanup_expired_logs=False)
                DeltaTable(folder).optimize.compact(post_commithook_properties=hooks)


@contextmanager
def compacting_alone(folder: Path, *, wait: bool) -> Iterator[bool]:
    """Whether no other process on this machine compacts the table in `folder` until this is done; with `wait`, after
    the one that does. False on a file system without locks, where that cannot be known.

    delta-rs commits a compaction although another one has replaced the same files, and then the table has each of their
    rows twice: its check for conflicts ignores files that were removed without a change of data."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)
