"""`within`, `slide` and `origin` of windows: lengths of time, or days and months of the calendar of `time_zone`.

within: 6 hours            a length of time, with and without `time_zone`
within: 1 week             with `time_zone` 7 days of its calendar, else 7 times 24 hours
within: 1 quarter          3 months of the calendar of `time_zone`
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import PlainValidator, WithJsonSchema

from trendlake.cep_core.errors import BadValueError, TextError, TrendlakeError
from trendlake.cep_core.events.windows import DAY, CalendarWindows, Windows
from trendlake.cep_core.events.zones import Clock
from trendlake.cep_core.language.parse import parse_duration
from trendlake.cep_core.language.tree_builder import MAX_DURATION
from trendlake.cep_core.patterns.model import moment_of
from trendlake.cep_core.yaml.source import Source

_PART = re.compile(r"\s*(?:(\d{1,9})|interval\s*'\s*(\d{1,9})\s*')\s*(day|week|month|quarter|year)s?\b\s*", re.I)
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
MONDAY = -3
"""The Monday before 1970-01-01, in days from it."""
LAST_DAY = 28
"""Every month has it."""


class Length(int):
    """Microseconds; of months, of 30 days each. `days`, `months`: as the text counts them, 0 where it does not count in
    these. `weeks`: whether it counts in weeks alone. `unit`: a word for what it counts in."""

    days: int = 0
    months: int = 0
    weeks: bool = False
    unit: str = "hours"

    @classmethod
    def of(cls, text: object) -> Length:
        """Raises ValueError, as `parse_duration`."""
        if isinstance(text, cls):
            return text
        if isinstance(text, bool) or not isinstance(text, str):
            raise ValueError("expected a duration such as 10 minutes")
        parts, at = list[tuple[int, str]](), 0
        while match := _PART.match(text, at):
            parts.append((int(match[1] or match[2]), match[3].lower()))
            at = match.end()
        units = {unit for _, unit in parts}
        if at < len(text) or not (units and (units <= _DAYS.keys() or units <= _MONTHS.keys())):
            return cls(parse_duration(text))
        days = sum(count * _DAYS.get(unit, 0) for count, unit in parts)
        months = sum(count * _MONTHS.get(unit, 0) for count, unit in parts)
        if not days and not months:
            raise TextError("a duration is more than zero", 0, len(text))
        if (days + 31 * months) * DAY > MAX_DURATION:
            raise TextError("longer than 10,000 years", 0, len(text))
        length = cls((days + 30 * months) * DAY)
        length.days, length.months, length.weeks = days, months, units == {"week"}
        length.unit = "months" if months else "weeks" if length.weeks else "days"
        return length

    @property
    def in_calendar(self) -> bool:
        return bool(self.days or self.months)


class Origin(int):
    """Microseconds from 1970-01-01 on the clock that the text means: of UTC or, without an offset (`local`), of the
    pattern's time zone."""

    local: bool = False

    @classmethod
    def of(cls, value: object) -> Origin:
        if isinstance(value, cls):
            return value
        origin = cls(moment_of(value))
        text = value if isinstance(value, str) else getattr(value, "isoformat", str)()
        origin.local = datetime.fromisoformat(text.strip()).tzinfo is None
        return origin


_LENGTH = WithJsonSchema({"type": "string", "examples": ["10 minutes", "1 day", "1 month"]})
WindowLength = Annotated[Length, PlainValidator(Length.of), _LENGTH]
MaybeWindowLength = Annotated[
    Length | None, PlainValidator(lambda value: None if value is None else Length.of(value)), _LENGTH
]
WindowOrigin = Annotated[
    Origin, PlainValidator(Origin.of), WithJsonSchema({"type": "string", "examples": ["2013-01-31T09:00:00Z"]})
]


@dataclass(frozen=True)
class Asked:
    """The windows that a file asks for."""

    within: Length
    slide: Length
    origin: Origin | None
    time_zone: str | None

    @property
    def in_calendar(self) -> bool:
        return self.time_zone is not None and self.within.in_calendar

    @property
    def windows(self) -> Windows:
        """Of a file without `mistakes`."""
        if self.time_zone is None or not self.within.in_calendar:
            origin = self.origin or 0
            if self.time_zone is not None and self.origin is not None and self.origin.local:
                origin = Clock.of(self.time_zone).first(origin)
            return Windows(int(self.within), int(self.slide), int(origin))
        date = MONDAY if self.slide.weeks else 0
        date, time = (date, 0) if self.origin is None else divmod(int(self.origin), DAY)
        if not self.within.months:
            return CalendarWindows(self.within.days, self.slide.days, date, self.time_zone, False, time)
        year, month, day = civil(date)
        number, shift = (year - 1970) * 12 + month - 1, (day - 1) * DAY + time
        return CalendarWindows(self.within.months, self.slide.months, number, self.time_zone, True, shift)

    def mistakes(self, source: Source) -> Iterator[TrendlakeError]:
        """The keys that do not go together."""

        def bad(key: str, message: str, hint: str) -> TrendlakeError:
            return BadValueError(message, place=source.place((key,)), hint=hint)

        if self.time_zone is None:
            for key, length in (("within", self.within), ("slide", self.slide)):
                if length.months and source.data.get(key) is not None:
                    unit = next(word for word in _MONTHS if word in str(source.data[key]).lower())
                    hint = "add `time_zone: UTC`, or the zone whose months you mean"
                    yield bad(key, f"'{unit}' has no fixed length", hint)
            return
        kinds = [("months" if one.months else "days" if one.days else "hours") for one in (self.within, self.slide)]
        if kinds[0] != kinds[1]:
            hint = (
                "write both in days, or both in hours"
                if "months" not in kinds
                else "write both in months, or both in days"
            )
            yield bad("slide", f"within is in {self.within.unit} and slide in {self.slide.unit}", hint)
            return
        for key, length in (("within", self.within), ("slide", self.slide)):
            text = str(source.data.get(key) or "").lower()
            if not length.in_calendar and re.search(r"day|week", text):
                hint = "write whole days, or hours"
                yield bad(
                    key, "a length is of days of the calendar, or of hours: not of both, nor of a part of a day", hint
                )
                return
        if not self.in_calendar or self.origin is None:
            return
        if not self.origin.local:
            yield bad("origin", "origin of calendar windows is a local time", "leave out 'Z' or the offset")
        elif self.within.months and (day := civil(int(self.origin) // DAY)[2]) > LAST_DAY:
            yield bad("origin", f"months cannot begin on the {day}{'st' if day == 31 else 'th'}", f"1 to {LAST_DAY}")


def civil(date: int) -> tuple[int, int, int]:
    """Year, month and day of the month of a date, days from 1970-01-01."""
    at = datetime(1970, 1, 1).date().fromordinal(719_163 + date)
    return at.year, at.month, at.day
