"""Which patterns run together: those with the same `batch`.

If the profile says `batches: by_source_and_schedule`, also those of one source and schedule that name no batch.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from trendlake.cep_core import Pattern
from trendlake.cep_core.errors import BadValueError

LONGEST = 200
"""Characters of a batch's name, which is part of a DAG's id (250 in Airflow, with what stands before and after it), of
a file's name, and of run ids in records and commits: a stored format, like the digest of longer names."""
CRON_SIGNS = {"*": "any", "/": "per", ",": "and", "-": "to", "#": "nth"}


@dataclass(frozen=True)
class Batch:
    """`source` and `schedule`: those of most of the patterns that name the batch; `members`: the patterns that have
    both, by name; `others`: those that differ, with their mistakes."""

    name: str
    source: str
    schedule: str | None
    members: tuple[str, ...]
    others: Mapping[str, list[BadValueError]]


def batch_of(pattern: Pattern, rule: str | None) -> str | None:
    """The name of the batch of a pattern; `rule`: the profile's `batches`. None where it runs alone."""
    if pattern.batch is not None or rule is None or pattern.schedule is None:
        return pattern.batch
    words = re.sub(r"[*/,#-]", lambda sign: f" {CRON_SIGNS[sign[0]]} ", f"{read_by(pattern)} {pattern.schedule}")
    words += f" {pattern.time_zone}" if pattern.time_zone else ""
    name = "_".join(re.findall(r"[a-z0-9]+", words.lower()))
    if len(name) <= LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: LONGEST - len(digest) - 1]}_{digest}"


def batches_of(patterns: Mapping[str, Pattern], rule: str | None) -> dict[str, Batch]:
    """The batches by name. `patterns`: by name, in an order that is kept."""
    named: dict[str, dict[str, Pattern]] = {}
    for name, pattern in patterns.items():
        if batch := batch_of(pattern, rule):
            named.setdefault(batch, {})[name] = pattern
    return {name: _batch(name, members) for name, members in named.items()}


def _batch(name: str, patterns: Mapping[str, Pattern]) -> Batch:
    shared = {key: (item.tables, item.schedule, _clock(item)) for key, item in patterns.items()}
    usual = Counter(shared.values()).most_common(1)[0][0]
    members = {key: item for key, item in patterns.items() if shared[key] == usual}
    first = next(iter(members.values()))
    others = {key: differences(item, first, name) for key, item in patterns.items() if key not in members}
    return Batch(name, read_by(first), first.schedule, tuple(members), others)


def read_by(pattern: Pattern) -> str:
    """The tables that a pattern reads: `orders,payments`."""
    return ",".join(pattern.tables)


def _clock(pattern: Pattern) -> str | None:
    """The zone of the clock by which its schedule starts it; None without a schedule."""
    return (pattern.time_zone or "UTC") if pattern.schedule is not None else None


def differences(member: Pattern, first: Pattern, batch: str) -> list[BadValueError]:
    """An error for each key in which `member` has to agree with the `first` pattern of its `batch`, and does not."""
    return [
        BadValueError(
            f"{key}: {ours or 'none'}, but '{first.name}' of the same batch '{batch}' has {theirs or 'none'}",
            place=member.document.place((key,) if key in member.document.data else ("batch",)),
            hint="the patterns of a batch share source, schedule and its time zone: give this one another batch",
        )
        for key, ours, theirs in (
            ("source" if member.sources is None else "sources", read_by(member), read_by(first)),
            ("schedule", member.schedule, first.schedule),
            ("time_zone", _clock(member), _clock(first)),
        )
        if ours != theirs
    ]
