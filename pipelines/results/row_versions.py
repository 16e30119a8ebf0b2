"""Which versions of the engine, the contract evaluator and the revision made the rows of each published window.

Folded from the claims of a results table, as `pipelines.results.coverage` folds what they answer for. A claim answers
for more windows than it computed: a revision leaves most of them as they are, so it adds its own version to them and
replaces nothing. A window that was computed for some groups only holds rows of several versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.zones import Clock
from trendlake.pipelines.results.coverage import Alteration, Claim, claimed_windows, folded, slice_of
from trendlake.pipelines.results.notes import Work
from trendlake.pipelines.results.windows import Stretch, united
from trendlake.pipelines.runs.code_versions import (
    PUBLICATION,
    PUBLICATION_VERSION,
    REVISION,
    UNKNOWN,
    Version,
    corrections_of,
    versions_of,
)

Versions = frozenset[Version]
FAULTY: Versions = frozenset([(PUBLICATION, 1)])
"""Of windows in which a publication may have left rows of an earlier form, or have published some twice."""


@dataclass(frozen=True)
class RowVersions:
    """Consecutive windows, `first` to `last` (included), and all versions that made rows of theirs."""

    first: int
    last: int
    versions: Versions


def work_of_run(plan: AnyPlan, windows: range, *, partly: bool = False) -> Work:
    """The note of a run that computed `windows` whole; `partly`: some of their rows."""
    slices = (slice_of(plan, windows[0], windows[-1]),) if windows else ()
    versions = {**versions_of(plan), PUBLICATION: PUBLICATION_VERSION}
    return Work(versions, (), slices) if partly else Work(versions, slices)


def row_versions(
    plan: AnyPlan, claims: Iterable[Claim], alterations: Iterable[Alteration] = ()
) -> tuple[RowVersions, ...]:
    """The claims and alterations folded, in windows of `plan`; disjoint and in order. Rows that other programs have
    changed cannot be identified: all published windows are then computed again."""

    def claimed(pieces: tuple[RowVersions, ...], claim: Claim) -> tuple[RowVersions, ...]:
        for stretch, paint in _steps(plan, claim):
            pieces = painted(pieces, *stretch, paint)
        for low, high in () if claim.quiet else (*claim.computed, *claim.computed_in_part):
            for stretch in misread(plan, claim, *claimed_windows(plan, claim, low, high)):
                pieces = painted(pieces, *stretch, lambda before: (before or frozenset()) | {CLOCK})
        return pieces

    return folded(claims, alterations, claimed, lambda pieces: pieces)


CLOCK: Version = ("zone", 0)
"""Of windows that a clock was read for whose offsets are others in the zone database of today."""


def misread(plan: AnyPlan, claim: Claim, first: int, last: int) -> list[Stretch]:
    """The windows among `first` to `last` that touch a moment at which the offsets of the claim's zone are others
    today, and one more at each side: its boundary may have moved."""
    if claim.zone is None:
        return []
    windows, noted = plan.windows, claim.zone.offsets
    start, end = noted[0][0], windows.end(last)
    if end <= start:
        return []
    touched = [
        (max(first, windows.after(low) - 1), min(last, windows.at(high - 1) + 1) + 1)
        for low, high in differing(noted, Clock.of(claim.zone.name).within(start, end), end)
    ]
    return united([(a, b) for a, b in touched if a < b], last=True)


def differing(noted: Sequence[Stretch], now: Sequence[Stretch], end: int) -> Iterator[Stretch]:
    """The half-open stretches of time before `end` in which two lists of offsets, (from, seconds) from one moment on,
    differ."""
    edges = sorted({at for at, _ in (*noted, *now) if at < end} | {end})
    for low, high in pairwise(edges):
        one, other = (max((at, offset) for at, offset in offsets if at <= low)[1] for offsets in (noted, now))
        if one != other:
            yield low, high


Paint = Callable[[Versions | None], Versions]
"""The versions of a window after a claim, by those before; None where nothing was known."""


def _steps(plan: AnyPlan, claim: Claim) -> Iterable[tuple[Stretch, Paint]]:
    unknown: Versions = frozenset([UNKNOWN])
    mine = claim.versions or frozenset()
    others = frozenset(item for item in mine if item[0] == REVISION)
    if claim.versions is None and not claim.quiet:
        others = unknown  # by Trendlake 0.1: it may have made any of their rows
    if claim.faulty:
        others |= FAULTY
    # Rows of an earlier form go only where a publication looks for them: to compute windows does not remove them.
    stays: Versions = frozenset() if any(name == PUBLICATION for name, _ in mine) else FAULTY
    for low, high in claim.owned:
        yield claimed_windows(plan, claim, low, high), lambda before: (before or unknown) | others
    for low, high in claim.computed:
        yield claimed_windows(plan, claim, low, high), lambda before: mine | ((before or mine) & stays)
    for low, high in () if claim.quiet else claim.computed_in_part:
        yield claimed_windows(plan, claim, low, high), lambda before: (before or unknown) | mine


def painted(pieces: tuple[RowVersions, ...], first: int, last: int, paint: Paint) -> tuple[RowVersions, ...]:
    """`pieces` with the windows `first` to `last` changed by `paint`; neighbours that say the same made one."""
    result: list[RowVersions] = []
    at = first
    for piece in pieces:
        if piece.last < first or piece.first > last:
            result.append(piece)
            continue
        start, end = max(first, piece.first), min(last, piece.last)
        if piece.first < start:
            result.append(replace(piece, last=start - 1))
        if at < start:
            result.append(RowVersions(at, start - 1, paint(None)))
        result.append(RowVersions(start, end, paint(piece.versions)))
        if end < piece.last:
            result.append(replace(piece, first=end + 1))
        at = end + 1
    if at <= last:
        result.append(RowVersions(at, last, paint(None)))
    joined: list[RowVersions] = []
    for piece in sorted(result, key=lambda piece: piece.first):
        if joined and joined[-1].last + 1 == piece.first and joined[-1].versions == piece.versions:
            joined[-1] = replace(joined[-1], last=piece.last)
        else:
            joined.append(piece)
    return tuple(joined)


@dataclass(frozen=True)
class StaleRows:
    """Published windows in the pattern's present form that versions known to be wrong made, or versions that no note
    records; or that were made by other offsets of the pattern's time zone than the zone database has today (`clocks`).
    `windows`: of all, in stretches; `reason`: what is wrong with them."""

    windows: tuple[Stretch, ...]
    reason: str
    clocks: tuple[Stretch, ...] = ()

    @property
    def count(self) -> int:
        return sum(last - first + 1 for first, last in self.windows)

    def sentence(self, pattern: str) -> str:
        """One line for people: how many windows, why, and what recomputes them."""
        number = f"{self.count:,} window{'' if self.count == 1 else 's'}"
        return f"{number} {self.reason}; recomputed by `trendlake backfill {pattern} --stale`"


def stale_rows(plan: AnyPlan, published: Sequence[Stretch], pieces: Iterable[RowVersions]) -> StaleRows | None:
    """The windows among `published` whose rows are known to be wrong, or may be; None where there are none."""
    windows: list[Stretch] = []
    clocks: list[Stretch] = []
    wrong: dict[str, None] = {}
    unknown = False
    for piece in pieces:
        corrections = corrections_of(plan.kind, piece.versions)
        misread = CLOCK in piece.versions
        if not corrections and UNKNOWN not in piece.versions and not misread:
            continue
        mine = [(max(a, piece.first), min(b, piece.last) + 1) for a, b in published if a <= piece.last]
        mine = [(a, b) for a, b in mine if a < b]
        if mine:
            windows += mine
            clocks += mine if misread else []
            unknown = unknown or UNKNOWN in piece.versions
            wrong |= dict.fromkeys(f"before {item.component} {item.version}: {item.wrong}" for item in corrections)
    if not windows:
        return None
    reasons = [f"computed by versions known to be wrong ({'; '.join(wrong)})"] if wrong else []
    reasons += ["computed by versions that were not recorded (Trendlake 0.1)"] if unknown else []
    reasons += ["computed by other clocks than the zone database has today"] if clocks else []
    return StaleRows(tuple(united(windows, last=True)), " or ".join(reasons), tuple(united(clocks, last=True)))
