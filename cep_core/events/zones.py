"""Time zones, from the package `tzdata` only: the databases of systems and of Java differ from it, and from each other.

A `Clock` is a zone's offsets from UTC at all times. Two questions are asked of it, and each answers the other:

    first(reading)  the first moment at which the clock shows the reading or a later one
    passed(moment)  the latest reading that the clock has shown by then

so that `first(reading) <= moment` just where `reading <= passed(moment)`. A skipped reading is the moment of the
change; of a reading shown twice the first counts.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

import numpy as np
import tzdata

from trendlake.cep_core.errors import did_you_mean
from trendlake.cep_core.events.array_types import Int64s

SECOND = 1_000_000
FAR = 2**62
"""Microseconds: before and after every moment."""
YEARS_400 = 146_097 * 86_400
"""Seconds: the calendar, its days of the week too, repeats after so many."""
LAST = 253_402_300_800 + 2 * 86_400
"""Seconds: a day after the last moment of the year 9999 anywhere."""
PROBES = 15 * 86_400
"""Seconds: a zone's rule leaves the clocks alone for longer between two changes."""


def database() -> str:
    """The version of the zone database, such as 2026f."""
    return str(tzdata.IANA_VERSION)


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """The names of all zones of the database."""
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    return frozenset(listed) - {"localtime", "Factory"}


def zone_fault(text: str) -> tuple[str, str | None] | None:
    """The fault in the name of a time zone, and a hint; None if the name is right."""
    names = zone_names()
    if text in names:
        return None
    by_city = {name.rpartition("/")[2].lower(): name for name in sorted(names, key=lambda name: (-len(name), name))}
    city = by_city.get(text.strip().replace(" ", "_").rpartition("/")[2].lower())
    hint = f"did you mean '{city}'?" if city else did_you_mean(text, sorted(names))
    return f"unknown time zone '{text}'", hint or "an IANA name, such as Europe/Berlin, America/New_York or UTC"


@lru_cache(maxsize=1_000)
def zone(name: str) -> ZoneInfo:
    """A zone of the database. Raises KeyError for a name that it does not have."""
    if name not in zone_names():
        raise KeyError(name)
    with _file(name).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


def _file(name: str) -> resources.abc.Traversable:
    return resources.files("tzdata.zoneinfo").joinpath(*name.split("/"))


@dataclass(frozen=True)
class Clock:
    """The offsets of a zone, microseconds: from `moments[i]` on until the next the clock shows `offsets[i]` more than
    UTC. The first is from ever on."""

    moments: Int64s
    offsets: Int64s

    @classmethod
    def of(cls, name: str) -> Clock:
        """Raises KeyError, as `zone`."""
        return _clock(name)

    @cached_property
    def _shown(self) -> Int64s:
        """By the end of each stretch of one offset: a reading that is later than all that the clock has shown."""
        ends = np.append(self.moments[1:], FAR) + self.offsets
        return np.maximum.accumulate(ends)

    @cached_property
    def longest_gap(self) -> int:
        """The most that clocks have been set forward by at once, microseconds."""
        return int(np.diff(self.offsets).max(initial=0))

    @cached_property
    def set_back(self) -> int:
        """The most by which the clock is less ahead of UTC at a moment than at an earlier one, microseconds."""
        return int((np.maximum.accumulate(self.offsets) - self.offsets).max())

    @cached_property
    def _lists(self) -> tuple[list[int], list[int], list[int]]:
        return self.moments.tolist(), self.offsets.tolist(), self._shown.tolist()

    def offset(self, moment: int) -> int:
        """At a moment, microseconds."""
        moments, offsets, _ = self._lists
        return offsets[bisect_right(moments, moment) - 1]

    def first(self, reading: int) -> int:
        """The first moment at which the clock shows `reading` (microseconds from 1970) or a later one."""
        moments, offsets, shown = self._lists
        at = bisect_right(shown, reading)
        return max(moments[at], reading - offsets[at])

    def passed(self, moment: int) -> int:
        """The latest reading that the clock has shown by `moment`."""
        moments, offsets, shown = self._lists
        at = bisect_right(moments, moment) - 1
        here = moment + offsets[at]
        return max(here, shown[at - 1] - 1) if at else here

    def shows(self, reading: int) -> int:
        """How many times the clock shows a reading: 0 where it is skipped, 2 where it is repeated."""
        moments, offsets, _ = self._lists
        near = range(
            max(0, bisect_right(moments, reading - 2 * 86_400 * SECOND) - 1),
            bisect_right(moments, reading + 2 * 86_400 * SECOND),
        )
        return sum(moments[i] <= reading - offsets[i] < (moments[i + 1 :] or [FAR])[0] for i in near)

    def firsts(self, readings: Int64s) -> Int64s:
        """`first` of many."""
        if not len(readings):
            return readings
        low, high = np.searchsorted(self._shown, [readings.min(), readings.max()], side="right")
        at = low + np.searchsorted(self._shown[low:high], readings, side="right")
        moments: Int64s = np.maximum(self.moments[at], readings - self.offsets[at])
        return moments

    def all_passed(self, moments: Int64s) -> Int64s:
        """`passed` of many."""
        at = self._stretches(moments)
        before = np.where(at > 0, self._shown[at - 1] - 1, -FAR)
        readings: Int64s = np.maximum(moments + self.offsets[at], before)
        return readings

    def readings(self, moments: Int64s) -> Int64s:
        """The readings of the clock at moments, microseconds from 1970."""
        return moments + self.offsets[self._stretches(moments)]

    def _stretches(self, moments: Int64s) -> Int64s:
        if not len(moments):
            return moments
        low, high = np.searchsorted(self.moments, [moments.min(), moments.max()], side="right")
        at: Int64s = low - 1 + np.searchsorted(self.moments[low:high], moments, side="right")
        return at

    def within(self, start: int, end: int) -> tuple[tuple[int, int], ...]:
        """The offsets of [start, end): (from, seconds) of each stretch, the first from `start` on."""
        low, high = np.searchsorted(self.moments, [start, end - 1], side="right")
        moments = [start, *self.moments[low:high].tolist()]
        return tuple(
            (moment, offset // SECOND)
            for moment, offset in zip(moments, self.offsets[low - 1 : high].tolist(), strict=True)
        )


@lru_cache(maxsize=100)
def _clock(name: str) -> Clock:
    """The changes that the file lists, and those of the rule that goes on after them."""
    info, data = zone(name), _file(name).read_bytes()
    listed, rule = _contents(data)
    if "," in rule:
        start = max([0, *listed])
        known = list(_changes(info, start, start + YEARS_400))
        rounds = (LAST - start) // YEARS_400 + 1
        listed += [one + times * YEARS_400 for times in range(rounds) for one in known]
    moments, offsets = [-FAR], [_offset(info, min(listed, default=0) - 1)]
    for moment in sorted({one for one in listed if one < LAST}):
        offset = _offset(info, moment if moment < LAST - YEARS_400 else moment - YEARS_400)
        if offset != offsets[-1]:
            moments.append(moment * SECOND)
            offsets.append(offset)
    return Clock(np.array(moments, np.int64), np.array(offsets, np.int64))


def _offset(info: ZoneInfo, moment: int) -> int:
    """At a moment, seconds from the epoch; microseconds."""
    local = info.fromutc((datetime(1970, 1, 1) + timedelta(seconds=moment)).replace(tzinfo=info))
    offset = local.utcoffset()
    return 0 if offset is None else offset // timedelta(microseconds=1)


def _changes(info: ZoneInfo, start: int, end: int) -> list[int]:
    """The moments in (start, end] at which the offset changes, seconds."""
    changes, before = [], _offset(info, start)
    for probe in range(start + PROBES, end + PROBES, PROBES):
        after = _offset(info, probe)
        if after != before:
            low, high = probe - PROBES, probe
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(info, middle) == before else (low, middle)
            changes.append(high)
            before = after
    return [one for one in changes if one <= end]


def _contents(data: bytes) -> tuple[list[int], str]:
    """The moments of the changes that a TZif file lists, seconds, and the text of its rule (RFC 8536)."""
    header = struct.Struct(">4sc15x6l")
    _, _, *counts = header.unpack_from(data)
    utc, standard, leaps, times, types, chars = counts
    at = header.size + times * 5 + types * 6 + chars + leaps * 8 + standard + utc
    _, _, *counts = header.unpack_from(data, at)
    utc, standard, leaps, times, types, chars = counts
    at += header.size
    listed = list(struct.unpack_from(f">{times}q", data, at))
    at += times * 9 + types * 6 + chars + leaps * 12 + standard + utc
    return listed, data[at:].decode().strip()


def stamped(moment: int, name: str) -> str:
    """A moment, microseconds, as the clock of a zone shows it, with its offset: `2013-03-10T03:00:00-04:00`."""
    at = datetime.fromtimestamp(moment // SECOND, UTC).replace(microsecond=moment % SECOND)
    return at.astimezone(zone(name)).isoformat()
