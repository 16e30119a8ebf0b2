"""The properties of a contract that Trendlake reads: custom properties and service levels, by the place they belong to.

The standard lets a contract carry properties for any program, so one that Trendlake does not know is allowed. One that
is spelled almost like one it reads, or is in another place than where it is read, is an error: without its effect the
contract would silently promise something else.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from trendlake.cep_core.errors import BadValueError, TrendlakeError
from trendlake.cep_core.language.tree_builder import MAX_DURATION
from trendlake.cep_core.yaml.source import Path_, Source
from trendlake.pipelines.contracts.odcs import Document

Level = Literal["table", "column", "service level"]
PROPERTIES: Mapping[Level, tuple[str, ...]] = {
    "table": (
        "eventType",
        "quarantineTolerance",
        "corrections",
        "nullWords",
        "documentPath",
        "idPath",
        "timePath",
        "timeFormat",
        "derive",
    ),
    "column": ("eventRole", "nullWords", "timeFormat", "timeZone", "idColumns", "appliesTo"),
    "service level": ("latency", "maxFuture"),
}
"""The properties that are read, by the place where they are: `customProperties` of the table, `customProperties` of a
column, `slaProperties` of the contract."""
OF_DOCUMENTS = ("documentPath", "idPath", "timePath", "timeFormat")
"""Properties of the table that are read of a source of documents only."""
PLACES: Mapping[Level, str] = {
    "table": "the table's customProperties",
    "column": "a column's customProperties",
    "service level": "slaProperties",
}
SERVICE_LEVELS = (
    "ly",
    "availability",
    "throughput",
    "errorRate",
    "generalAvailability",
    "endOfSupport",
    "endOfLife",
    "retention",
    "frequency",
    "timeOfAvailability",
    "timeToDetect",
    "timeToNotify",
    "timeToRepair",
)
"""Further names that the standard has for service levels."""
CLOSE = 0.75
"""The least similarity (`difflib`'s ratio) of two names at which one is taken for a misspelling of the other."""
CORRECTIONS = ("replace",)
SEQUENCE = "sequence"
"""The role that a column of a reference table may have, too: which row of a key counts."""
LATENESS = ("latency", "ly")
MAX_FUTURE = ("maxFuture",)
MICROSECONDS = {
    "s": 10**6,
    "second": 10**6,
    "min": 60 * 10**6,
    "minute": 60 * 10**6,
    "h": 3600 * 10**6,
    "hour": 3600 * 10**6,
    "d": 86400 * 10**6,
    "day": 86400 * 10**6,
    "w": 7 * 86400 * 10**6,
    "week": 7 * 86400 * 10**6,
}
MAX_FUTURE_US = MICROSECONDS["d"]
"""How far in the future an event's time may be and move the watermark, where the contract does not say."""


def names_no_event(document: Document) -> bool:
    """Whether it is the contract of a reference table: no column has an event's role, and no property gives a type."""
    roles = (one for item in document.table.properties for one in item.custom_properties if one.property == "eventRole")
    return all(one.value == SEQUENCE for one in roles) and document.table.custom("eventType") is None


def misspelt(document: Document, source: Source) -> Iterator[TrendlakeError]:
    """The properties that are close to one that is read, or are in a place where it is not read."""
    documents = any(item.custom("eventRole") == "document" for item in document.table.properties)
    timeless = {name.lower() for name in (*LATENESS, *MAX_FUTURE)} if names_no_event(document) else set()
    for level, name, path in _properties(document):
        problem = _problem(level, name)
        if level == "table" and name in OF_DOCUMENTS and not documents:
            where = PLACES["column"] if name in PROPERTIES["column"] else "a source with a column of the role document"
            problem = f"'{name}' is not read here", f"it belongs to {where}"
        if level == "service level" and name.lower() in timeless:
            hint = "leave it out; events have a column with the role event_time"
            problem = f"'{name}' is not read: no row of a reference table is too late", hint
        if problem is not None:
            message, hint = problem
            yield BadValueError(message, place=source.place(path), hint=hint)


def stated_twice(document: Document, source: Source) -> Iterator[TrendlakeError]:
    """The properties that are read and appear in one place a second time: only one of them would count."""
    seen: set[tuple[Path_, str]] = set()
    for level, name, path in _properties(document):
        read = name
        if level == "service level":  # whose names are read in any case, and one has two
            read = {**{one.lower(): one for one in PROPERTIES[level]}, "ly": "latency"}.get(name.lower(), name)
        if level is None or read not in PROPERTIES[level]:
            continue
        if (path[:-2], read) in seen:
            yield BadValueError(f"'{read}' is stated twice", place=source.place(path), hint="leave one of them out")
        seen.add((path[:-2], read))


def replaces(document: Document, source: Source, errors: list[TrendlakeError]) -> bool:
    """Whether a delivered row replaces the row of the table that has its key: `corrections: replace`."""
    for index, custom in enumerate(document.table.custom_properties):
        if custom.property != "corrections":
            continue
        if custom.value in CORRECTIONS:
            return True
        place = source.place(("schema", 0, "customProperties", index, "value"))
        hint = "without the property, ingest refuses a known key with other values"
        errors.append(BadValueError(f"corrections is 'replace', not {custom.value!r}", place=place, hint=hint))
    return False


def duration(document: Document, source: Source, names: Sequence[str], errors: list[TrendlakeError]) -> int | None:
    """The service level with one of `names`, microseconds; None where the contract does not have it."""
    for index, level in enumerate(document.sla_properties):
        if level.property.lower() not in {name.lower() for name in names}:
            continue
        unit = (level.unit or "d").lower()
        factor = MICROSECONDS.get(unit, MICROSECONDS.get(unit.removesuffix("s")))
        if factor is None:
            place = source.place(("slaProperties", index, "unit"))
            errors.append(BadValueError(f"unknown unit '{level.unit}'", place=place, hint="s, min, h, d or w"))
            continue
        place = source.place(("slaProperties", index, "value"))
        if isinstance(level.value, bool) or not isinstance(level.value, int | float) or level.value < 0:
            errors.append(BadValueError(f"{names[0]} is a number, 0 or more", place=place))
        elif not level.value * factor <= MAX_DURATION:  # more, infinite or no number
            errors.append(BadValueError(f"{names[0]} is 10,000 years at most", place=place))
        else:
            return round(level.value * factor)
    return None


def _problem(level: Level | None, name: str) -> tuple[str, str] | None:
    """Message and hint, for a property called `name` at `level` (None: where none is read)."""
    allowed = PROPERTIES[level] if level else ()
    if name in allowed or (
        level == "service level" and name.lower() in {one.lower() for one in (*allowed, *SERVICE_LEVELS)}
    ):
        return None
    for other, names in PROPERTIES.items():
        if name in names:
            return f"'{name}' is not read here", f"it belongs to {PLACES[other]}"
    every = [*allowed, *(one for names in PROPERTIES.values() for one in names if one not in allowed)]
    closest = _closest(name, every)
    if closest is None:
        return None
    hint = f"did you mean '{closest}'?"
    return f"unknown property '{name}'", hint if closest in allowed else f"{hint} It belongs to {_place_of(closest)}"


def _closest(name: str, words: Sequence[str]) -> str | None:
    lower = {one.lower().replace("_", ""): one for one in reversed(words)}
    close = difflib.get_close_matches(name.lower().replace("_", ""), list(lower), n=1, cutoff=CLOSE)
    return lower[close[0]] if close else None


def _place_of(name: str) -> str:
    return next(PLACES[level] for level, names in PROPERTIES.items() if name in names)


def _properties(document: Document) -> Iterator[tuple[Level | None, str, Path_]]:
    """Level, name and path of each property of the contract."""
    table: Path_ = ("schema", 0)
    yield from _custom(None, document, ())
    yield from _custom("table", document.table, table)
    for number, quality in enumerate(document.table.quality):
        yield from _custom(None, quality, (*table, "quality", number))
    for index, item in enumerate(document.table.properties):
        path = (*table, "properties", index)
        yield from _custom("column", item, path)
        for number, quality in enumerate(item.quality):
            yield from _custom(None, quality, (*path, "quality", number))
    if document.description is not None:
        yield from _custom(None, document.description, ("description",))
    for index, level in enumerate(document.sla_properties):
        yield "service level", level.property, ("slaProperties", index, "property")


def _custom(level: Level | None, holder: Any, path: Path_) -> Iterator[tuple[Level | None, str, Path_]]:
    for number, custom in enumerate(holder.custom_properties):
        yield level, custom.property, (*path, "customProperties", number, "property")
