"""The patterns of the demo and those of examples/flights by enumeration: every subsequence is built and tried. Knows
nothing of the engine.

The flights are read from the published file, the contract's rules are written out again in Python, and so are the
patterns: what this says and what Trendlake publishes have nothing in common but the data.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

NEW_YORK = ZoneInfo("America/New_York")
EARLY = timedelta(hours=4)
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Leg:
    """One row of the file. `delay`: minutes late at departure, None when it never left."""

    time: datetime
    carrier: str
    tail: str | None
    airport: str
    delay: int | None
    id: str = ""

    @property
    def window(self) -> datetime:
        """Start of the day it lies in: from 04:00 to 04:00 on New York's clock, which nobody sets at that hour."""
        day = (self.time.astimezone(NEW_YORK).replace(tzinfo=None) - EARLY).date()
        return (datetime.combine(day, time()) + EARLY).replace(tzinfo=NEW_YORK).astimezone(UTC)


@dataclass(frozen=True)
class Answer:
    trends: int
    legs: int
    worst: int
    mean: Fraction


Key = tuple[str, datetime]
Link = Callable[[Leg, Leg], bool]


def read_legs(path: Path) -> Iterator[Leg]:
    """The rows that keep the contract."""
    with zipfile.ZipFile(path) as archive:
        text = archive.read("flights.csv").decode()
    for row in csv.DictReader(io.StringIO(text)):
        value = {name: None if cell == "NA" else cell for name, cell in row.items()}
        if not keeps_contract(value):
            continue
        year, month, day, hour, minute = (int(row[name]) for name in ("year", "month", "day", "hour", "minute"))
        scheduled = datetime(year, month, day, hour, minute, tzinfo=NEW_YORK)
        delay = value["dep_delay"] if value["dep_time"] else None
        yield Leg(
            scheduled.astimezone(UTC),
            row["carrier"],
            value["tailnum"],
            row["origin"],
            None if delay is None else int(delay),
            f"{row['carrier']}-{row['flight']}-{year}{month:02d}{day:02d}-{row['origin']}",
        )


def keeps_contract(row: dict[str, str | None]) -> bool:
    """The rules that some rows of the file break (the others hold for all of them)."""
    left, tail, air = row["dep_time"] is not None, row["tailnum"], row["air_time"]
    distance = int(row["distance"] or 0)
    if left and (row["arr_time"] is None or tail is None or not -30 <= int(row["dep_delay"] or 0) <= 1440):
        return False
    if tail is not None and not (tail.startswith("N") and tail.isalnum() and 3 <= len(tail) <= 6):
        return False
    return distance >= 50 and (air is None or distance * 60 <= int(air) * 700)


def sequences(legs: list[Leg], linked: Link) -> Iterator[tuple[Leg, ...]]:
    """Every subsequence, strictly increasing in time, whose neighbours are all linked."""
    ordered = sorted(legs, key=lambda leg: leg.time)
    for length in range(1, len(ordered) + 1):
        for chosen in combinations(ordered, length):
            if all(a.time < b.time and linked(a, b) for a, b in pairwise(chosen)):
                yield chosen


def answer(trends: list[tuple[Leg, ...]]) -> Answer:
    delays = [int(leg.delay or 0) for trend in trends for leg in trend]
    return Answer(len(trends), len(delays), max(delays), Fraction(sum(delays), len(delays)))


def delay_snowball(legs: list[Leg]) -> dict[Key, Answer]:
    """By carrier and day: each aircraft's legs that leave late, every next one later."""
    aircraft = by(
        [leg for leg in legs if leg.delay is not None and leg.delay > 0],
        lambda leg: (leg.carrier, leg.window, leg.tail),
    )
    trends_of: dict[Key, list[tuple[Leg, ...]]] = defaultdict(list)
    for (carrier, window, _), flown in aircraft.items():
        trends_of[carrier, window] += sequences(flown, lambda a, b: int(a.delay or 0) < int(b.delay or 0))
    return {key: answer(trends) for key, trends in trends_of.items() if trends}


def recovery_without_cancellation(legs: list[Leg]) -> dict[Key, Answer]:
    """By airport and day: each aircraft's departures there with shrinking delays, none cancelled there before."""
    cancelled = by([leg for leg in legs if leg.delay is None], lambda leg: (leg.airport, leg.window))
    aircraft = by([leg for leg in legs if leg.delay is not None], lambda leg: (leg.airport, leg.window, leg.tail))
    trends_of: dict[Key, list[tuple[Leg, ...]]] = defaultdict(list)
    for (airport, window, _), flown in aircraft.items():
        for trend in sequences(flown, lambda a, b: int(a.delay or 0) > int(b.delay or 0)):
            if not any(leg.time < trend[0].time for leg in cancelled.get((airport, window), ())):
                trends_of[airport, window].append(trend)
    return {key: answer(trends) for key, trends in trends_of.items()}


def three_legs_later(legs: list[Leg]) -> set[tuple[str, ...]]:
    """The ids of three departures of one aircraft, first to last less than a day, each with more delay."""
    trends_of = set()
    for flown in in_order(leg for leg in legs if leg.delay is not None and leg.delay > 15):
        for first, leg in enumerate(flown):
            after = [other for other in flown[first + 1 :] if other.time - leg.time < DAY]
            for b, c in combinations(after, 2):
                if int(leg.delay or 0) < int(b.delay or 0) < int(c.delay or 0):
                    trends_of.add((leg.id, b.id, c.id))
    return trends_of


def late_and_gone(legs: list[Leg]) -> set[tuple[str, int]]:
    """Id and delay of what left more than three hours late, with no event of the aircraft in the two days after; two
    days that the year's flights reach."""
    newest = max(leg.time for leg in legs)
    return {
        (leg.id, leg.delay)
        for seen in in_order(legs)
        for leg, after in zip(seen, [*seen[1:], None], strict=True)
        if leg.delay is not None and leg.delay > 180 and leg.time + 2 * DAY <= newest
        if after is None or after.time - leg.time >= 2 * DAY
    }


def in_order(legs: Iterable[Leg]) -> Iterator[list[Leg]]:
    """Each aircraft's, by time, then by id."""
    for flown in by(list(legs), lambda leg: (leg.tail,)).values():
        yield sorted(flown, key=lambda leg: (leg.time, leg.id))


def by(legs: list[Leg], key: Callable[[Leg], tuple[object, ...]]) -> dict[tuple[object, ...], list[Leg]]:
    groups: dict[tuple[object, ...], list[Leg]] = defaultdict(list)
    for leg in legs:
        groups[key(leg)].append(leg)
    return groups
