"""Which window shows which version: claims folded in order, against a slow twin that keeps a word for each window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import CI
from trendlake.cep_core import AnyPlan, EventSchema, compile_query
from trendlake.pipelines.results.coverage import Alteration, Claim, covered, slice_of, spans, windows_of
from trendlake.pipelines.results.windows import fewer, united
from trendlake.pipelines.runs.source_versions import TableAt, Versions

SCHEMA = EventSchema(
    columns={"event_id": "string", "event_time": "timestamp", "event_type": "string", "place": "string"},
    event_id="event_id",
    event_time="event_time",
    event_type="event_type",
)
ARC = {"from": "p", "to": "q", "when": "e.place = 'n'"}
QUERIES = {
    "sliding": {
        "kind": "trends",
        "pattern": "A a+",
        "return": {"n": "COUNT(*)"},
        "within": "9 hours",
        "slide": "2 hours",
        "origin": "2026-01-01T01:00:00Z",
    },
    "matches": {"kind": "matches", "pattern": "SEQ(A a, B b)", "within": "3 hours"},
    "trailing": {"kind": "matches", "pattern": "SEQ(A a, NOT B b)", "within": "3 hours"},
    "automaton": {"kind": "automaton", "start": "p", "final": ["q"], "arcs": [ARC], "within": "5 hours"},
    "algebra": {"kind": "algebra", "pattern": "FROM A NEXT B", "within": "5 hours"},
}


def plan(name: str) -> AnyPlan:
    return compiled(QUERIES[name])


def compiled(query: Mapping[str, object], schema: EventSchema = SCHEMA) -> AnyPlan:
    return compile_query({"name": "watched", **query}, schema)


def windows() -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(-20, 20), st.integers(0, 12)).map(lambda pair: (pair[0], pair[0] + pair[1]))


IDS = st.sampled_from(["t", "t", "u", None])


def vectors() -> st.SearchStrategy[Versions]:
    """Of two tables."""
    pairs = st.tuples(st.integers(0, 5), IDS, st.integers(0, 5), IDS)
    return pairs.map(lambda four: Versions.of([TableAt("o", *four[:2]), TableAt("p", *four[2:])]))


@st.composite
def claims(draw: st.DrawFn) -> Claim:
    """Any claim, of two forms of the pattern: one reads one table, the other two."""
    one = plan("sliding")
    owned = tuple(slice_of(one, *pair) for pair in draw(st.lists(windows(), min_size=1, max_size=2)))
    withheld = tuple(slice_of(one, *pair) for pair in draw(st.lists(windows(), max_size=1)))
    version, quiet, form = draw(st.integers(0, 8)), draw(st.booleans()), draw(st.sampled_from("pq"))
    one_table = st.builds(Versions.one, st.integers(0, 5), IDS)
    return Claim(version, quiet, form, "c", draw(one_table if form == "p" else vectors()), owned, withheld)


def alterations() -> st.SearchStrategy[Alteration]:
    """Versions of their own: a commit is one of ours or of others."""
    return st.builds(Alteration, st.integers(9, 12), st.none() | st.integers(0, 8))


Word = tuple[str, dict[str, tuple[int, str | None]] | None]
"""The form, and the version and id of each table; None where the window was held back."""


def said(one: AnyPlan, slices: Iterable[tuple[int, int]]) -> list[int]:
    return [j for pair in slices for j in range(windows_of(one, *pair)[0], windows_of(one, *pair)[1] + 1)]


def shown_by(sources: Versions | None) -> dict[str, tuple[int, str | None]] | None:
    return None if sources is None else {table.name: table[1:] for table in sources.tables}


def forgotten(tables: dict[str, tuple[int, str | None]] | None) -> dict[str, tuple[int, str | None]] | None:
    return None if tables is None else {name: (version, None) for name, (version, _) in tables.items()}


def outlives(shown: dict[str, tuple[int, str | None]], quiet: dict[str, tuple[int, str | None]]) -> bool:
    """Whether a window that shows some versions keeps them where others were found quiet."""
    newer, no_older = False, True
    for name, (version, table) in shown.items():
        known = table is not None and table == quiet[name][1]
        newer = newer or (known and version > quiet[name][0])
        no_older = no_older and known and version >= quiet[name][0]
    return newer or no_older


def word_by_word(one: AnyPlan, events: Sequence[Claim | Alteration]) -> dict[int, Word]:
    """For each window the last word on it."""
    words: dict[int, Word] = {}
    states: dict[int, dict[int, Word]] = {}
    for event in sorted(events, key=lambda event: (event.results_version, isinstance(event, Claim) and event.quiet)):
        if isinstance(event, Alteration):
            if event.restored is None:
                words = {window: (form, forgotten(tables)) for window, (form, tables) in words.items()}
            else:
                then = [version for version in states if version <= event.restored]
                words = dict(states[max(then)]) if then else {}
        else:
            for window in said(one, event.owned):
                form, tables = words.get(window, ("", None))
                stays = (
                    form == event.plan_hash and tables is not None and outlives(tables, shown_by(event.sources) or {})
                )
                if not (event.quiet and stays):
                    words[window] = (event.plan_hash, shown_by(event.sources))
            for window in said(one, event.withheld):
                form, tables = words.get(window, ("", None))
                if form != event.plan_hash or tables is None:
                    words[window] = (event.plan_hash, None)
        states[event.results_version] = dict(words)
    return words


@CI
@given(
    st.lists(claims(), max_size=6),
    st.lists(alterations(), max_size=2, unique_by=lambda item: item.results_version),
    st.lists(claims().map(lambda claim: replace(claim, results_version=claim.results_version + 5)), max_size=2),
)
def test_the_last_word_on_a_window_holds(earlier: list[Claim], altered: list[Alteration], later: list[Claim]) -> None:
    """A commit's word replaces any other; that nothing had to change replaces what is newer in no table; what is held
    back only what is not published in that form. After a change by others no version is known, after a RESTORE
    that of then."""
    one, events = plan("sliding"), [*earlier, *later]
    segments = covered(one, events, altered)
    by_window = {j: (s.plan_hash, shown_by(s.sources)) for s in segments for j in range(s.first, s.last + 1)}
    assert by_window == word_by_word(one, [*events, *altered])
    assert all(a.last < b.first for a, b in pairwise(segments))
    assert {j for first, last in spans(segments) for j in range(first, last + 1)} == set(by_window)


@CI
@given(st.sampled_from(sorted(QUERIES)), windows())
def test_slices_name_their_windows(name: str, pair: tuple[int, int]) -> None:
    """Of every kind the slices of neighbours lie side by side, one slide apart."""
    one = plan(name)
    assert windows_of(one, *slice_of(one, *pair)) == pair
    low, high = slice_of(one, pair[0], pair[0])
    assert windows_of(one, low, low + 1) == windows_of(one, high - 1, high) == (pair[0], pair[0])


@CI
@given(st.lists(windows(), min_size=1, max_size=9), st.integers(1, 5))
def test_fewer_stretches_hold_all(pairs: list[tuple[int, int]], most: int) -> None:
    """At most so many, in order, and nothing is lost."""
    ranges = united([(first, last + 1) for first, last in pairs])
    held = fewer(ranges, most)
    assert len(held) <= most
    assert all(any(a <= start and end <= b for a, b in held) for start, end in ranges)
    assert all(a[1] < b[0] for a, b in pairwise(held))
    assert held == ranges or len(ranges) > most
