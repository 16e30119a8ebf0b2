"""Times of events and windows on the clock of a pattern's zone; those of runs and commits stay in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timezone
from typing import Any, TypeVar

from trendlake.cep_core.events.zones import zone as zone_of
from trendlake.pipelines.report.facts import RunFacts

T = TypeVar("T")


def local(moment: datetime, zone: str | None) -> datetime:
    """The moment with the reading and offset of the zone's clock; as it is without a zone. The offset is fixed, so that
    moments are in order and apart by the time that passes, also where clocks are set."""
    if zone is None:
        return moment
    offset = moment.astimezone(zone_of(zone)).utcoffset()
    return moment if offset is None else moment.astimezone(timezone(offset))


def on_clock(facts: T, zone: str | None) -> T:
    """The same facts, every moment in them as of `local`."""
    shown: T = facts if zone is None else _on_clock(facts, zone)
    return shown


def in_interval_of(run: RunFacts, zone: str | None) -> RunFacts:
    """The run, its interval on the zone's clock."""
    since, until = (on_clock(at, zone) for at in (run.interval_from, run.interval_to))
    return replace(run, interval_from=since, interval_to=until)


def _on_clock(value: Any, zone: str) -> Any:
    if isinstance(value, datetime):
        return local(value, zone)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
        changed = {name: new for name, part in parts.items() if (new := _on_clock(part, zone)) is not part}
        return replace(value, **changed) if changed else value
    if isinstance(value, tuple):
        items = [_on_clock(item, zone) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return tuple(items)
    if isinstance(value, Mapping):
        return {key: _on_clock(item, zone) for key, item in value.items()}
    return value
