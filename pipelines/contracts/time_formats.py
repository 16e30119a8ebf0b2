"""How files write the times of a column: the format and the time zone that a contract declares.

Both are custom properties of a column: `{property: timeFormat, value: "%m/%d/%Y %H:%M"}` and
`{property: timeZone, value: America/New_York}`. Without them times are ISO 8601, and those without an offset are UTC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trendlake.cep_core.errors import BadValueError, TrendlakeError, did_you_mean
from trendlake.cep_core.events.local_times import UTC
from trendlake.cep_core.events.zones import zone_fault
from trendlake.cep_core.yaml.source import Source
from trendlake.pipelines.contracts.odcs import Document, Property

TIME_FORMAT, TIME_ZONE = "timeFormat", "timeZone"
ISO, UNIX_SECONDS, UNIX_MILLIS = "iso8601", "unix_seconds", "unix_millis"
WORDS = (ISO, UNIX_SECONDS, UNIX_MILLIS)
DATE_DIRECTIVES: Mapping[str, str] = {
    "%Y": "the year, four digits",
    "%y": "the year, two digits: 69 to 99 are 1969 to 1999, 00 to 68 are 2000 to 2068",
    "%m": "the month as a number",
    "%b": "the month as an English word of three letters: Jan",
    "%B": "the month as an English word: January",
    "%d": "the day of the month",
}
CLOCK_DIRECTIVES: Mapping[str, str] = {
    "%H": "the hour, 0 to 23",
    "%I": "the hour, 1 to 12, with %p",
    "%M": "the minute",
    "%S": "the second",
    "%f": "the fraction of the second, 1 to 6 digits",
    "%p": "AM or PM",
    "%z": "the offset from UTC: Z, +0100 or +01:00",
}
DIRECTIVES = {**DATE_DIRECTIVES, **CLOCK_DIRECTIVES, "%%": "a percent sign"}
"""The directives that a `timeFormat` may contain; all other characters stand for themselves."""
MEANT = {
    "%D": "%m/%d/%y",
    "%F": "%Y-%m-%d",
    "%T": "%H:%M:%S",
    "%R": "%H:%M",
    "%h": "%b",
    "%e": "%d",
    "%k": "%H",
    "%l": "%I",
    "%s": "%S",
    "%i": "%M",
    "%P": "%p",
    "%L": "%f",
    "%N": "%f",
    "%Z": "%z",
    "%G": "%Y",
    "%n": "%m",
}
"""Directives of other programs, and what they are called here."""
DIRECTIVE = re.compile(r"%[-_^0#]?.?", re.DOTALL)
HOURS = ("%H", "%I")
NEEDS = {"%M": HOURS, "%z": HOURS, "%S": ("%M",), "%f": ("%S",), "%p": ("%I",), "%I": ("%p",)}
"""Directives that a format has only with one of others."""
EXAMPLE = "%m/%d/%Y %H:%M"


@dataclass(frozen=True)
class TimeFormat:
    """How the cells of a column of times are read. `format`: one of `WORDS`, or `DIRECTIVES` and the text between them;
    `zone`: the IANA name of the time zone of times that state no offset."""

    format: str = ISO
    zone: str = UTC

    @property
    def is_unix(self) -> bool:
        return self.format in (UNIX_SECONDS, UNIX_MILLIS)

    @property
    def states_offset(self) -> bool:
        """Whether no time of the format needs the zone."""
        return self.is_unix or "%z" in DIRECTIVE.findall(self.format)


def time_formats_of(document: Document, source: Source, errors: list[TrendlakeError]) -> Mapping[str, TimeFormat]:
    """Column -> how its times are read, for the columns that declare it; mistakes are added to `errors`."""
    declared = {}
    for index, item in enumerate(document.table.properties):
        values = {}
        for number, custom in enumerate(item.custom_properties):
            if custom.property not in (TIME_FORMAT, TIME_ZONE):
                continue
            path = ("schema", 0, "properties", index, "customProperties", number)
            fault = _fault(custom.property, custom.value, item)
            if fault is None:
                values[custom.property] = str(custom.value)
            else:
                message, hint = fault
                errors.append(BadValueError(message, place=source.place((*path, "value")), hint=hint))
        if not values:
            continue
        how = TimeFormat(values.get(TIME_FORMAT, ISO), values.get(TIME_ZONE, UTC))
        declared[item.name] = how
        if how.states_offset and how.zone != UTC:
            message = f"{TIME_ZONE} has no effect: each time of the format '{how.format}' states its moment"
            place = source.place(("schema", 0, "properties", index, "customProperties"))
            errors.append(BadValueError(message, place=place, hint=f"leave out {TIME_ZONE}"))
    return declared


def format_fault(text: str, *, date: bool = False) -> tuple[str, str] | None:
    """The fault in a format, and a hint; None if the format is right. `date`: it is of a column of dates."""
    if text in WORDS:
        if date and text != ISO:
            return f"{TIME_FORMAT} '{text}' gives a time, but the column is a date", "logicalType: timestamp"
        return None
    parts = DIRECTIVE.findall(text)
    if not parts:
        return f"unknown {TIME_FORMAT} '{text}'", _hint_of_word(text)
    for part in parts:
        if part not in DIRECTIVES:
            return f"unknown directive '{part}' in {TIME_FORMAT} '{text}'", _hint_of_directive(part)
    return _incomplete(text, [part for part in parts if part != "%%"], date=date)


def _fault(name: str, value: object, item: Property) -> tuple[str, str | None] | None:
    kinds = ("timestamp", "date") if name == TIME_FORMAT else ("timestamp",)
    if item.logical_type not in kinds:
        kind = item.logical_type or "no type"
        return f"{name} is for columns of type {' or '.join(kinds)}; '{item.name}' has {kind}", None
    if not isinstance(value, str):
        example = f'"{EXAMPLE}"' if name == TIME_FORMAT else "America/New_York"
        return f"{name} is a text, not {value!r}", f"such as {example}"
    return format_fault(value, date=item.logical_type == "date") if name == TIME_FORMAT else zone_fault(value)


def _hint_of_word(text: str) -> str:
    close = did_you_mean(text.lower(), WORDS) or ""
    if close.startswith("did you mean"):
        return close
    return f'{", ".join(WORDS)}, or directives that begin with %, such as "{EXAMPLE}"'


def _hint_of_directive(part: str) -> str:
    plain = f"%{part[-1]}"
    if len(part) == 3 and plain in DIRECTIVES:
        return f"write {plain}: it reads numbers with and without a zero in front"
    meant = MEANT.get(part) or next((one for one in (part.lower(), part.upper()) if one in DIRECTIVES), None)
    return f"did you mean '{meant}'?" if meant else f"the directives are {' '.join(DIRECTIVES)}"


def _incomplete(text: str, parts: Sequence[str], *, date: bool) -> tuple[str, str] | None:
    """The fault of a format whose directives are known, but do not make one moment."""
    hint = f'such as "{EXAMPLE}"'
    named = f"{TIME_FORMAT} '{text}'"
    for choice, what in ((("%Y", "%y"), "year"), (("%m", "%b", "%B"), "month"), (("%d",), "day")):
        count = sum(part in choice for part in parts)
        if count != 1:
            return f"{named} has {'no' if not count else 'more than one'} {what} ({', '.join(choice)})", hint
    repeated = next((part for part in parts if parts.count(part) > 1), None)
    if repeated is not None or all(hour in parts for hour in HOURS):
        return f"{named} has {repeated or 'the hour'} more than once", hint
    for part, others in NEEDS.items():
        if part in parts and not any(other in parts for other in others):
            return f"{named} has {part} without {' or '.join(others)}", hint
    if date and any(part in CLOCK_DIRECTIVES for part in parts):
        return f"{named} has a time of day, but the column is a date", "logicalType: timestamp, or %Y %m %d only"
    return None
