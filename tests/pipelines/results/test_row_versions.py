"""Which versions made a window's rows: the fold of notes, beside a table that remembers it of each group."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pipelines.results.test_coverage import plan, windows
from tests.random.profile import CI
from trendlake.pipelines.results.coverage import claim_of, slice_of
from trendlake.pipelines.results.notes import Note
from trendlake.pipelines.results.row_versions import RowVersions, painted, row_versions, stale_rows, work_of_run
from trendlake.pipelines.results.windows import Stretch
from trendlake.pipelines.revision.affected import Affected, work_of_revision
from trendlake.pipelines.runs import code_versions as v
from trendlake.pipelines.runs.code_versions import UNKNOWN, Correction, corrections_of
from trendlake.pipelines.runs.source_versions import Versions

GROUPS = ("n", "s")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["run", "revision by Spark", "revision here", "quiet", "quiet here", "old run", "old revision"]
        ),
        windows(),
        st.lists(windows(), min_size=1, max_size=2),
        st.integers(1, 3),
    ),
    max_size=8,
)
ONE = plan("sliding")


def note(what: str, owned: list[Stretch], computed: list[Stretch], number: int) -> Note:
    """As a commit of that sort notes it, by engine version `number`."""
    about = Note(
        ONE.hash, Versions.one(1), tuple(slice_of(ONE, *stretch) for stretch in owned), quiet=what.startswith("quiet")
    )
    if what.startswith("old"):
        return about
    if what == "run":
        work = work_of_run(ONE, range(computed[0][0], computed[0][1] + 1))
    else:
        # `place` is no part of ONE's groups: as if it were, where Spark computes some groups only
        work = work_of_revision(ONE, Affected(ONE, tuple(computed)), local="here" in what)
        if "here" not in what:
            work = replace(work, computed=(), computed_in_part=work.computed)
    return replace(about, work=replace(work, versions={**(work.versions or {}), "engine": number}))


@CI
@given(STEPS)
def test_no_row_is_of_a_version_that_is_not_told(steps: list[tuple[str, Stretch, list[Stretch], int]]) -> None:
    """Each row's version is among its window's; and where all was computed anew, no other is."""
    table: dict[tuple[int, str], tuple[str, int]] = {}
    claims = []
    for at, (what, owned, parts, number) in enumerate(steps):
        computed = [owned] if what == "run" else parts
        every = [owned] if what in ("run", "old run") else [*parts, owned]
        claim = claim_of(note(what, every, computed, number), at)
        assert claim is not None
        claims.append(claim)
        mine = UNKNOWN if what.startswith("old") else ("engine", number)
        for first, last in [owned] if what == "old run" else computed:
            for window in range(first, last + 1):
                for group in ("n",) if what == "revision by Spark" else GROUPS:
                    if what != "quiet":  # "quiet here" has computed all rows, and found them as they were
                        table[window, group] = mine
        versions_of_window = {
            j: piece.versions for piece in row_versions(ONE, claims) for j in range(piece.first, piece.last + 1)
        }
        for (window, group), version in table.items():
            assert version in versions_of_window[window], (window, group)
        if what == "run" or what.endswith("here"):
            for first, last in computed:
                for window in range(first, last + 1):
                    assert {x for x in versions_of_window[window] if x[0] == "engine"} == {("engine", number)}
                    assert UNKNOWN not in versions_of_window[window]


@CI
@given(st.lists(st.tuples(windows(), st.integers(0, 2)), max_size=8))
def test_painting(strokes: list[tuple[Stretch, int]]) -> None:
    """In order, disjoint, neighbours joined; the last stroke on a window holds."""
    pieces: tuple[RowVersions, ...] = ()
    expected: dict[int, int] = {}
    for (first, last), number in strokes:
        pieces = painted(pieces, first, last, lambda _, number=number: frozenset([("engine", number)]))
        expected |= dict.fromkeys(range(first, last + 1), number)
    versions_of_window = {j: number for p in pieces for j in range(p.first, p.last + 1) for _, number in p.versions}
    assert versions_of_window == expected
    assert all(a.last < b.first for a, b in pairwise(pieces))
    assert all(a.last + 1 < b.first or a.versions != b.versions for a, b in pairwise(pieces))


def test_windows_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a version before a correction, those of no recorded version, and only where something is published."""
    monkeypatch.setattr(v, "CORRECTIONS", (Correction("trends", 2, "sums"), Correction("local", 2, "decimals")))
    pieces = [
        RowVersions(0, 4, frozenset([("engine", 1), ("contract", 1)])),
        RowVersions(5, 9, frozenset([("engine", 2), ("contract", 1)])),
        RowVersions(10, 12, frozenset([("engine", 2), ("contract", 1), ("local", 1)])),
        RowVersions(13, 20, frozenset([UNKNOWN])),
    ]
    stale = stale_rows(ONE, [(2, 11), (14, 14)], pieces)
    assert stale is not None
    assert stale.windows == ((2, 4), (10, 11), (14, 14))
    assert stale.count == 6
    assert stale.sentence("watched") == (
        "6 windows computed by versions known to be wrong (before trends 2: sums; before local 2: decimals) or "
        "computed by versions that were not recorded (Trendlake 0.1); "
        "recomputed by `trendlake backfill watched --stale`"
    )
    assert stale_rows(ONE, [(5, 9)], pieces) is None
    assert corrections_of("matches", pieces[0].versions) == ()
    assert stale_rows(ONE, [(14, 14)], pieces) == replace(
        stale, windows=((14, 14),), reason="computed by versions that were not recorded (Trendlake 0.1)"
    )


def test_each_version_has_its_corrections() -> None:
    """A version is raised because the one before was wrong: the table says what was."""
    for component, version in v.current_versions().items():
        assert {item.version for item in v.CORRECTIONS if item.component == component} == set(range(2, version + 1))
    assert {item.component for item in v.CORRECTIONS} <= set(v.current_versions())
