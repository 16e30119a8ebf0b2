"""Failures of a disk, of a table's file or of memory, as an error that a person can fix.

Python, Arrow, delta-rs, Java and Spark each say it in words of their own, somewhere in the causes of an exception.
"""

from __future__ import annotations

import re

from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.error_text import full_text
from trendlake.pipelines.errors import (
    DiskFullError,
    FileDamagedError,
    FileMissingError,
    NotWritableError,
    OutOfMemoryError,
)

_FULL = re.compile(r"No space left on device|Disk quota exceeded|database or disk is full")
_REFUSED = re.compile(r"Read-only file system|Permission denied")
_MEMORY = re.compile(
    r"\bMemoryError\b|\bOutOfMemoryError\b|\bArrowMemoryError\b|Cannot allocate memory|Unable to allocate [\d.]+ \w+"
    r"|malloc of size \d+ failed|Python worker exited unexpectedly|Python worker process terminated"
)
_MISSING = re.compile(r"FAILED_READ_FILE\.FILE_NOT_EXIST|\bFileNotFoundException\b|\[PATH_NOT_FOUND\]")
_LOG = "/_delta_log/"
_DAMAGED = re.compile(
    r"\[FAILED_READ_FILE|CANNOT_READ_FILE_FOOTER|is not a Parquet file|ChecksumException|DELTA_STATE_RECOVER_ERROR"
    r"|DELTA_MISSING_PART_FILES|DELTA_VERSIONS_NOT_CONTIGUOUS|DELTA_LOG_FILE_NOT_FOUND|DELTA_TRUNCATED_TRANSACTION_LOG"
)
_NULL_HINT = re.compile(r"NullPointerException: .*\bLastCheckpointInfo\b")
_PATH = re.compile(r"(?:file:/{1,3}|/)[^\s'\",:]+")
_TABLE_FILE = re.compile(r"(?:[a-z][a-z0-9]*:/{1,3}|/)[^\s'\",]+?\.(?:parquet|json|crc)\b")

RUNS = "/trendlake_runs/"
AGAIN = "then run the same command again: what was published before is still whole"


def storage_error(error: BaseException, stage: str | None = None, pattern: str | None = None) -> TrendlakeError | None:
    """The user error that an exception of another library means; None where it is about something else. `stage` of a
    run of `pattern` has raised it."""
    if isinstance(error, TrendlakeError):
        return None
    text = full_text(error)
    if match := _FULL.search(text):
        return DiskFullError(f"the disk is full{_of(_PATH, text)}: {match[0]}", hint=f"free some space, {AGAIN}")
    if match := _REFUSED.search(text):
        return NotWritableError(
            f"the file system refuses access{_of(_PATH, text)}: {match[0]}",
            hint=f"make the folder writable for this user, or name another `warehouse` in the profile, {AGAIN}",
        )
    if _MEMORY.search(text):
        return OutOfMemoryError(
            f"a process of the run was out of memory, or was ended from outside: {_line(_MEMORY, text)}",
            hint="lower `limits.shard_rows` or the number of cores in `master`, or raise "
            f"`spark.executor.pyspark.memory` or `spark.driver.memory` in the profile, {AGAIN}",
        )
    if _NULL_HINT.search(text):  # Delta ignores a hint that is half written, but not this one
        return FileDamagedError(
            "the file `_delta_log/_last_checkpoint` of a table holds no more than `null`",
            hint=f"remove it, {AGAIN}; Delta finds checkpoints without it",
        )
    place = _TABLE_FILE.search(text) or _PATH.search(text)
    if _MISSING.search(text) and place and not any(part in place[0] for part in (_LOG, RUNS)):
        return FileMissingError(
            f"a file of a table is gone ({_plain(place[0])}): VACUUM or a person has removed it, and the version that "
            "was read has it",
            hint=f"{_again(stage, pattern)}: it reads the newest version. Old versions (`--as-of`, `diff`, `history`, "
            "the change feed) can be read as long as VACUUM keeps their files (`delta.deletedFileRetentionDuration`). "
            "If the newest version lacks the file too, bring it back from a backup, or RESTORE the table to a version "
            "that has all its files",
        )
    if _DAMAGED.search(text) or (_MISSING.search(text) and place):
        return FileDamagedError(
            f"a file of a table cannot be read{_of(_TABLE_FILE, text)}: {_line(_DAMAGED, text)}", hint=_mend(text)
        )
    return None


def in_users_terms(error: Exception, stage: str, pattern: str | None) -> Exception:
    """The `storage_error` of an exception, caused by it; else the exception itself."""
    meant = storage_error(error, stage, pattern)
    if meant is None:
        return error
    meant.__cause__ = error
    return meant


def _again(stage: str | None, pattern: str | None) -> str:
    """Steps after check_source read the version that it has pinned, whatever is newest by now."""
    if pattern is not None and stage in ("compute", "check_results", "publish"):
        return f"run `trendlake run {pattern}` for the same interval (in Airflow: clear the run from check_source on)"
    return "run the same command again"


def _of(pattern: re.Pattern[str], text: str) -> str:
    place = pattern.search(text)
    return f" ({_plain(place[0])})" if place else ""


def _plain(path: str) -> str:
    return re.sub(r"^file:/+", "/", path).rstrip(".")


def _line(pattern: re.Pattern[str], text: str) -> str:
    """The part of the text that says it, without what Spark wraps it in."""
    match = pattern.search(text)
    message = text[match.start() : match.start() + 300] if match else text[:300]
    return message.split(". Consider setting")[0].lstrip("[")


def _mend(text: str) -> str:
    place = _TABLE_FILE.search(text)
    name = place[0] if place else ""
    if "ChecksumException" in text:
        return f"remove the file's checksum (the hidden `.NAME.crc` beside it) if the file itself is right, {AGAIN}"
    if "DELTA_STATE_RECOVER_ERROR" in text:
        return f"the checksum of the version (VERSION.crc in `_delta_log`) is not that of its log: remove it, {AGAIN}"
    if ".checkpoint." in name or "DELTA_MISSING_PART_FILES" in text:
        return (
            "where `_delta_log` still has every commit (VERSION.json) from 0 on, remove the files of this checkpoint "
            f"and `_last_checkpoint`, {AGAIN}; else bring the file back from a backup"
        )
    if RUNS in name:
        return (
            "bring the file back from a backup; or move the folder `trendlake_runs` away: results stay published, the "
            "history of runs is lost, and the next run begins a new one"
        )
    return (
        f"bring the file back from a backup, or RESTORE the table to a version without it, {AGAIN}; "
        "of a results table: `trendlake reset PATTERN`, then `trendlake backfill PATTERN`"
    )
