"""Random changes of the rows of random row patterns: what they make anew, computed from the rows around them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from tests.random.row_patterns import CELLS, TYPES, Case, RowPatternTally, pick, questions
from tests.reference.match_recognize import Question
from tests.support.row_patterns import table_of
from trendlake.cep_core import compile_query, run_plan
from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.sharing.changes import renewal_of, renewed

SECOND = 1_000_000
Event = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """`before` and `after`: the rows of two versions; `span`: seconds between which rows are read, None for no end.
    `hidden`: results of matches from ids that end with it are not shown, as WHERE would."""

    question: Question
    before: tuple[Event, ...]
    after: tuple[Event, ...]
    span: tuple[int | None, int | None]
    hidden: str


def _event(draw: st.DrawFn, at: int, time: int) -> Event:
    cells = {name: pick(draw, cells) for name, cells in CELLS.items()}
    return {"id": f"e{at}", "event_id": f"e{at}", "type": "T", **cells, "time": time}


@st.composite
def changes(draw: st.DrawFn, most: int = 16) -> Change:
    question = draw(questions())
    assume(question.order == "event_time")
    count = pick(draw, (4, 8, most, most))
    before = [_event(draw, at, at * 2 // 3) for at in range(count)]
    after, touched = list(before), list[int]()
    for number in range(pick(draw, (1, 1, 2))):
        time = before[pick(draw, range(count))]["time"]
        match pick(draw, range(3)):
            case 0:
                gone = pick(draw, after)
                after.remove(gone)
                touched.append(gone["time"])
            case 1:
                after.append(_event(draw, count + number, time))
                touched.append(time)
            case _:
                at = pick(draw, range(len(after)))
                fresh = _event(draw, at, pick(draw, (after[at]["time"], time)))
                touched += [after[at]["time"], fresh["time"]]
                after[at] = fresh | {"id": after[at]["id"], "event_id": after[at]["event_id"]}
    low, high = (pick(draw, (None, 1, 2, 4, 6)) for _ in range(2))
    span = (None if low is None else min(touched) - low, None if high is None else max(touched) + high)
    return Change(question, tuple(before), tuple(after), span, pick(draw, ("", "3", "5")))


def revised(change: Change, tally: RowPatternTally) -> tuple[list[Any], list[Any]]:
    """The rows that a revision leaves, and those there should be: of the new version, and of the older one in
    partitions for which more is to be read."""
    tables = [table_of(rows, TYPES) if rows else None for rows in (change.before, change.after)]
    before, after = tables
    assume(before is not None and after is not None)
    assert before is not None
    assert after is not None
    after = after.select(before.column_names).cast(before.schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = compile_query(Case(change.question, change.before).query, schema_of(before))
    if not plan.windows.endless or renewal_of(plan) is None:
        tally.counts["from the begin"] += 1
        return [], []
    try:
        old, new = (_shown(run_plan(plan, one), change) for one in (before, after))
    except TrendlakeError:
        return [], []
    came = [row for row in _events(after) if row not in _events(before)]
    went = [row for row in _events(before) if row not in _events(after)]
    parts = list(plan.key)[: list(plan.key).index("match_id")]
    units = {_unit(row, parts) for row in [*came, *went]}
    low, high = (None if one is None else one * SECOND for one in change.span)
    events = pa.Table.from_pylist(
        [row for row in _events(after) if _unit(row, parts) in units and _inside(row, low, high)], before.schema
    )
    published = [row for row in old if _unit(row, parts) in units]
    changed = pa.Table.from_pylist([*came, *went], before.schema)
    if not changed.num_rows:
        return [], []
    shown = pa.Table.from_pylist(published, plan.result_schema)
    answer = renewed(plan, events, changed, shown, (low, high))
    left = {_unit(row, parts) for row, more in zip(changed.to_pylist(), answer.left, strict=True) if more}
    done = "from some rows" if (low, high) != (None, None) and len(left) < len(units) else "left"
    tally.counts[done if change.span != (None, None) else "from all rows"] += 1
    unchanged = [row for row in old if _unit(row, parts) not in units]
    unchanged += [row for row, gone in zip(published, answer.replaced, strict=True) if not gone]
    wanted = [row for row in new if _unit(row, parts) not in left] + [row for row in old if _unit(row, parts) in left]
    tally.counts["rows kept of changed partitions"] += len(published) - int(answer.replaced.sum())
    return sorted([*unchanged, *_shown(answer.rows, change)], key=str), sorted(wanted, key=str)


def _events(table: pa.Table) -> list[Event]:
    rows: list[Event] = table.to_pylist()
    return rows


def _shown(table: pa.Table, change: Change) -> list[Event]:
    rows = table.to_pylist()
    return [row for row in rows if not change.hidden or not str(row["match_id"]).endswith(change.hidden)]


def _unit(row: Event, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def _inside(row: Event, low: int | None, high: int | None) -> bool:
    time = round(row["event_time"].timestamp() * SECOND)
    return (low is None or time >= low) and (high is None or time < high)
