"""Random patterns over three tables: what the engine answers of them, and what it answers today of the one table that
a slow loop makes of their rows.

The questions are those of other searches. Their events are dealt out to three tables by type; ids collide, some tables
have a sequence, columns have other names, whole numbers are doubles in some, and one table may lack a column.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.random import algebra, automata, matches, row_patterns
from tests.random.batches import local
from tests.random.strategies import COLUMNS, questions
from tests.support.engines import TIME
from trendlake.cep_core import PatternErrors, TrendlakeError, compile_query, run_plan, run_plans
from trendlake.cep_core.events.schema import EventSchema, schema_of
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.parse import parse_pattern

TABLES = ("orders", "paying", "ticket")
"""Names of one length: as texts, `orders:17` and `ticket:03` are in the order of table and id."""
OF_ALGEBRA = {**algebra.COLUMNS, "start": TIME}
KINDS = ("trends", "matches", "automaton", "algebra", "match_recognize")


@dataclass
class SourcesTally:
    """How many questions were compared."""

    counts: Counter[str] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        """The tally as text."""
        return [", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))]


@dataclass(frozen=True)
class Table:
    """One of the tables. `names`: its columns by the names that the pattern has; `seq`: whether it has a sequence."""

    name: str
    typed: bool
    seq: bool
    texts: bool
    names: Mapping[str, str]
    doubles: frozenset[str]
    absent: frozenset[str]


@dataclass(frozen=True)
class Case:
    """A question: each of `rows` has its own `table`, `own` id and `seq`, and the type that the pattern knows."""

    query: dict[str, Any]
    tables: tuple[Table, ...]
    types: Mapping[str, str]
    rows: list[dict[str, Any]]
    columns: Mapping[str, pa.DataType]
    ties: Any
    watermark: int | None
    numbered: bool
    """Whether ids are of any size, so that their order is not that of texts."""
    others: tuple[Mapping[str, Any], ...] = ()
    """Keys in which other patterns over the same tables differ, which are computed together with this one."""


def _asked(kind: str, most: int) -> st.SearchStrategy[Any]:
    return {
        "trends": questions(most=most, lengths=True),
        "matches": matches.any_questions(most=most),
        "automaton": automata.cases(most),
        "algebra": algebra.cases(most),
        "match_recognize": row_patterns.cases(most),
    }[kind]


_TYPES: Mapping[str, Mapping[str, pa.DataType]] = {
    "trends": COLUMNS,
    "matches": COLUMNS,
    "automaton": {name: kind for name, kind in automata.COLUMNS.items() if name != "sequence"},
    "algebra": OF_ALGEBRA,
    "match_recognize": row_patterns.TYPES,
}


def types_in(query: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The types of a question; one at least, as `sources` may not be empty."""
    named = {str(row["type"]) for row in rows}
    if query["kind"] in ("trends", "matches"):
        named |= {atom.type_name for atom in s.atoms(parse_pattern(query["pattern"]))}
    if query["kind"] == "algebra":
        named |= {"A", "B"}
    if query["kind"] in ("automaton", "match_recognize"):
        named |= {"T", "U", "V"}
    return sorted(named - {"ANY"}) or ["A"]


@st.composite
def cases(draw: st.DrawFn, kind: str, most: int = 9) -> Case:
    """A question of a kind, dealt out to three tables."""
    asked = draw(_asked(kind, most))
    query, given = asked if isinstance(asked, tuple) else (asked.query, list(asked.rows))
    query = {"within": "1 day", **query} if kind != "match_recognize" else dict(query)
    columns = _TYPES[kind]
    rows = [{name: cell for name, cell in row.items() if name not in ("sequence", "event_id")} for row in given]
    if kind in ("automaton", "match_recognize"):  # their patterns name no type
        for row in rows:
            row["type"] = draw(st.sampled_from("TUV"))
    types = {one: draw(st.sampled_from(TABLES)) for one in types_in(query, rows)}
    big = any(isinstance(cell, int) and abs(cell) > 2**40 for row in rows for cell in row.values())
    numbers = [] if big else [name for name, one in columns.items() if pa.types.is_int64(one)]
    tables = tuple(draw(_tables(name, list(types.values()).count(name), list(columns), numbers)) for name in TABLES)
    used = [table for table in tables if table.name in types.values()]
    for name in columns:  # of one type at least it is a column
        if used and all(name in table.absent for table in used):
            tables = tuple(_with(table, name) for table in tables)
    numbered = draw(st.booleans()) and "event_id" not in str(query)
    by_name = {table.name: table for table in tables}
    free = {table: draw(st.permutations(range(1, 16) if numbered else range(10, 25))) for table in TABLES}
    for row in rows:
        table = by_name[types[row["type"]]]
        row |= {"table": table.name, "own": free[table.name].pop(), "seq": draw(st.integers(0, 3))}
        row |= dict.fromkeys(table.absent)
        if kind in ("trends", "automaton"):
            row["seq"] = row["seq"] * 100 + row["own"]
    names = sorted({table.name for table in used})
    choices: list[Any] = [None, None, draw(st.permutations(names))]
    choices += ["sequence"] if used and all(table.seq for table in used) else []
    watermark = asked.watermark if isinstance(asked, automata.Case) else None
    ties = draw(st.sampled_from(choices))
    others = tuple(draw(_other(query, choices)) for _ in range(draw(st.sampled_from((0, 0, 1, 3)))))
    return Case(query, tables, types, draw(st.permutations(rows)), columns, ties, watermark, numbered, others)


@st.composite
def _other(draw: st.DrawFn, query: Mapping[str, Any], choices: Sequence[Any]) -> dict[str, Any]:
    """Of another pattern over the same tables: its `ties`, and a condition more."""
    keys: dict[str, Any] = {"ties": draw(st.sampled_from(choices))}
    if query["kind"] in ("trends", "matches"):
        keys["where"] = [*query.get("where", ()), draw(local(query["pattern"]))]
    return keys


@st.composite
def _tables(draw: st.DrawFn, name: str, types: int, columns: list[str], numbers: list[str]) -> Table:
    renamed = {column: f"{column}_of_{name}" if draw(st.integers(0, 2)) == 0 else column for column in columns}
    doubles = frozenset(column for column in numbers if draw(st.integers(0, 4)) == 0)
    absent = frozenset(column for column in columns if draw(st.integers(0, 9)) == 0 and column != "start")
    typed = types != 1 or draw(st.booleans())
    return Table(name, typed, draw(st.booleans()), draw(st.booleans()), renamed, doubles, absent)


def _with(table: Table, name: str) -> Table:
    return Table(table.name, table.typed, table.seq, table.texts, table.names, table.doubles, table.absent - {name})


def _micros(cell: Any) -> int:
    return int(Fraction(cell) * 1_000_000)


def _cell(name: str, cell: Any) -> Any:
    return _micros(cell) if name == "start" and cell is not None and not isinstance(cell, datetime) else cell


def own_tables(case: Case) -> tuple[dict[str, pa.Table], dict[str, EventSchema], dict[str, Any]]:
    """The tables, their schemas, and `sources`."""
    tables, schemas, sources = {}, {}, dict[str, Any]()
    for table in case.tables:
        name = table.name
        if name not in case.types.values():
            continue
        rows = [row for row in case.rows if row["table"] == name]
        ids = [str(row["own"]) if table.texts else row["own"] for row in rows]
        columns = {
            f"id_{name}": pa.array(ids, pa.string() if table.texts else pa.int32()),
            f"at_{name}": pa.array([_micros(row["time"]) for row in rows], TIME),
        }
        if table.typed:
            columns[f"kind_{name}"] = pa.array([row["type"].lower() for row in rows], pa.string())
        if table.seq:
            columns[f"seq_{name}"] = pa.array([row["seq"] for row in rows], pa.int64())
        for column, kind in case.columns.items():
            if column not in table.absent:
                kind = pa.float64() if column in table.doubles else kind
                columns[table.names[column]] = pa.array([_cell(column, row.get(column)) for row in rows], kind)
        tables[name] = pa.table(columns)
        types = f"kind_{name}" if table.typed else ""
        known = dict(schema_of(tables[name], event_time=f"at_{name}", roles=("event_time",)).columns)
        sequence = f"seq_{name}" if table.seq else None
        schemas[name] = EventSchema(known, f"id_{name}", f"at_{name}", types, sequence)
        mapped: dict[str, Any] = {
            column: own for column, own in table.names.items() if own != column and column not in table.absent
        }
        mapped |= dict.fromkeys(sorted(table.absent))
        for one, of in case.types.items():
            if of == name:
                entry: dict[str, Any] = {"source": name, "columns": mapped}
                sources[one] = entry | ({"type": one.lower()} if table.typed else {})
    return tables, schemas, sources


def union_by_loop(case: Case) -> tuple[pa.Table, dict[str, str]]:
    """The one table, row by row, with the place of each event as its `sequence`; and the ids that results have, by
    those of this table. In kind matches an id is no order."""
    by_name = {table.name: table for table in case.tables}
    used = sorted(set(case.types.values()))
    order = list(case.ties) if isinstance(case.ties, list | tuple) else used
    own_ids = {name: str if table.texts else int for name, table in by_name.items()}
    ids = sorted((row["table"], own_ids[row["table"]](row["own"])) for row in case.rows)
    rows, shown = [], {}
    for row in case.rows:
        table = by_name[row["table"]]
        written = f"{table.name}:{row['own']}"
        name = f"{ids.index((table.name, own_ids[table.name](row['own']))):04}" if case.numbered else written
        shown[name] = written
        within = row["seq"] if table.seq else 0
        place = (within, used.index(table.name)) if case.ties == "sequence" else (order.index(table.name), within)
        own = 0 if case.query["kind"] == "matches" else ids.index((table.name, own_ids[table.name](row["own"])))
        rows.append((row, table, name, (*place, own)))
    places = sorted({place for _, _, _, place in rows})
    columns = {
        "event_id": pa.array([name for _, _, name, _ in rows], pa.string()),
        "event_time": pa.array([_micros(row["time"]) for row, _, _, _ in rows], TIME),
        "event_type": pa.array([row["type"] for row, _, _, _ in rows], pa.string()),
        "event_source": pa.array([table.name for _, table, _, _ in rows], pa.string()),
        "place": pa.array([places.index(place) for _, _, _, place in rows], pa.int64()),
    }
    for column, kind in case.columns.items():
        mixed = any(column in by_name[name].doubles and column not in by_name[name].absent for name in used)
        cells = [_cell(column, row.get(column)) for row, _, _, _ in rows]
        columns[column] = pa.array(cells, pa.float64() if mixed else kind)
    return pa.table(columns), shown


def answers(case: Case) -> tuple[Any, Any]:
    """The rows of both, in an order of their own, or the codes of the errors."""
    tables, schemas, sources = own_tables(case)
    table, shown = union_by_loop(case)
    query = {**case.query, "sources": sources} | ({} if case.ties is None else {"ties": case.ties})
    several = _answer(query, schemas, tables, case.watermark)
    known = tuple(sorted(case.types))
    one = schema_of(table, sequence="place")
    one = EventSchema(dict(one.columns), sequence="place", types=known)
    hidden = ("match_id",) if case.numbered and case.query["kind"] == "matches" else ()
    expected = _answer(case.query, one, table, case.watermark)
    return _plain(expected, hidden, shown), _plain(several, hidden, {})


def together(case: Case) -> tuple[list[Any], list[Any]]:
    """What the pattern and the others of a case give alone, and what they give in one batch."""
    tables, schemas, sources = own_tables(case)
    plans = []
    for keys in ({"ties": case.ties}, *case.others):
        query = {name: value for name, value in {**case.query, "sources": sources, **keys}.items() if value is not None}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                plans.append(compile_query(query, schemas))
            except PatternErrors:
                continue
    alone = [_run(plan, tables, case.watermark) for plan in plans]
    answers = dict(run_plans(plans, tables, None, case.watermark)) if plans else {}
    both = [answers[number] for number in range(len(plans))]
    return [_plain(one, (), {}) for one in alone], [
        _plain(f"refused: {one.code}" if isinstance(one, TrendlakeError) else one, (), {}) for one in both
    ]


def _run(plan: Any, tables: Any, watermark: int | None) -> Any:
    try:
        return run_plan(plan, tables, None, watermark)
    except TrendlakeError as refusal:
        return f"refused: {refusal.code}"


def _answer(query: Any, schema: Any, events: Any, watermark: int | None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return run_plan(compile_query(query, schema), events, None, watermark)
        except PatternErrors as refusal:
            return "refused: " + ", ".join(sorted({error.code for error in refusal.errors}))
        except TrendlakeError as refusal:
            return f"refused: {refusal.code}"


def _plain(answer: Any, hidden: tuple[str, ...], shown: Mapping[str, str]) -> Any:
    if isinstance(answer, str):
        return answer

    def cell(value: Any) -> str:
        if isinstance(value, list):
            return str([cell(one) for one in value])
        if _finite(value) and value == int(value):
            return repr(int(value))
        return repr(shown.get(value, value) if isinstance(value, str) else value)

    names = sorted(name for name in answer.column_names if name not in hidden and name[:3] not in _OWN)
    return names, sorted([cell(row[name]) for name in names] for row in answer.to_pylist())


_OWN = ("at_", "id_", "kin", "seq", "pla")
"""How the names of columns begin that one table alone has, or the union of the loop: `SELECT *` may list them."""


def _finite(value: Any) -> bool:
    return isinstance(value, float) and value - value == 0


def disagreement(case: Case, tally: SourcesTally) -> list[str]:
    """How the two answers differ; nothing where they do not."""
    expected, actual = answers(case)
    kind = case.query["kind"]
    tally.counts[f"of kind {kind}"] += 1
    what = "refused" if isinstance(expected, str) else "with rows" if expected[1] else "without rows"
    tally.counts[what] += 1
    if expected == actual and case.others:
        expected, actual = together(case)
        tally.counts["together with others"] += 1
    return [] if expected == actual else [f"expected {expected}", f"found {actual}"]


def described(case: Case) -> str:
    """The question as text: the query with `sources`, and the tables."""
    tables, _, of_types = own_tables(case)
    query = {**case.query, "sources": of_types, "ties": case.ties}
    return "\n".join([str(query), *(f"{name}: {table.to_pylist()}" for name, table in tables.items())])


def any_cases(most: int = 9) -> st.SearchStrategy[Case]:
    """Questions of all kinds."""
    return st.sampled_from(KINDS).flatmap(lambda kind: cases(kind, most))
