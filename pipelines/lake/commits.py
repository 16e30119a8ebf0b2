"""Finding one's own commit again: every write that matters carries a token as Delta's `userMetadata`."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from trendlake.pipelines.errors import LocalUnsupportedError
from trendlake.pipelines.lake.here.log import (
    commit_info,
    folder_on_disk,
    local_errors,
    logged_versions,
    transaction_in_log,
)
from trendlake.pipelines.lake.here.log_cache import cache_by_commit
from trendlake.pipelines.spark.jvm import DELTA_LOG, java_class

HISTORY = 100
"""Commits looked back; a token is looked for right after its commit."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Commit:
    """A version of a table with Delta's own metrics of the operation that made it."""

    version: int
    operation: str
    metrics: Mapping[str, str]
    note: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The parameters of the operation, by Delta's names."""
    in_history: bool = True
    """Whether the commit is the one looked for."""
    at: datetime | None = None
    """When it was made, UTC: never before the commit that it follows, whatever the writer's clock said."""

    def metric(self, name: str) -> int:
        return int(self.metrics.get(name, 0))

    @property
    def changed(self) -> tuple[int, int, int]:
        """Rows that a publication has inserted, updated, deleted."""
        if self.operation == "WRITE":
            return self.metric("numOutputRows"), 0, 0
        inserted, updated, deleted = (
            self.metric(f"numTargetRows{what}") for what in ("Inserted", "Updated", "Deleted")
        )
        return inserted, updated, deleted


def commit_token(spark: SparkSession, path: str, run_id: str, stage: str, **facts: Any) -> str:
    """JSON that no other commit has: who writes to the table at `path`, when (microseconds since the epoch, never
    before the newest commit), and facts about it."""
    now = (datetime.now(UTC) - EPOCH) // timedelta(microseconds=1)
    newest = next(iter(recent_commits(spark, path, 1)), None)
    if newest is not None and newest.at is not None:
        now = max(now, (newest.at - EPOCH) // timedelta(microseconds=1))
    return json.dumps({"run_id": run_id, "stage": stage, **facts, "at": now, "attempt": uuid.uuid4().hex})


def recent_commits(spark: SparkSession, path: str, limit: int | None = HISTORY) -> list[Commit]:
    """The newest commits first; all that the log has where there is no `limit`. `note` is empty where a commit carries
    none of ours. Read in this process where the table is on this machine's disk."""
    try:
        folder = folder_on_disk(spark, path)
        with local_errors():
            return [commit_in_log(folder, version) for version in logged_versions(folder)[:limit]]
    except LocalUnsupportedError:
        return _commits_by_spark(spark, path, limit)


@partial(cache_by_commit, versions=10_000)
def commit_in_log(folder: Path, version: int | None) -> Commit:
    """The facts that the log in `folder` has of a version."""
    assert version is not None
    info = commit_info(folder, version)
    note = _note(info.get("userMetadata"))
    metrics = {_METRICS.get(name, name): str(value) for name, value in (info.get("operationMetrics") or {}).items()}
    parameters = info.get("operationParameters") or {}
    return Commit(version, info.get("operation", ""), metrics, note, parameters, at=_moment(time_of(info)))


_METRICS = {
    f"num_target_rows_{what}": f"numTargetRows{what.title()}" for what in ("inserted", "updated", "deleted")
} | {"num_added_rows": "numOutputRows"}
"""Delta's names of what delta-rs counts."""


def time_of(info: Mapping[str, Any]) -> int | None:
    """When the commit was made that says `info` of itself, microseconds since the epoch: by our note, else the
    in-commit timestamp, else the writer's clock. A copy of the table has all three; the times of its files, by which
    Delta goes where there are no in-commit timestamps, are the copy's own."""
    note = _note(info.get("userMetadata"))
    if "attempt" in note and "at" in note:  # a note of ours (`commit_token`), of no other program
        return int(note["at"])
    milliseconds = info.get("inCommitTimestamp", info.get("timestamp"))
    return None if milliseconds is None else int(milliseconds) * 1000


def known_commits(spark: SparkSession, path: str) -> list[Commit]:
    """All commits that the log has, as `recent_commits`."""
    return recent_commits(spark, path, limit=None)


def times_in_order(commits: Sequence[Commit]) -> Iterator[tuple[int, datetime]]:
    """Versions of `commits` (all that the log has, the newest first) with the time from which each was the newest, in
    their order: a writer whose clock is behind comes after the one before."""
    latest: datetime | None = None
    for commit in reversed(commits):
        if commit.at is not None:
            latest = commit.at if latest is None else max(latest, commit.at)
            yield commit.version, latest


def _commits_by_spark(spark: SparkSession, path: str, limit: int | None) -> list[Commit]:
    rows, time = DeltaTable.forPath(spark, path).history(limit), sf.unix_millis("timestamp")
    return [
        Commit(
            row[0],
            row[1],
            row[2] or {},
            _note(row[3]),
            row[4] or {},
            at=_moment(time_of({"userMetadata": row[3], "timestamp": row[5]})),
        )
        for row in rows.select(
            "version", "operation", "operationMetrics", "userMetadata", "operationParameters", time
        ).collect()
    ]


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else EPOCH + timedelta(microseconds=micros)


def find_commit(spark: SparkSession, path: str, token: str) -> Commit:
    """The commit that carries `token`; where there is none, the newest one, without metrics and not `in_history`."""
    commits = recent_commits(spark, path)
    mine = json.loads(token)
    own = next((commit for commit in commits if commit.note == mine), None)
    if own is None:
        read_log_anew(spark, path)
    return own or Commit(commits[0].version, "", {}, mine, in_history=False)


def has_transaction(spark: SparkSession, path: str, application: str, number: int) -> bool:
    """Whether the table's log has a transaction of `application` (Delta's `txnAppId`) with at least this number."""
    try:
        if transaction_in_log(spark, path, application, number, HISTORY):
            return True
    except LocalUnsupportedError:
        pass
    read_log_anew(spark, path)  # an older one, or of a table elsewhere
    log = java_class(spark, DELTA_LOG).forTable(spark._jsparkSession, path)
    return bool(log.startTransaction().txnVersion(application) >= number)


def read_log_anew(spark: SparkSession, path: str) -> None:
    """Makes Delta forget what it remembers of the table at `path`, which includes its own commits: one that is not in
    the log would count as made."""
    folder = java_class(spark, "org.apache.hadoop.fs.Path")(path)
    java_class(spark, DELTA_LOG).invalidateCache(spark._jsparkSession, folder)


def next_number(commits: Sequence[Commit]) -> int:
    """The number of the publication that may follow `commits` (the newest first): each carries one more than the last.
    Where the log has none, the version will do: no publication had a higher one."""
    numbers = (commit.note["number"] for commit in commits if "number" in commit.note)
    return int(next(numbers, commits[0].version)) + 1


def publication(name: str) -> str:
    """The application id of the transactions that publish to the results table `name`."""
    return f"publish {name}"


def in_line(spark: SparkSession, name: str, token: str) -> None:
    """Have the next write of this session (which no other code may use) carry `token`, and commit only where no other
    publication has come since the one whose number the token's follows. The number is that of a transaction of Delta's:
    Delta skips a write whose number has been reached, and refuses one of two at once as a conflict. The caller sees a
    skipped write by its missing commit."""
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", token)
    spark.conf.set("spark.databricks.delta.write.txnAppId", publication(name))
    spark.conf.set("spark.databricks.delta.write.txnVersion", str(json.loads(token)["number"]))


def _note(text: str | None) -> Mapping[str, Any]:
    try:
        note = json.loads(text or "{}")
    except ValueError:
        delivery = re.fullmatch(r"(.*) delivery (\d+)", text or "")  # as deliveries were noted before
        return {"stage": "ingest", "feed": delivery[1], "delivery": int(delivery[2])} if delivery else {}
    return note if isinstance(note, dict) else {}
