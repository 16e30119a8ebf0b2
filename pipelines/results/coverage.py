"""Which windows of a pattern are published, and which versions of its tables their rows speak of.

Every commit to a results table says in its note what it answers for; a revision that found nothing to change records
that in `trendlake_runs`, with the results' version it compared with. Read in the order of the results' versions, the
last word on a window holds: what it says is what the table shows, whichever run came late. A commit of other programs
that changes rows ends what was known before it; RESTORE brings back what was known of the version that it restores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.windows import AGES, CalendarWindows
from trendlake.cep_core.plan import owner
from trendlake.pipelines.results.notes import Calendar, Grid, Note, Zone
from trendlake.pipelines.results.owned_rows import INTERVALS
from trendlake.pipelines.runs.code_versions import Version
from trendlake.pipelines.runs.source_versions import Versions

Part = TypeVar("Part")


@dataclass(frozen=True)
class Segment:
    """Consecutive windows, `first` to `last` (included). `plan_hash`, `contract`: the form of the pattern, and of its
    sources' contracts, they show. `sources`: the versions of its tables that they show, None where the windows were
    asked for and held back; without an id where other programs may have changed the rows since. `unique`: whether it
    has been seen that in those versions none of their rows repeated a key of its table's."""

    first: int
    last: int
    plan_hash: str
    contract: str | None
    sources: Versions | None
    unique: bool = False
    contracts: tuple[tuple[str, str], ...] | None = None
    """The fingerprints in `contract` by table, of a pattern with `sources`."""

    def same_form(self, other: Segment) -> bool:
        return (self.plan_hash, self.contract) == (other.plan_hash, other.contract)

    def stays_under(self, given: Segment) -> bool:
        """Whether this one, which is published, is of the form of `given`, and no older or newer in some table."""
        if self.sources is None or not self.same_form(given):
            return False
        if given.sources is None:
            return True
        return self.sources.no_older(given.sources) or bool(self.sources.newer(given.sources))


@dataclass(frozen=True)
class Claim:
    """The claim of a commit, or of a revision without one (`quiet`), about the windows it answers for. Slices `[low,
    high)` of the results' time column, microseconds: `owned` ones show `sources`, `withheld` ones were held
    back. `unique`: as in `Segment`, of those owned. `versions`: of the code that computed all rows of
    the slices `computed` and some of those of `computed_in_part`; None where they are not recorded. `grid`: of its
    plan; None where it is not recorded, and its time column is then taken for that of the plan that asks. `faulty`:
    whether rows of an earlier form may be left in its slices. `zone`: the clock by which the rows of the slices
    `computed` and `computed_in_part` were made, where the pattern names one."""

    results_version: int
    quiet: bool
    plan_hash: str
    contract: str | None
    sources: Versions
    owned: tuple[tuple[int, int], ...]
    withheld: tuple[tuple[int, int], ...] = ()
    unique: bool = False
    versions: frozenset[Version] | None = None
    computed: tuple[tuple[int, int], ...] = ()
    computed_in_part: tuple[tuple[int, int], ...] = ()
    grid: Grid | None = None
    faulty: bool = False
    zone: Zone | None = None
    contracts: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True)
class Alteration:
    """A commit to a results table, of other programs, that changed rows. `restored`: the version whose rows it has
    brought back; None: any row may be another."""

    results_version: int
    restored: int | None = None


def claim_of(note: Note, results_version: int) -> Claim | None:
    """The claim a note makes; None where it makes none."""
    if note.owned is None or note.sources is None:
        return None
    work = note.work
    versions = None if work.versions is None else frozenset(work.versions.items())
    return Claim(
        results_version,
        note.quiet,
        note.plan_hash,
        note.contract,
        note.sources,
        note.owned,
        note.withheld or (),
        note.unique,
        versions,
        work.computed,
        work.computed_in_part,
        note.grid,
        zone=note.zone,
        contracts=None if note.contracts is None else tuple(sorted(note.contracts.items())),
    )


def windows_of(plan: AnyPlan, low: int, high: int) -> tuple[int, int]:
    """First and last window whose slice a slice of the results' time column meets; those before the first that do not
    exist are of it, too: no row will ever speak of them."""
    first, last = owner(plan, low), owner(plan, high - 1)
    while not plan.windows.exists(first - 1):
        first -= 1
    return first, last


def slice_of(plan: AnyPlan, first: int, last: int) -> tuple[int, int]:
    """The slice of the windows `first` to `last` (included)."""
    _, low, high = plan.owned(range(first, last + 1))
    return low, high


def grid_of(plan: AnyPlan) -> Grid:
    column, low, _ = plan.owned(range(1))
    windows = plan.windows
    calendar = Calendar.of(windows) if isinstance(windows, CalendarWindows) else None
    return Grid(column, low, windows.step, windows.end(0) - low, plan.within, calendar)


def numbered_alike(plan: AnyPlan, note: Note) -> bool:
    """Whether the numbers of windows in a note's `stretches` mean the windows of `plan`. Where the note does not record
    its grid, the slices that it claims show it."""
    if note.grid is not None:
        return note.grid._replace(within=plan.within) == grid_of(plan)
    claimed = note.work.computed or note.work.computed_in_part if note.of_run else ()
    claimed = claimed or note.owned or ()
    if not note.stretches or not claimed:
        return True
    (first, *_), (_, last, *_) = note.stretches[0], note.stretches[-1]
    low, high = min(low for low, _ in claimed), max(high for _, high in claimed)
    return windows_of(plan, low, high) == (first, last) and slice_of(plan, first, last)[0] == low


def claimed_windows(plan: AnyPlan, claim: Claim, low: int, high: int) -> tuple[int, int]:
    """First and last window of `plan` whose rows are other ones since a claim of the slice [low, high), which may be of
    another form: those that `lost` rows to it, which a run of [start, end) has replaced, and those to which rows belong
    that `came`. See `pipelines.results.owned_rows`."""
    grid, time = claim.grid, plan.owned(range(1))[0]
    if grid is None or grid.column == time:
        return windows_of(plan, low, high)
    own, their = (next(item for item in INTERVALS if name in item[:2]) for name in (time, grid.column))
    longest = max(plan.within, grid.within or 0) - 1
    if own == their:  # rows of both begin in the slice, or end there
        return windows_of(plan, low, high + longest) if time == own.last else windows_of(plan, low - longest, high)
    if grid.calendar is None:
        start, end = low + grid.lead - grid.slide, high + grid.lead - grid.slide
    else:
        theirs = grid.calendar.windows
        start, end = theirs.since(theirs.at(low)), theirs.end(theirs.at(high - 1))
    came = (low, high) if grid.column == their.last else (start if their.of_windows else low, end)
    if own.of_windows:
        lost = _ending(plan, start, end)
    else:
        lost = windows_of(plan, start if time == own.last else start - longest, end)
    first, last = _ending(plan, *came)
    return min(first, lost[0]), max(last, lost[1])


def _ending(plan: AnyPlan, start: int, end: int) -> tuple[int, int]:
    """First and last window to which rows of another kind belong that end in [start, end)."""
    return plan.windows.after(start), plan.windows.after(end - 1)


def covered(plan: AnyPlan, claims: Iterable[Claim], alterations: Iterable[Alteration] = ()) -> tuple[Segment, ...]:
    """The claims and alterations folded, in windows of `plan`; disjoint and in order."""

    def altered(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        return tuple(
            replace(segment, sources=segment.sources and segment.sources.unidentified(), unique=False)
            for segment in segments
        )

    return joined(folded(claims, alterations, partial(_claimed, plan), altered))


def folded(
    claims: Iterable[Claim],
    alterations: Iterable[Alteration],
    claimed: Callable[[tuple[Part, ...], Claim], tuple[Part, ...]],
    altered: Callable[[tuple[Part, ...]], tuple[Part, ...]],
) -> tuple[Part, ...]:
    """The knowledge of the windows after all events, in the order of the results' versions: `claimed` adds a claim to
    it, `altered` returns the rest of it after any row may have changed. A commit comes before what was found quiet at
    its version; RESTORE brings back what was known of the version that it restores."""
    known: tuple[Part, ...] = ()
    states: dict[int, tuple[Part, ...]] = {}
    events: list[Claim | Alteration] = [*claims, *alterations]
    for event in sorted(events, key=_order):
        if isinstance(event, Claim):
            known = claimed(known, event)
        elif event.restored is None:
            known = altered(known)
        else:
            then = [version for version in states if version <= event.restored]
            known = states[max(then)] if then else ()
        states[event.results_version] = known
    return known


def _order(event: Claim | Alteration) -> tuple[int, bool]:
    return event.results_version, isinstance(event, Claim) and event.quiet


def _claimed(plan: AnyPlan, segments: tuple[Segment, ...], claim: Claim) -> tuple[Segment, ...]:
    for low, high in claim.owned:
        first, last = _known_of(plan, segments, claim, low, high)
        given = Segment(first, last, claim.plan_hash, claim.contract, claim.sources, claim.unique, claim.contracts)
        segments = overlaid(segments, given, newest=claim.quiet)
    for low, high in claim.withheld:
        asked = Segment(*_known_of(plan, segments, claim, low, high), claim.plan_hash, claim.contract, None)
        segments = overlaid(segments, asked, newest=True)
    return segments


def _known_of(plan: AnyPlan, segments: tuple[Segment, ...], claim: Claim, low: int, high: int) -> tuple[int, int]:
    """The `claimed_windows`; where rows may last for all time, not those beyond the slice that are before the first
    or after the last which is known (`segments`)."""
    first, last = claimed_windows(plan, claim, low, high)
    if plan.windows.start(last) - plan.windows.start(first) < AGES:
        return first, last
    ends = [windows_of(plan, low, high), *((segments[0].first, segments[-1].last) for _ in segments[:1])]
    return max(first, min(low for low, _ in ends)), min(last, max(high for _, high in ends))


def overlaid(segments: tuple[Segment, ...], given: Segment, *, newest: bool) -> tuple[Segment, ...]:
    """`given` laid over the others. With `newest`, what `stays_under` it stays."""
    remaining: list[Segment] = []
    parts = [given]
    for old in segments:
        if newest and old.stays_under(given):
            remaining.append(old)
            parts = [piece for part in parts for piece in without(part, old)]
        else:
            remaining.extend(without(old, given))
    return tuple(sorted([*remaining, *parts], key=lambda segment: segment.first))


def without(segment: Segment, other: Segment) -> list[Segment]:
    """The parts of `segment` outside `other`: itself, up to two pieces, or nothing."""
    if other.last < segment.first or segment.last < other.first:
        return [segment]
    pieces = []
    if segment.first < other.first:
        pieces.append(replace(segment, last=other.first - 1))
    if other.last < segment.last:
        pieces.append(replace(segment, first=other.last + 1))
    return pieces


def joined(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """Neighbours that say the same made one."""
    result: list[Segment] = []
    for segment in segments:
        before = result[-1] if result else None
        if (
            before
            and before.last + 1 == segment.first
            and before == replace(segment, first=before.first, last=before.last)
        ):
            result[-1] = replace(before, last=segment.last)
        else:
            result.append(segment)
    return tuple(result)


def spans(segments: Iterable[Segment]) -> list[tuple[int, int]]:
    """First and last window of each unbroken stretch, whatever the segments say otherwise."""
    intervals: list[tuple[int, int]] = []
    for segment in sorted(segments, key=lambda segment: segment.first):
        if intervals and segment.first <= intervals[-1][1] + 1:
            intervals[-1] = (intervals[-1][0], max(intervals[-1][1], segment.last))
        else:
            intervals.append((segment.first, segment.last))
    return intervals
