"""Channels: the events that several plans read are packed, cut and moved once, for all of them.

A plan is right on events that are cut by any part of its `unit_key`, and by time wherever its windows stay whole. So
plans share a channel where the key of one is part of the other's, and the channel is cut by the smaller one. A plan
whose key is empty would have all events of a time meet in one worker: such plans share with each other only.

Time is cut by windows that hold those of every plan (`_hull`). A plan that waits for time to come, that reads all
history, whose events have intervals, or that reads far more of time than others is read by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.events.windows import Windows, both
from trendlake.cep_core.plan import Reading
from trendlake.pipelines.execute.shard_plan import Cut

PARTS_OF_TIME = 1_000
"""Windows of a channel whose plans have windows of different kinds, at most: time is cut no finer."""
FARTHER = 4
"""Plans are read together where none reads so many times the time that another reads."""


@dataclass(frozen=True)
class Member:
    """A plan and the windows (not empty) that are computed; `number` tells it apart from the others of its batch."""

    number: int
    plan: AnyPlan
    windows: range

    @property
    def ends(self) -> tuple[int, int]:
        """The windows are those of the plan that end in (low, high], microseconds."""
        own = self.plan.windows
        return own.since(self.windows[0]), own.end(self.windows[-1])

    @property
    def span(self) -> tuple[int, int]:
        """The half-open time range of their events."""
        return self.plan.windows.span(self.windows)

    @property
    def alone(self) -> bool:
        """Whether nothing else is read with it."""
        return self.plan.waits or self.plan.windows.endless or self.plan.interval_start is not None

    def inside(self, channel: Windows, windows: range) -> range:
        """Its windows among those `windows` of a channel: those that end there."""
        if channel == self.plan.windows:
            return both(windows, self.windows)
        return both(self.plan.windows.ending_in(channel.since(windows[0]), channel.end(windows[-1])), self.windows)


@dataclass(frozen=True)
class Joint:
    """The `Reading` of several plans of one source: what any of them reads."""

    readings: tuple[Reading, ...]
    unit_key: tuple[str, ...]
    windows: Windows

    @property
    def schema(self) -> EventSchema:
        return self.readings[0].schema

    @property
    def interval_start(self) -> str | None:
        """Plans whose events have intervals are read by themselves."""
        return None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for reading in self.readings for name in reading.columns))

    @cached_property
    def event_types(self) -> tuple[str, ...] | None:
        """None where one of them reads every event."""
        types = [reading.event_types for reading in self.readings]
        known = [kinds for kinds in types if kinds is not None]
        return None if len(known) < len(types) else tuple(dict.fromkeys(kind for kinds in known for kind in kinds))


@dataclass(frozen=True)
class Channel:
    """Members whose events are cut together, by `reading`; `asked`: windows of the reading that hold all of theirs."""

    members: tuple[Member, ...]
    reading: Reading
    asked: range

    @classmethod
    def of(cls, members: Sequence[Member]) -> Channel:
        """Members whose keys are one, or parts of one another."""
        (first, *rest), windows, asked = members, *_hull(members)
        if not rest:
            return cls((first,), first.plan, asked)
        key = min((member.plan.unit_key for member in members), key=len)
        return cls(tuple(members), Joint(tuple(member.plan for member in members), key, windows), asked)

    def halves(self) -> tuple[Channel, Channel]:
        """Those that read less time, and those that read more."""
        ordered = sorted(self.members, key=lambda member: member.span[1] - member.span[0])
        middle = len(ordered) // 2
        return Channel.of(ordered[:middle]), Channel.of(ordered[middle:])

    def of_shard(self, cut: Cut, shard: int) -> list[tuple[Member, range]]:
        """The members with windows in a time shard, and those."""
        windows = cut.of(shard)
        inside = ((member, member.inside(self.reading.windows, windows)) for member in self.members)
        return [(member, own) for member, own in inside if own]


def together(members: Iterable[Member]) -> list[list[Member]]:
    """The members that are read together."""
    alone, groups = [], list[list[Member]]()
    for member in sorted(members, key=_time_read):
        if member.alone:
            alone.append([member])
        elif groups and _time_read(member) < FARTHER * _time_read(groups[-1][0]):
            groups[-1].append(member)
        else:
            groups.append([member])
    return [*groups, *alone]


def _time_read(member: Member) -> int:
    return member.span[1] - member.span[0]


def channels_of(members: Sequence[Member]) -> list[Channel]:
    """The channels of members that are read together: one for each smallest key, and each member in one of them."""
    by_key: dict[frozenset[str], list[Member]] = {}
    for member in sorted(members, key=lambda member: len(member.plan.unit_key)):
        key = frozenset(member.plan.unit_key)
        smaller = next((known for known in by_key if known <= key and bool(known) == bool(key)), key)
        by_key.setdefault(smaller, []).append(member)
    return [Channel.of(group) for group in by_key.values()]


def joint(channels: Sequence[Channel]) -> Reading:
    """The reading for all of the channels together."""
    if len(channels) == 1:
        return channels[0].reading
    keys = (name for channel in channels for name in channel.reading.unit_key)
    members = [member for channel in channels for member in channel.members]
    readings = tuple(channel.reading for channel in channels)
    return Joint(readings, tuple(dict.fromkeys(keys)), _hull(members)[0])


def _hull(members: Sequence[Member]) -> tuple[Windows, range]:
    """Windows that contain the members' windows, and the range of those that hold the windows that the members compute.
    A member's window is contained in the one in whose slide it ends."""
    kinds = {member.plan.windows for member in members}
    if len(kinds) == 1:
        asked = [member.windows for member in members]
        return kinds.pop(), range(min(one.start for one in asked), max(one.stop for one in asked))
    lows, highs = zip(*(member.ends for member in members), strict=True)
    low, high = min(lows), max(highs)
    reach = max(own.longest for own in kinds)
    slide = max(min(own.step for own in kinds), -(-(high - low) // PARTS_OF_TIME))
    return Windows(slide + reach, slide, low - reach), range(-(-(high - low) // slide))
