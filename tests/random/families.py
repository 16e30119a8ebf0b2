"""Random families of patterns, and what their members give one by one: the meaning of `for_each`."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from tests.random import algebra, automata, matches, strategies
from tests.random.batches import COLUMNS, LOCAL, compiled, rows_alone, shown, timed
from tests.support.engines import to_table
from trendlake.cep_core import PatternErrors, PatternWarning, compile_query, load_pattern
from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.patterns.expansion import expanded
from trendlake.cep_core.patterns.model import FamilyPattern

VALUES = {
    "x": st.lists(st.one_of(st.integers(-2, 3), st.none()), min_size=1, max_size=3, unique=True),
    "y": st.lists(st.one_of(st.sampled_from((-1.5, 0.0, 0.25, 2.0)), st.none()), min_size=1, max_size=3, unique=True),
    "g": st.lists(st.sampled_from(("u", "v", "it's", "$p", None)), min_size=1, max_size=3, unique=True),
    "whole": st.lists(st.integers(-2, 3), min_size=1, max_size=3, unique=True),
    "real": st.lists(st.sampled_from((-1.5, 0.0, 0.5, 1.5)), min_size=1, max_size=2, unique=True),
    "word": st.lists(st.sampled_from(("a", "b", "it's", "$p")), min_size=1, max_size=2, unique=True),
}
"""Of parameters that are compared with a column; `whole`, `real` and `word` stand for any literal of kind algebra."""
LITERAL = re.compile(r"(?<![\w.$'])(?<!INTERVAL )(\d+\.\d+|\d+|'\w*')(?![\w.']| (?:second|SECOND))")
SPECIAL = (
    "{v}.x IN (1, $x)",
    "{v}.x BETWEEN $x AND 3",
    "{v}.x = $x",
    "{v}.x > -$x",
    "{v}.x + $x > 1",
    "coalesce({v}.x, $x) = 1",
    "{v}.y < $y",
    "{v}.y * $y > 0",
    "{v}.g = $g",
    "{v}.g != $g OR {v}.g = '$g'",
    "{v}.g IN ('u', $g)",
    "$x <= {v}.x",
)
OF_EVENTS = ("e.x > $x", "e.x = $x", "e.y < $y", "e.x + $x < 3", "$x IS NULL OR e.x != $x")


@dataclass(frozen=True)
class Family:
    """A query with `for_each`, and events."""

    query: dict[str, Any]
    table: pa.Table


@st.composite
def families(draw: st.DrawFn) -> Family:
    """A query of a kind that has `for_each`, with one to three parameters."""
    kind = draw(st.sampled_from(("trends", "trends", "matches", "automaton", "algebra", "algebra")))
    if kind == "trends":
        query, rows = draw(strategies.questions(most=12, depth=2))
    elif kind == "matches":
        query, rows = draw(matches.any_questions())
    elif kind == "algebra":
        asked = draw(algebra.cases(most=8))
        query, rows = asked.query, [timed(row) for row in asked.rows]
    else:
        case = draw(automata.cases(most=8))
        query, rows = case.query, case.rows
    query = dict(query)
    if kind == "automaton":
        _in_arcs(draw, query)
    elif kind == "algebra":
        query["pattern"] = _in_literals(draw, query["pattern"])
    else:
        from trendlake.cep_core.language import syntax as s
        from trendlake.cep_core.language.parse import parse_pattern

        atoms = s.atoms(parse_pattern(query["pattern"]))
        texts = draw(st.lists(st.sampled_from((*SPECIAL, *LOCAL)), min_size=1, max_size=3))
        texts = [draw(st.sampled_from(SPECIAL)), *texts]
        added = [text.format(v=draw(st.sampled_from(atoms)).variable, c="$x") for text in texts if "{c}." not in text]
        query["where"] = [*added, *query.get("where", ())]
    text = repr(query)
    names = [name for name in VALUES if f"${name}" in text.replace(f"'${name}'", "")]
    assume(names)  # an automaton may have no arc that takes an event
    query["for_each"] = {name: draw(VALUES[name]) for name in names}
    table = to_table(draw(st.permutations(rows)), {n: k for n, k in COLUMNS.items() if n != "sequence"})
    assume(kind != "algebra" or not _mistaken(query, table))
    return Family(query, table)


def _mistaken(query: dict[str, Any], table: pa.Table) -> bool:
    """Whether there are mistakes of a family that are none of its members: a part of a condition that reads parameters
    only, a parameter in what no row depends on."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PatternWarning)
            compile_query(query, schema_of(table))
    except PatternErrors as refused:
        own = ("reads parameters and no event", "no condition reads")
        return all(any(text in error.message for text in own) for error in refused.errors)
    return False


def _in_arcs(draw: st.DrawFn, query: dict[str, Any]) -> None:
    arcs = [dict(arc) for arc in query["arcs"]]
    taking = [arc for arc in arcs if not arc.get("epsilon") and not arc.get("at")]
    for arc in draw(st.lists(st.sampled_from(taking), min_size=1, max_size=2)) if taking else ():
        added = draw(st.sampled_from(OF_EVENTS))
        arc["when"] = f"({arc['when']}) AND {added}" if isinstance(arc.get("when"), str) else added
    query["arcs"] = arcs


def _in_literals(draw: st.DrawFn, pattern: str) -> str:
    """CEL with parameters in place of some of its literals."""

    def parameter(match: re.Match[str]) -> str:
        name = "word" if match[0][0] == "'" else "real" if "." in match[0] else "whole"
        return f"${name}" if draw(st.booleans()) else match[0]

    return LITERAL.sub(parameter, pattern)


def one_by_one(family: Family) -> Any:
    """Each member written out, compiled and run by itself, without an index; before its rows the values of its
    parameters. None where a member is refused, or a parameter has the name of a result column; the first error where
    one has one."""
    pattern = load_pattern(family.query)
    if not isinstance(pattern, FamilyPattern) or pattern.parameters is None:
        raise TypeError("no family")
    tables = []
    for row, query in zip(pattern.parameters.rows, expanded(pattern), strict=True):
        plan = compiled(query, family.table)
        if plan is None or not set(plan.result_schema.names).isdisjoint(pattern.parameters.names):
            return None
        try:
            table = rows_alone(plan, family.table)
        except TrendlakeError as error:
            return f"{type(error).__name__}: {error.message} (where {pattern.parameters.described(row)})"
        values = [
            pa.array([value] * table.num_rows, pa.int64()).cast(field.type)
            if pa.types.is_timestamp(field.type)
            else pa.array([value] * table.num_rows, field.type)
            for value, field in zip(row, pattern.parameters.schema, strict=True)
        ]
        schema = pa.schema([*pattern.parameters.schema, *plan.result_schema])
        own = table.cast(plan.result_schema)
        tables.append(pa.Table.from_arrays([*values, *own.columns], schema=schema))
    return shown(pa.concat_tables(tables))


def as_family(family: Family) -> Any:
    """What the engine gives for the whole."""
    from trendlake.cep_core import run_plan

    plan = compiled(family.query, family.table)
    if plan is None:
        return None
    try:
        return shown(run_plan(plan, family.table))
    except PatternErrors:
        raise
    except TrendlakeError as error:
        return f"{type(error).__name__}: {error.message}"
