"""Windows that an edit left alone are recognised by intervals, whatever their number."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Mapping
from itertools import pairwise, takewhile
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from tests.reference import windows_left_alone as slow
from trendlake.pipelines.results.ledger import Ledger
from trendlake.pipelines.results.notes import Note
from trendlake.pipelines.results.reuse import changed
from trendlake.pipelines.results.row_versions import RowVersions
from trendlake.pipelines.results.windows import Pieces
from trendlake.pipelines.runs.code_versions import UNKNOWN
from trendlake.pipelines.runs.source_versions import Versions

pytestmark = pytest.mark.random

PLACES = st.integers(-6, 12)
STRETCH = st.tuples(PLACES, st.integers(0, 8)).map(lambda pair: (pair[0], sum(pair)))


class Plan:
    """A plan whose hash is another from each of `borders` on."""

    kind, hash = "trends", "mine"

    def __init__(self, borders: list[int]) -> None:
        self.borders = sorted(borders)

    def known(self, window: int) -> str:
        return "ab"[bisect_right(self.borders, window) % 2]

    def stretches(self, windows: range) -> tuple[tuple[range, str], ...]:
        inner = {border for border in self.borders if windows[0] < border <= windows[-1]}
        return tuple((range(a, b), self.known(a)) for a, b in pairwise([windows[0], *sorted(inner), windows[-1] + 1]))


@st.composite
def notes_of(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Notes of commits, of revisions that found nothing, of other programs and of old versions, the newest first."""
    notes: list[dict[str, Any]] = []
    for sort in draw(
        st.lists(st.sampled_from(["stage", "stage", "quiet", "quiet", "mute", "other", "altered"]), max_size=6)
    ):
        if sort == "altered":
            notes.append({"altered": True})
            continue
        note = {
            "source_version": draw(st.sampled_from([1, 1, 2])),
            "contract": "c",
            "lateness": 0,
            "source_table": "t",
            "plan_hash": draw(st.sampled_from(["old", "old", "mine"])),
        }
        if sort != "other":
            note["quiet" if sort == "quiet" else "stage"] = True
        if sort != "mute":
            stretches = disjoint(sorted(draw(st.lists(STRETCH, max_size=3))))
            note["stretches"] = [[first, last, draw(st.sampled_from("ab"))] for first, last in stretches]
        notes.append(note)
    return notes


def read(notes: list[dict[str, Any]]) -> list[Note]:
    """As `ledger.notes` gives them: of our own programs, after the last change by others."""
    own = takewhile(lambda note: "altered" not in note, notes)
    return [Note.from_json(note) for note in own if "stage" in note or "quiet" in note]


def disjoint(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those of the ordered stretches that begin behind the last one that stays, as in a note."""
    stays: list[tuple[int, int]] = []
    for first, last in stretches:
        if not stays or stays[-1][1] < first:
            stays.append((first, last))
    return stays


def same(note: Mapping[str, Any]) -> bool:
    return note["source_version"] == 1 and note["plan_hash"] != "mine"


def ledger(stale: list[tuple[int, int]]) -> Ledger:
    return Ledger(1, 1, (), tuple(RowVersions(first, last, frozenset([UNKNOWN])) for first, last in stale))


def asked(plan: Plan, windows: range) -> Any:
    return SimpleNamespace(windows=windows, plan=plan, sources=SimpleNamespace(fingerprint="c"), lateness=0)


@given(STRETCH, st.lists(PLACES, max_size=3), notes_of(), st.lists(STRETCH, max_size=1))
@examples(1500)
def test_as_window_by_window(
    run: tuple[int, int], borders: list[int], notes: list[dict[str, Any]], stale: list[tuple[int, int]]
) -> None:
    """The same windows are left as when each is looked at by itself."""
    plan, windows = Plan(borders), range(run[0], run[1] + 1)
    expected = slow.changed(windows, notes, plan.known, same, lambda j: any(a <= j <= b for a, b in stale))
    assert changed(asked(plan, windows), ledger(stale), read(notes), Versions.one(1, "t")) == expected


@given(STRETCH, st.lists(STRETCH, max_size=4))
@examples(500)
def test_pieces_are_the_windows_of_a_stretch(run: tuple[int, int], stretches: list[tuple[int, int]]) -> None:
    """Of each stretch, in the run, before, after or over it, exactly the windows that both have."""
    windows = range(run[0], run[1] + 1)
    pieces = Pieces.of(windows, stretches)
    assert [j for i in range(len(pieces)) for j in pieces.windows(i, i)] == list(windows)
    for first, last in stretches:
        inside = range(len(pieces))[pieces.inside(first, last)]
        assert [j for i in inside for j in pieces.windows(i, i)] == [j for j in windows if first <= j <= last]


def test_more_windows_than_memory_holds() -> None:
    """Windows of a microsecond in all of time, edited in the middle: no object for each of them."""
    windows = range(-(10**17), 10**17)
    note = Note(
        "old",
        Versions.one(1, "t"),
        None,
        contract="c",
        lateness=0,
        stretches=((windows[0], 5, "a"), (6, windows[-1], "b")),
    )
    began = time.monotonic()
    assert changed(asked(Plan([6]), windows), ledger([]), [note], Versions.one(1, "t")) == windows[:0]
    assert changed(asked(Plan([10**9]), windows), ledger([(-5, 10)]), [note], Versions.one(1, "t")) == range(-5, 10**9)
    assert time.monotonic() - began < 1
