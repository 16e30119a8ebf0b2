"""A commit of a Delta table, by what its log says of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ROWS_ADDED = "rows_added"
"""The rows of a commit of ours that has none of Delta's metrics, by its note. It is stored."""


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
            return self.metric("numOutputRows") or int(self.note.get(ROWS_ADDED, 0)), 0, 0
        inserted, updated, deleted = (
            self.metric(f"numTargetRows{what}") for what in ("Inserted", "Updated", "Deleted")
        )
        return inserted, updated, deleted


def commit_of(version: int, info: Mapping[str, Any]) -> Commit:
    """The commit that says `info` of itself (Delta's protocol, "Commit Provenance Information")."""
    metrics = {_METRICS.get(name, name): str(value) for name, value in (info.get("operationMetrics") or {}).items()}
    parameters = info.get("operationParameters") or {}
    note = note_of(info.get("userMetadata"))
    return Commit(version, info.get("operation", ""), metrics, note, parameters, at=moment_of(time_of(info)))


_METRICS = {
    f"num_target_rows_{what}": f"numTargetRows{what.title()}" for what in ("inserted", "updated", "deleted")
} | {"num_added_rows": "numOutputRows"}
"""Delta's names of what delta-rs counts."""


def time_of(info: Mapping[str, Any]) -> int | None:
    """When the commit was made that says `info` of itself, microseconds since the epoch: by our note, else the
    in-commit timestamp, else the writer's clock. A copy of the table has all three; the times of its files, by which
    Delta goes where there are no in-commit timestamps, are the copy's own."""
    note = note_of(info.get("userMetadata"))
    if "attempt" in note and "at" in note:  # a note of ours (`commit_token`), of no other program
        return int(note["at"])
    milliseconds = info.get("inCommitTimestamp", info.get("timestamp"))
    return None if milliseconds is None else int(milliseconds) * 1000


def moment_of(micros: int | None) -> datetime | None:
    return None if micros is None else EPOCH + timedelta(microseconds=micros)


def note_of(text: str | None) -> Mapping[str, Any]:
    try:
        note = json.loads(text or "{}")
    except ValueError:
        delivery = re.fullmatch(r"(.*) delivery (\d+)", text or "")  # as deliveries were noted before
        return {"stage": "ingest", "feed": delivery[1], "delivery": int(delivery[2])} if delivery else {}
    return note if isinstance(note, dict) else {}
