"""Random texts whose conditions read more than their row, over rows of all types: what the compiled search finds, and
what the search in Python finds."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from tests.random.row_patterns import patterns, pick, variables_of
from tests.reference.match_recognize.write import pattern as spelled
from tests.support.row_patterns import table_of
from trendlake.cep_core import compile_query
from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.match_recognize.run.matches import Matches
from trendlake.cep_core.match_recognize.run.rows import Rows

TYPES = {
    "sym": pa.string(),
    "x": pa.int64(),
    "big": pa.int64(),
    "y": pa.float64(),
    "wide": pa.float64(),
    "d": pa.decimal128(12, 2),
    "long": pa.decimal128(20, 4),
    "s": pa.string(),
    "b": pa.bool_(),
    "day": pa.date32(),
}
CELLS: dict[str, tuple[Any, ...]] = {
    "sym": ("u", "v", None),
    "x": (1, 2, 0, 3, -1, None),
    "big": (2**62, -(2**62), 2**63 - 1, -(2**63), 1, None),
    "y": (0.5, 1.0, 0.1, 0.2, -0.3, math.nan, None),
    "wide": (1e300, 1e-300, math.inf, -math.inf, -0.0, None),
    "d": (Decimal("0.10"), Decimal("0.20"), Decimal("-0.30"), None),
    "long": (Decimal("0.1000"), Decimal("12345678901234.5678"), None),
    "s": ("a", "b", "A", None),
    "b": (True, False, None),
    "day": (datetime.date(2026, 1, 1), datetime.date(1969, 12, 31), None),
}
NUMBERS = ("x", "x", "y", "y", "d", "big", "wide", "long")
OPERATORS = ("<", "<=", "=", "<>", ">", ">=")


def _aggregate(draw: st.DrawFn, name: str, column: str) -> str:
    function = pick(draw, ("SUM", "SUM", "AVG", "AVG", "COUNT", "MIN", "MAX", "ANY_VALUE", "COUNT(DISTINCT"))
    return f"{function}{' ' if '(' in function else '('}{name}{column})"


def _near(draw: st.DrawFn, argument: str) -> str:
    """A navigation."""
    inner = f"{pick(draw, ('FIRST', 'LAST'))}({argument}, {pick(draw, range(3))})"
    if pick(draw, (False, True)):
        return inner
    return f"{pick(draw, ('PREV', 'NEXT'))}({inner}, {pick(draw, range(3))})"


def _read(draw: st.DrawFn, names: Sequence[str], column: str) -> str:
    name = pick(draw, ("", "", *(f"{one}." for one in names)))
    if pick(draw, range(3)) == 0:
        return f"{name}{column}"
    argument = f"{name}{column}"
    if column in NUMBERS and pick(draw, range(4)) == 0:
        argument = f"{argument} + {pick(draw, (1, 2))}"
    return _near(draw, argument)


@st.composite
def _comparisons(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    """A comparison of what it remembers with a constant, the row, or something else that it remembers."""
    sort = pick(draw, range(10))
    name = pick(draw, ("", "", *(f"{one}." for one in names)))
    operator = pick(draw, OPERATORS)
    if sort <= 3:
        column = pick(draw, NUMBERS)
        other = pick(draw, ("1", "0.4", "2", "-1", "x", "y", _read(draw, names, pick(draw, NUMBERS))))
        return f"{_aggregate(draw, name, column)} {operator} {other}"
    if sort == 4:
        return f"COUNT({name or ''}*) {operator} {pick(draw, ('1', '2', '3', 'x'))}"
    if sort == 5:
        column = pick(draw, NUMBERS)
        return f"{_read(draw, names, column)} {operator} {pick(draw, ('1', '0.2', 'x', _read(draw, names, column)))}"
    if sort == 6:
        read = _read(draw, names, "s")
        if pick(draw, range(3)) == 0:
            read = f"{pick(draw, ('MIN', 'MAX', 'ANY_VALUE'))}({name}s)"
        changed = pick(draw, ("{}", "{}", "UPPER({})", "CASE WHEN {} = 'a' THEN 'b' ELSE 'a' END")).format(read)
        return f"{changed} {operator} {pick(draw, (repr('a'), repr('b'), 's'))}"
    if sort == 7:
        read = pick(draw, (_read(draw, names, "day"), f"MAX({name}day)", f"MIN({name}day)"))
        return f"{read} {operator} day"
    if sort == 8:
        return pick(draw, (f"BOOL_AND({name}b)", f"BOOL_OR({name}b)", _read(draw, names, "b"), "MATCH_NUMBER() < 3"))
    label = f"CLASSIFIER({name.rstrip('.')})"
    read = pick(draw, (label, _near(draw, label), f"PREV({label}, {pick(draw, range(3))})", f"MAX({label})"))
    return f"{read} {pick(draw, ('=', '<>'))} {pick(draw, ('CLASSIFIER()', *map(repr, names)))}"


@st.composite
def _conditions(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    one = draw(_comparisons(names))
    match pick(draw, range(8)):
        case 0:
            return f"NOT ({one})"
        case 1:
            return f"({one}) IS NULL"
        case 2 | 3:
            return f"({one}) {pick(draw, ('AND', 'OR'))} ({draw(_comparisons(names))})"
        case 4:
            return f"x {pick(draw, OPERATORS)} 1 AND ({one})"
        case 5:
            return f"x > 0 OR ({one})"
    return one


@dataclass(frozen=True)
class Case:
    text: str
    rows: tuple[dict[str, Any], ...]
    limit: int
    within: int | None

    def plan(self) -> RowPatternPlan:
        query = {"kind": "match_recognize", "pattern": self.text, "limit_per_start": self.limit}
        query |= {} if self.within is None else {"within": f"{self.within} seconds"}
        plan = compile_query(query, schema_of(self.table()))
        assert isinstance(plan, RowPatternPlan)
        return plan

    def table(self) -> pa.Table:
        return table_of([*self.rows] or [_row(0, dict.fromkeys(CELLS))], TYPES).slice(0, len(self.rows))


def _row(at: int, cells: dict[str, Any]) -> dict[str, Any]:
    return {"id": f"e{at}", "type": "T", "time": at // 2, **cells}


@st.composite
def searches(draw: st.DrawFn, most: int = 12) -> Case:
    tree = draw(patterns())
    if pick(draw, (False, True, True)):
        tree = ("seq", tree, draw(patterns(2)))
    names = tuple(dict.fromkeys(variables_of(tree)))
    assume(names)
    known, subset = names, ""
    if pick(draw, (False, True)):
        members = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        known, subset = (*names, "U"), f"SUBSET U = ({', '.join(members)})"
    chosen = [name for name in names if pick(draw, (False, True))] or [names[-1]]
    defines = ", ".join(f"{name} AS {draw(_conditions(known))}" for name in chosen)
    order = pick(draw, ("event_time", "event_time", "x", "event_time DESC"))
    onward = pick(draw, ("PAST LAST ROW", "TO NEXT ROW", f"TO FIRST {names[0]}", f"TO LAST {names[-1]}"))
    parts = "PARTITION BY sym " if pick(draw, (False, True)) else ""
    text = (
        f"SELECT * FROM trades MATCH_RECOGNIZE ({parts}ORDER BY {order} MEASURES COUNT(*) AS n "
        f"AFTER MATCH SKIP {onward} PATTERN ({spelled(tree)}) {subset} DEFINE {defines})"
    )
    common = pick(draw, (True, True, False))  # without what leaves 64 bits or one unit
    rows = []
    for at in range(pick(draw, (0, 3, 6, most, most))):
        cells = {name: pick(draw, cells) for name, cells in CELLS.items()}
        rows.append(_row(at, cells | ({"big": 1, "wide": 0.5, "long": Decimal("0.1000")} if common else {})))
    within = pick(draw, (None, None, 3)) if order != "x" else None
    return Case(text, tuple(rows), pick(draw, (1_000_000, 1_000_000, 12)), within)


Outcome = tuple[str, str] | tuple[list[int], ...]


def outcome(search: Callable[[], Matches]) -> Outcome:
    """The matches as lists, or the error."""
    try:
        matches = search()
    except TrendlakeError as error:
        return error.code, error.message
    arrays: tuple[np.ndarray[Any, Any], ...] = (matches.start, matches.number, matches.offset, matches.places)
    return tuple(array.tolist() for array in arrays)


def rows_of_case(case: Case, plan: RowPatternPlan) -> Rows:
    return Rows(plan, Columns(case.table()))
