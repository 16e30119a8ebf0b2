"""Finding one's own commit again: every write that matters carries a token as Delta's `userMetadata`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

HISTORY = 100
"""Commits looked back; a token is looked for right after its commit."""


@dataclass(frozen=True)
class Commit:
    """A version of a table with Delta's own metrics of the operation that made it."""

    version: int
    metrics: Mapping[str, str]
    note: Mapping[str, Any]

    def metric(self, name: str) -> int:
        return int(self.metrics.get(name, 0))


def commit_token(run_id: str, stage: str, **facts: Any) -> str:
    """JSON that no other commit has: who writes, and facts about it."""
    return json.dumps({"run_id": run_id, "stage": stage, **facts, "attempt": uuid.uuid4().hex})


def recent_commits(spark: SparkSession, path: str) -> list[Commit]:
    """The newest commits first. `note` is empty where a commit carries none of ours."""
    rows = DeltaTable.forPath(spark, path).history(HISTORY)
    return [
        Commit(row["version"], row["operationMetrics"] or {}, _note(row["userMetadata"]))
        for row in rows.select("version", "operationMetrics", "userMetadata").collect()
    ]


def find_commit(spark: SparkSession, path: str, token: str) -> Commit:
    """The commit that carries `token`; where the write had nothing to commit, the newest one, without metrics."""
    commits = recent_commits(spark, path)
    mine = json.loads(token)
    found = next((commit for commit in commits if commit.note == mine), None)
    return found or Commit(commits[0].version, {}, mine)


def _note(text: str | None) -> Mapping[str, Any]:
    try:
        note = json.loads(text or "{}")
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}
