"""Random plans of all kinds over one table of events, and how the answers of several at once differ from each alone."""

from __future__ import annotations

import re
import struct
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from tests.random import algebra, automata, matches, strategies
from tests.random.xml_joins import xml_question
from tests.reference.automaton.expression import EPOCH
from tests.support.engines import to_table
from tests.support.xml_documents import documents_table
from trendlake.cep_core import AnyPlan, PatternErrors, PatternWarning, compile_query, run_plans
from trendlake.cep_core.derived import derive
from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.having import rows_that_hold
from trendlake.cep_core.kinds import KINDS

COLUMNS = {**algebra.COLUMNS, **automata.COLUMNS, **matches.COLUMNS}
"""Of the events of every kind that reads events; columns of one name are of one type in all of them."""
EVENT_KINDS = ("trends", "trends", "trends", "matches", "matches", "automaton", "algebra", "algebra")


@dataclass(frozen=True)
class Batch:
    """Plans, the events of all of them together, and the windows each is asked for."""

    plans: list[AnyPlan]
    table: pa.Table
    windows: list[range | None]
    watermark: int | None


@st.composite
def batches(draw: st.DrawFn, *, documents: bool = True) -> Batch:
    """One to three queries, each alone or with others of its form, and the streams of all of them as one.

    A batch of kind xml_join has no other kinds: its source holds documents. There is none without `documents`.
    """
    if documents and draw(st.integers(0, 15)) == 15:
        return draw(xml_batches())
    rows: list[dict[str, Any]] = []
    queries: list[tuple[dict[str, Any], int]] = []
    for base in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(EVENT_KINDS))
        if kind == "trends":
            query, more = draw(strategies.questions(most=12, depth=2))
        elif kind == "matches":
            query, more = draw(matches.any_questions())
            query |= draw(st.sampled_from(({}, {}, {}, {"output": "compressed"})))
        elif kind == "algebra":
            asked_for = draw(algebra.cases(most=8))
            query, more = asked_for.query, [timed(row) for row in asked_for.rows]
        else:
            case = draw(automata.cases(most=8))
            query, more = case.query, case.rows
        rows += [{**row, "id": f"{row['id']}-{base}"} for row in more]
        variants = 0 if kind == "automaton" else draw(st.sampled_from((0, 1, 3, 3, 5)))
        if draw(st.integers(0, 3)) or not variants:
            queries.append((query, base))
        for _ in range(variants):
            if kind == "algebra":
                queries.append(({**query, "pattern": draw(other_constants(query["pattern"]))}, base))
                continue
            added = [draw(local(query["pattern"])) for _ in range(draw(st.sampled_from((1, 1, 2))))]
            queries.append(({**query, "where": [*added, *query.get("where", ())]}, base))
    if draw(st.integers(0, 7)) == 7 and rows:
        rows[0]["x"] = 2**63 - 1  # too large to add to
    table = to_table(draw(st.permutations(rows)), {n: kind for n, kind in COLUMNS.items() if n != "sequence"})
    plans = [(plan, base) for query, base in queries if (plan := compiled(query, table)) is not None]
    asked_of = {base: draw(asked(plan)) for plan, base in plans}
    watermark = draw(st.sampled_from((None, None, 12_000_000)))
    return Batch([plan for plan, _ in plans], table, [asked_of[base] for _, base in plans], watermark)


@st.composite
def xml_batches(draw: st.DrawFn) -> Batch:
    """Two to four files of queries over the documents of all of them."""
    files, documents = [], []
    for base in range(draw(st.integers(2, 4))):
        query, more = xml_question(draw(st.integers(0, 2**32 - 1)))
        files.append(query)
        documents += [{**one, "id": f"{one['id']}-{base}"} for one in more]
    table = documents_table(draw(st.permutations(documents)))
    plans = [plan for query in files if (plan := compiled(query, table)) is not None]
    return Batch(plans, table, [draw(asked(plan)) for plan in plans], draw(st.sampled_from((None, None, 3_000_000))))


def timed(row: dict[str, Any]) -> dict[str, Any]:
    """An event of kind algebra with its `start`, seconds in the random events, as a time."""
    return row if row["start"] is None else {**row, "start": EPOCH + timedelta(seconds=row["start"])}


@st.composite
def other_constants(draw: st.DrawFn, pattern: str) -> str:
    """A pattern of kind algebra in which some of the constants that something is compared with are others."""

    def other(match: re.Match[str]) -> str:
        constant = draw(st.sampled_from(("0", "1", "2") if match[2][0] != "'" else ("'a'", "'b'", "''")))
        return match[1] + constant if draw(st.booleans()) else match[0]

    return re.sub(r"([=<>] )(-?\d+(?![\d.])|'\w*')(?! (?:second|SECOND))", other, pattern)


LOCAL = (
    *["{v}.x = {c}"] * 6,
    *["{v}.x > {c}"] * 4,
    "{v}.x <= {c}",
    "{c} < {v}.x",
    "{v}.y >= {c}",
    "{v}.y < {c}.25",
    "{v}.y = {c}.0",
    "{v}.x = {c}.0",
    "{v}.g = 'u'",
    "{v}.g > 'u'",
    "{v}.g IN ('u', 'v', NULL)",
    "{v}.x IN (0, {c})",
    "{v}.x BETWEEN 0 AND {c}",
    "{v}.y NOT BETWEEN 0 AND {c}",
    "{v}.x != {c}",
    "{v}.x + 1 > {c}",
    "{v}.y IS NULL",
    "{v}.y = -0.0",
    "{v}.event_time >= TIMESTAMP '1970-01-01T00:00:02Z'",
    "{v}.x = 9223372036854775807",
)
"""Conditions with constants, most of which an index answers."""


@st.composite
def local(draw: st.DrawFn, pattern: str) -> str:
    """A condition with a constant on a variable of a pattern."""
    from trendlake.cep_core.language import syntax as s
    from trendlake.cep_core.language.parse import parse_pattern

    variable = draw(st.sampled_from(s.atoms(parse_pattern(pattern)))).variable
    return draw(st.sampled_from(LOCAL)).format(v=variable, c=draw(st.integers(0, 3)))


@st.composite
def asked(draw: st.DrawFn, plan: AnyPlan) -> range | None:
    """All windows, or some of those that events of the stream may lie in."""
    if draw(st.integers(0, 2)):
        return None
    first = plan.windows.holding(draw(st.integers(-6, 10)) * 1_000_000).start
    return range(first, first + draw(st.integers(1, 3)))


def compiled(query: dict[str, Any], table: pa.Table) -> AnyPlan | None:
    """The plan; None where the checks refuse the query."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)
        try:
            roles = ("event_time", "document") if "document" in table.column_names else ("event_time", "event_type")
            return compile_query(query, schema_of(table, roles=roles))
        except PatternErrors:
            return None


def alone(batch: Batch, number: int) -> Any:
    """What one plan of a batch gives by itself, of all events and without an index; comparable by `==`."""
    plan = batch.plans[number]
    try:
        return shown(rows_alone(plan, batch.table, batch.windows[number], batch.watermark))
    except TrendlakeError as error:
        return str(error)


def rows_alone(plan: AnyPlan, table: pa.Table, windows: range | None = None, watermark: int | None = None) -> pa.Table:
    """What a plan gives of all events of a table, by its kind's own reading."""
    until = _latest(table) if watermark is None and windows is None else watermark
    return rows_that_hold(plan.having, KINDS[plan.kind].run(plan, Columns(derive(table, plan.schema)), windows, until))


def _latest(table: pa.Table) -> int | None:
    """How far time has come where neither a watermark nor windows are stated: to the latest event."""
    if "event_time" not in table.column_names:
        return None
    time: int | None = pc.max(table["event_time"].cast(pa.timestamp("us")).cast(pa.int64())).as_py()
    return time


def together(batch: Batch, numbers: Sequence[int]) -> list[Any]:
    """What some plans of a batch give together, in the order of `numbers`."""
    plans, windows = [batch.plans[i] for i in numbers], [batch.windows[i] for i in numbers]
    answers = dict(run_plans(plans, batch.table, windows, batch.watermark))
    assert sorted(answers) == list(range(len(numbers)))
    return [str(a) if isinstance(a := answers[i], TrendlakeError) else shown(a) for i in range(len(numbers))]


def shown(table: pa.Table) -> list[str]:
    """The schema, and rows in an order of their own, doubles by their bytes."""
    return [str(table.schema), *sorted(repr(_exact(row)) for row in table.to_pylist())]


def _exact(cell: Any) -> Any:
    if isinstance(cell, float):
        return struct.pack("<d", cell)
    if isinstance(cell, dict):
        return [(name, _exact(value)) for name, value in cell.items()]
    return [_exact(value) for value in cell] if isinstance(cell, list) else cell
