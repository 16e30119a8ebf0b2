"""Which windows of a form a publication of another form has changed: against the rows that it removes and brings."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pyarrow as pa
import pytest

from tests.pipelines.results.test_coverage import QUERIES, compiled
from trendlake.cep_core import AnyPlan, EventSchema
from trendlake.cep_core.events.windows import Windows
from trendlake.pipelines.results.coverage import Claim, claim_of, claimed_windows, covered, grid_of, spans, windows_of
from trendlake.pipelines.results.notes import Note
from trendlake.pipelines.results.owned_rows import INTERVALS, OwnedRows
from trendlake.pipelines.runs.source_versions import Versions

HOUR = 3_600_000_000
DAY = 24 * HOUR
NO_OVERLAP = {"output": "non_overlap"}
FORMS: dict[str, AnyPlan] = {
    **{name: compiled(query) for name, query in QUERIES.items()},
    "long": compiled(QUERIES["matches"] | {"within": "30 hours"}),
    "long and trailing": compiled(QUERIES["trailing"] | {"within": "30 hours"}),
    "graphs": compiled(QUERIES["trailing"] | {"within": "30 hours", "output": "compressed"}),
    "without overlap": compiled(QUERIES["matches"] | NO_OVERLAP),
    "trailing without overlap": compiled(QUERIES["trailing"] | NO_OVERLAP),
}
TIMES = tuple(name for item in INTERVALS for name in item[:2])
"""The columns of a table that rows of all kinds have been published to."""


def length_of(plan: AnyPlan) -> tuple[int, int]:
    """The shortest and the longest that a row lasts, microseconds."""
    return (plan.within, plan.within) if plan.kind in ("trends", "automaton") else (0, plan.within - 1)


def row_of(plan: AnyPlan, first: int, length: int) -> dict[str, int]:
    """A row that begins at `first`; of kind `trends` at a window's start."""
    interval = next(item for item in INTERVALS if plan.owned(range(1))[0] in item[:2])
    if plan.result_shape.of_windows:
        first = plan.windows.start(first // plan.windows.slide)
    shortest, longest = length_of(plan)
    return {interval.first: first, interval.last: first + min(max(length, shortest), longest)}


def table_of(rows: list[dict[str, int]]) -> pa.Table:
    schema = pa.schema([(name, pa.timestamp("us", "UTC")) for name in TIMES])
    return pa.Table.from_pylist([dict.fromkeys(TIMES) | row for row in rows], schema=schema)


def published(plan: AnyPlan, start: int, end: int) -> tuple[Claim, range]:
    """What a run of the windows that end in (start, end] claims, and those windows."""
    windows = plan.windows.ending_in(start, end)
    _, low, high = plan.owned(windows)
    claim = claim_of(Note(plan.hash, Versions.one(1), ((low, high),), grid=grid_of(plan)), 2)
    assert claim is not None
    return claim, windows


@pytest.mark.parametrize(("mine", "other"), list(product(FORMS, FORMS)))
def test_no_changed_window_is_missed(mine: str, other: str) -> None:
    """Where it has removed rows of a form, and where a run of that form would find rows of the other one."""
    own, plan, rng = FORMS[mine], FORMS[other], random.Random(f"{mine}, {other}")
    claim, windows = published(plan, 0, rng.randint(1, 2) * DAY)
    ((low, high),) = claim.owned
    edges = [0, 1, 3 * HOUR - 1, 30 * HOUR - 1]
    places = [(rng.randrange(-3 * DAY, 4 * DAY), rng.choice([*edges, rng.randrange(30 * HOUR)])) for _ in range(500)]
    first, last = claimed_windows(own, claim, low, high)
    ours = [row_of(own, *place) for place in places]
    removed = OwnedRows.of(plan, windows, TIMES).arrow(table_of(ours)).to_pylist()
    time, theirs = own.owned(range(1))[0], [row_of(plan, *place) for place in places]
    for row, gone in zip(ours, removed, strict=True):
        assert not gone or first <= windows_of(own, row[time], row[time] + 1)[0] <= last
    column = plan.owned(range(1))[0]
    come = table_of([row for row in theirs if low <= row[column] < high])
    far = 100 * DAY // own.windows.slide
    for beside in (range(first - far, first), range(last + 1, last + far)):
        assert not any(OwnedRows.of(own, beside, TIMES).arrow(come).to_pylist())


@pytest.mark.parametrize(("mine", "other"), list(product(FORMS, FORMS)))
def test_no_far_window_is_named(mine: str, other: str) -> None:
    """A claim of a day reaches some days, and not thousands of years, also where windows hold everything before."""
    own, plan = FORMS[mine], FORMS[other]
    claim, _ = published(plan, 0, DAY)
    ((low, high),) = claim.owned
    windows: Windows = own.windows
    first, last = claimed_windows(own, claim, low, high)
    assert -4 * DAY <= windows.end(first) <= windows.end(last) <= 5 * DAY


def test_pairs_of_any_time() -> None:
    """Rows of unbounded length: of the windows that are known all that may have lost a row, and no others."""
    own = compiled(
        {
            "kind": "xml_join",
            "left": {"a": "/item", "k": "$a/key"},
            "right": {"b": "/item", "l": "$b/key"},
            "operator": "join",
            "where": ["$k = $l"],
            "within": "unbounded",
        },
        EventSchema({"event_id": "string", "event_time": "timestamp", "document": "string"}),
    )
    before, _ = published(own, -3 * DAY, 9 * DAY)
    claim, _ = published(FORMS["trailing"], 0, DAY)
    windows = own.windows
    stretches = spans([item for item in covered(own, [before, claim]) if item.plan_hash != own.hash])
    assert [(windows.end(first), windows.end(last)) for first, last in stretches] == [(0, 9 * DAY)]
    for alone in (claim, replace(claim, owned=(), withheld=claim.owned)):
        stretches = spans(covered(own, [alone]))
        assert [(windows.end(first), windows.end(last)) for first, last in stretches] == [(0, DAY)]
