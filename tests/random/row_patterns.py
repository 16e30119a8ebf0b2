"""Random row patterns over random partitions, and how the engine's rows differ from those of the reference."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from tests.reference.match_recognize import Question, TooLong, reference, text_of
from tests.support.row_patterns import rows_of, table_of
from trendlake.cep_core import compile_query, run_plan
from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.match_recognize.run.matches import Matches, searched
from trendlake.cep_core.match_recognize.run.rows import Rows
from trendlake.cep_core.match_recognize.run.run import matches_of
from trendlake.cep_core.yaml.scalars import yaml_text

TYPES = {"sym": pa.string(), "x": pa.int64(), "y": pa.float64(), "s": pa.string()}
VARIABLES = ("A", "B", "C", "D")
SUBSET = "U"
NUMBERS, TEXTS = ("x", "y"), ("s", "event_id")


@cache
def _below(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


def pick(draw: st.DrawFn, options: Sequence[Any]) -> Any:
    """One of the options; strategies that are made anew for each draw take most of the time."""
    return options[draw(_below(len(options)))]


@dataclass
class RowPatternTally:
    """How often what came up."""

    counts: Counter[str] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        """For the end of a run."""
        return [", ".join(f"{count:,} {name}" for name, count in sorted(self.counts.items()))]


@dataclass(frozen=True)
class Case:
    """A question and its rows."""

    question: Question
    rows: tuple[dict[str, Any], ...]

    @property
    def query(self) -> dict[str, Any]:
        query: dict[str, Any] = {"kind": "match_recognize", "pattern": text_of(self.question)}
        if self.question.within is not None:
            query["within"] = f"{self.question.within} seconds"
        return query


@st.composite
def patterns(draw: st.DrawFn, depth: int = 3) -> Any:
    """A pattern, mostly of variables."""
    sort = draw(st.integers(0, 11)) if depth else 0
    inner = patterns(depth - 1)
    if sort <= 3:
        return ("var", pick(draw, VARIABLES))
    if sort <= 5:
        return ("seq", *draw(st.lists(inner, min_size=2, max_size=3)))
    if sort <= 7:
        low = pick(draw, (0, 0, 1, 1, 2))
        high = pick(draw, (None, None, 1, 2, 3))
        high = max(high, low, 1) if high is not None else None
        return ("rep", draw(inner), low, high, pick(draw, (False, True)))
    if sort == 8:
        return ("alt", *draw(st.lists(inner, min_size=2, max_size=3)))
    if sort == 9:
        return ("permute", *draw(st.lists(inner, min_size=2, max_size=3)))
    if sort == 10:
        return ("out", draw(inner))
    return pick(draw, (("empty",), ("first",), ("last",)))


def variables_of(node: Any) -> list[str]:
    if node[0] == "var":
        return [node[1]]
    return [name for part in node if isinstance(part, tuple) for name in variables_of(part)]


@st.composite
def values(draw: st.DrawFn, names: tuple[str, ...], *, number: bool, measure: bool) -> Any:
    """A number, or a text."""
    name = pick(draw, ("", "", *names))
    column = pick(draw, NUMBERS if number else ("s",))
    cell = ("col", name, column)
    final = measure and pick(draw, (False, True))
    match pick(draw, range(7)):
        case 0:
            return ("lit", pick(draw, range(4)) if number else pick(draw, "ab"))
        case 1 | 2:
            return cell
        case 3:
            word = pick(draw, ("PREV", "NEXT", "FIRST", "LAST"))
            argument = cell if number or pick(draw, (False, True)) else ("label", name)
            if number and pick(draw, (False, True)):
                argument = ("op", "+", cell, ("lit", 1))
            return ("nav", word, argument, pick(draw, range(3)), final and word in ("FIRST", "LAST"))
        case 4:
            base = ("nav", pick(draw, ("FIRST", "LAST")), cell, pick(draw, range(2)), final)
            return ("near", pick(draw, ("PREV", "NEXT")), base, pick(draw, range(3)))
        case 5:
            if not number:
                return ("label", name)
            return pick(draw, (("number",), ("agg", "COUNT", None, name, final)))
    if number:
        function = pick(draw, ("COUNT", "SUM", "AVG", "MIN", "MAX", "ANY_VALUE", "DISTINCT COUNT"))
        argument = pick(draw, (cell, ("op", "+", cell, ("lit", 1))))
        return ("agg", function, argument, "", final)
    argument = pick(draw, (cell, ("label", name)))
    return ("agg", pick(draw, ("MIN", "MAX", "ANY_VALUE")), argument, "", final)


@st.composite
def conditions(draw: st.DrawFn, names: tuple[str, ...], depth: int = 2) -> Any:
    sort = pick(draw, range(7)) if depth else 0
    if sort == 5:
        return ("op", pick(draw, ("AND", "OR")), draw(conditions(names, depth - 1)), draw(conditions(names, depth - 1)))
    if sort == 6:
        return ("not", draw(conditions(names, depth - 1)))
    number = pick(draw, (True, True, False))
    if pick(draw, range(4)) and number:  # the common case: a comparison of the row with a constant
        return ("op", pick(draw, (">=", "<>", "<", "=")), ("col", "", "x"), ("lit", pick(draw, (1, 2, 3, 0))))
    left, right = (draw(values(names, number=number, measure=False)) for _ in range(2))
    if pick(draw, range(6)) == 0:
        return ("null?", left)
    return ("op", pick(draw, ("<", "<=", "=", "<>", ">", ">=")), left, right)


MEASURED = ("COUNT", "SUM", "AVG", "MIN", "MAX", "ANY_VALUE", "ARRAY_AGG", "DISTINCT COUNT", "DISTINCT SUM")


@st.composite
def measures(draw: st.DrawFn, names: tuple[str, ...]) -> Any:
    match pick(draw, range(5)):
        case 0:
            return draw(values(names, number=False, measure=True))
        case 1:
            cell = ("col", pick(draw, ("", *names)), pick(draw, NUMBERS))
            return ("agg", pick(draw, MEASURED), cell, "", pick(draw, (False, True)))
        case 2:
            return ("agg", "ARRAY_AGG", ("label", pick(draw, ("", *names))), "", pick(draw, (False, True)))
        case 3:
            return draw(conditions(names))
    return draw(values(names, number=True, measure=True))


CELLS = {
    "time": tuple(range(10)),
    "sym": ("u", "v", None),
    "x": (1, 2, 0, 3, None),
    "y": (0.5, 1.0, 2.5, 0.1, None),
    "s": ("a", "b", None),
}


@st.composite
def row_lists(draw: st.DrawFn, most: int = 7) -> tuple[dict[str, Any], ...]:
    """Rows, each drawn as one number."""
    rows = []
    for at in range(pick(draw, (0, *range(3, most + 1), most))):
        row: dict[str, Any] = {"id": f"e{at}", "event_id": f"e{at}", "type": "T"}
        number = pick(draw, range(10 * 3 * 5 * 5 * 3))
        for name, cells in CELLS.items():
            number, place = divmod(number, len(cells))
            row[name] = cells[place]
        rows.append(row)
    return tuple(rows)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    pattern = draw(patterns())
    names = tuple(dict.fromkeys(variables_of(pattern)))
    assume(names)
    known = names
    subsets: dict[str, tuple[str, ...]] = {}
    if pick(draw, range(3)) == 0:
        subsets[SUBSET] = tuple(draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)))
        known = (*names, SUBSET)
    defines = {name: draw(conditions(known)) for name in names if pick(draw, (False, True))}
    rows = pick(draw, ("one", "one", "show", "omit", "unmatched"))
    assume(rows != "unmatched" or "out" not in str(pattern))
    skip = pick(draw, ("past_last", "next", "past_last", "next", "first", "last"))
    order = pick(draw, ("event_time", "event_time", "event_time DESC", "x"))
    within = pick(draw, (None, None, 3)) if order != "x" else None
    named = {f"m{at}": draw(measures(known)) for at in range(pick(draw, range(4)))}
    target = (skip, pick(draw, known) if skip in ("first", "last") else "")
    return Question(pattern, defines, named, subsets, pick(draw, (False, True)), order, rows, target, within)


@st.composite
def cases(draw: st.DrawFn, most: int = 7) -> Case:
    return Case(draw(questions()), draw(row_lists(most)))


def answer(case: Case) -> list[dict[str, Any]] | str:
    """The engine's rows, or the code of its error. The compiled passes, and what they tell the search in Python,
    change no match."""
    rows = [{key: cell for key, cell in row.items() if key != "event_id"} for row in case.rows]
    table = table_of(random.Random(1).sample(rows, len(rows)), TYPES) if rows else table_of([_NONE], TYPES).slice(0, 0)
    plan = compile_query(case.query, schema_of(table))
    try:
        result = rows_of(run_plan(plan, table))
        ordered = Rows(plan, Columns(table))
        fast = matches_of(plan, ordered)
        if not _equal(fast, searched(plan, ordered)):
            return "the passes and the search differ"
        return result
    except TrendlakeError as error:
        return error.code


def as_case(case: Case) -> str:
    """A question and the reference's answer as one entry of tests/cases."""
    events = [{name: cell for name, cell in row.items() if name != "event_id"} for row in case.rows]
    entry = {"name": "found-by-fuzz", "events": events, "query": case.query}
    answer = reference(case.question, case.rows)
    entry |= {"code": answer} if isinstance(answer, str) else {"expect": answer}
    return yaml_text([entry], 200, inner_on_one_line=True)


def _equal(one: Matches, other: Matches) -> bool:
    pairs = (
        (one.start, other.start),
        (one.number, other.number),
        (one.offset, other.offset),
        (one.places, other.places),
    )
    return all(np.array_equal(a, b) for a, b in pairs)


_NONE = {"id": "e", "time": 0, "type": "T", "sym": None, "x": None, "y": None, "s": None}


def plain(rows: list[dict[str, Any]] | str, names: list[str]) -> Any:
    return rows if isinstance(rows, str) else sorted(([(name, row[name]) for name in names] for row in rows), key=str)


def disagreement(case: Case, tally: RowPatternTally) -> list[str]:
    """How the engine's answer differs from the reference's; nothing where it does not."""
    try:
        wanted = reference(case.question, case.rows)
    except TooLong:
        assume(False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        actual = answer(case)
    tally.counts["compared"] += 1
    tally.counts["with an error" if isinstance(wanted, str) else "with rows" if wanted else "without rows"] += 1
    if isinstance(wanted, str) or isinstance(actual, str) or len(wanted) != len(actual):
        return [] if wanted == actual else [f"expected {wanted}, found {actual}"]
    names = list(wanted[0]) if wanted else []
    one, other = plain(wanted, names), plain(actual, names)
    return [f"expected {a}, found {b}" for a, b in zip(one, other, strict=True) if a != b]


def cut_by_time(case: Case, tally: RowPatternTally) -> tuple[list[Any], list[Any]]:
    """The rows of all panes at once, and pane by pane, each of the events that its window holds; two empty lists, where
    the rows are an error. Panes are short: `within` is 2 seconds if a case does not say it and may."""
    question = case.question
    if question.within is None and question.order.startswith("event_time"):
        case = replace(case, question=replace(question, within=2))
    if not case.rows:
        return [], []
    events = table_of(case.rows, TYPES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = compile_query(case.query, schema_of(events))
    try:
        whole = run_plan(plan, events)
    except TrendlakeError:
        return [], []
    times = events["event_time"].cast(pa.int64())
    parts, numbers = list[Any](), times.to_numpy()
    panes = [plan.windows.after(int(time)) for time in numbers]
    for window in range(min(panes), max(panes) + 1):
        low, high = plan.windows.span(range(window, window + 1))
        mine = events.filter(pa.array((numbers >= low) & (numbers < high)))
        parts += run_plan(plan, mine, range(window, window + 1)).to_pylist()
        tally.counts["panes"] += 1
        tally.counts["panes of some events"] += mine.num_rows < events.num_rows
    return sorted(whole.to_pylist(), key=str), sorted(parts, key=str)
