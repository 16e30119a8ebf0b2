"""Finding one's own commit again: every write that matters carries a token as Delta's `userMetadata`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import functions as sf

from trendlake.pipelines.lake.commit import EPOCH, Commit, moment_of, note_of, time_of
from trendlake.pipelines.lake.here.log import commit_in_log, folder_on_disk, logged_versions, transaction_in_log
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import either
from trendlake.pipelines.spark.jvm import DELTA_LOG, java_class

HISTORY = 100
"""Commits looked back; a token is looked for right after its commit."""


def commit_token(lake: Lake, path: str, run_id: str, stage: str, **facts: Any) -> str:
    """JSON that no other commit has: who writes to the table at `path`, when (microseconds since the epoch, never
    before the newest commit), and facts about it."""
    now = (datetime.now(UTC) - EPOCH) // timedelta(microseconds=1)
    newest = next(iter(recent_commits(lake, path, 1)), None)
    if newest is not None and newest.at is not None:
        now = max(now, (newest.at - EPOCH) // timedelta(microseconds=1))
    return json.dumps({"run_id": run_id, "stage": stage, **facts, "at": now, "attempt": uuid.uuid4().hex})


def recent_commits(lake: Lake, path: str, limit: int | None = HISTORY) -> list[Commit]:
    """The newest commits first; all that the log has where there is no `limit`. `note` is empty where a commit carries
    none of ours. Read in this process where the table is on this machine's disk."""

    def here() -> list[Commit]:
        folder = folder_on_disk(lake, path)
        return [commit_in_log(folder, version) for version in logged_versions(folder)[:limit]]

    return either(here, lambda: _commits_by_spark(lake, path, limit))


def known_commits(lake: Lake, path: str) -> list[Commit]:
    """All commits that the log has, as `recent_commits`."""
    return recent_commits(lake, path, limit=None)


def times_in_order(commits: Sequence[Commit]) -> Iterator[tuple[int, datetime]]:
    """Versions of `commits` (all that the log has, the newest first) with the time from which each was the newest, in
    their order: a writer whose clock is behind comes after the one before."""
    latest: datetime | None = None
    for commit in reversed(commits):
        if commit.at is not None:
            latest = commit.at if latest is None else max(latest, commit.at)
            yield commit.version, latest


def _commits_by_spark(lake: Lake, path: str, limit: int | None) -> list[Commit]:
    rows, time = DeltaTable.forPath(lake.spark, path).history(limit), sf.unix_millis("timestamp")
    return [
        Commit(
            row[0],
            row[1],
            row[2] or {},
            note_of(row[3]),
            row[4] or {},
            at=moment_of(time_of({"userMetadata": row[3], "timestamp": row[5]})),
        )
        for row in rows.select(
            "version", "operation", "operationMetrics", "userMetadata", "operationParameters", time
        ).collect()
    ]


def find_commit(lake: Lake, path: str, token: str) -> Commit:
    """The commit that carries `token`; where there is none, the newest one, without metrics and not `in_history`."""
    commits = recent_commits(lake, path)
    mine = json.loads(token)
    own = next((commit for commit in commits if commit.note == mine), None)
    if own is None:
        read_log_anew(lake, path)
    return own or Commit(commits[0].version, "", {}, mine, in_history=False)


def has_transaction(lake: Lake, path: str, application: str, number: int) -> bool:
    """Whether the table's log has a transaction of `application` (Delta's `txnAppId`) with at least this number."""
    if either(lambda: transaction_in_log(lake, path, application, number, HISTORY), lambda: False):
        return True
    read_log_anew(lake, path)  # an older one, or of a table elsewhere
    log = java_class(lake.spark, DELTA_LOG).forTable(lake.spark._jsparkSession, path)
    return bool(log.startTransaction().txnVersion(application) >= number)


def read_log_anew(lake: Lake, path: str) -> None:
    """Makes Delta forget what it remembers of the table at `path`, which includes its own commits: one that is not in
    the log would count as made."""
    folder = java_class(lake.spark, "org.apache.hadoop.fs.Path")(path)
    java_class(lake.spark, DELTA_LOG).invalidateCache(lake.spark._jsparkSession, folder)


def next_number(commits: Sequence[Commit]) -> int:
    """The number of the publication that may follow `commits` (the newest first): each carries one more than the last.
    Where the log has none, the version will do: no publication had a higher one."""
    numbers = (commit.note["number"] for commit in commits if "number" in commit.note)
    return int(next(numbers, commits[0].version)) + 1


def publication(name: str) -> str:
    """The application id of the transactions that publish to the results table `name`."""
    return f"publish {name}"


def in_line(lake: Lake, name: str, token: str) -> None:
    """Have the next write of the lake's session (which no other code may use) carry `token`, and commit only where no
    other publication has come since the one whose number the token's follows. The number is that of a transaction of
    Delta's: Delta skips a write whose number has been reached, and refuses one of two at once as a conflict. The caller
    sees a skipped write by its missing commit."""
    lake.spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", token)
    lake.spark.conf.set("spark.databricks.delta.write.txnAppId", publication(name))
    lake.spark.conf.set("spark.databricks.delta.write.txnVersion", str(json.loads(token)["number"]))
