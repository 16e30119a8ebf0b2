"""Random automata, registers, lifetimes and streams; do the kernels give what the enumeration of runs gives?"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from tests.reference.automaton import OverflowedError, enumerate_runs, partial_runs
from tests.reference.automaton.runs import TooManyRunsError
from tests.reference.automaton.runs import cell as as_read
from tests.support.engines import TIME, to_table
from trendlake.cep_core import PatternErrors, PatternWarning, compile_query
from trendlake.cep_core.automaton.run.run import run_automaton
from trendlake.cep_core.automaton.run.trace import trace
from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.schema import schema_of

COLUMNS = {
    "x": pa.int64(),
    "y": pa.float64(),
    "s": pa.string(),
    "b": pa.bool_(),
    "t": TIME,
    "symbol": pa.string(),
    "sequence": pa.int64(),
}
FAMILY = {"tinyint": "int", "int": "int", "bigint": "int", "double": "double", "string": "string", "boolean": "boolean"}
FAMILY["timestamp"] = "timestamp"
NAMES = ("n", "m", "d", "w", "f", "u")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Automaton: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A question: the pattern, the events, another order of them, and how far the data is known to have come."""

    query: Automaton
    rows: list[dict[str, Any]]
    order: list[int]
    watermark: int | None


@dataclass
class AfaTally:
    """How many questions were compared, and what they held."""

    compared: int = 0
    with_rows: int = 0
    overflowed: int = 0
    too_many: int = 0
    refused: int = 0
    seen: dict[str, int] = field(default_factory=dict)

    def lines(self) -> list[str]:
        first = (
            f"{self.compared} compared ({self.with_rows} with rows, {self.overflowed} that overflow), "
            f"{self.too_many} too large to enumerate, {self.refused} that have no meaning"
        )
        return [first, "  of them with " + ", ".join(f"{name}: {count}" for name, count in sorted(self.seen.items()))]


class Writer:
    """Draws expressions as text. `fields`: the register's names and families; `event`: whether e may be read."""

    def __init__(self, draw: st.DrawFn, fields: Mapping[str, str], event: bool) -> None:
        self.draw = draw
        self.fields = fields
        self.event = event

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def leaf(self, kind: str) -> str:
        of = {"int": ["e.x"], "double": ["e.y"], "string": ["e.s"], "boolean": ["e.b"], "timestamp": ["e.t"]}[kind]
        literals = {
            "int": ["0", "1", "2", "100"],
            "double": ["0.5", "1.5", "0.0"],
            "string": ["'a'", "'B'"],
            "boolean": ["TRUE", "FALSE"],
            "timestamp": ["TIMESTAMP '1970-01-01T00:00:03Z'"],
        }[kind]
        mine = [name for name, family in self.fields.items() if family == kind]
        return str(self.pick(*literals, *mine, *mine, *(of if self.event else [])))

    def value(self, kind: str, depth: int = 2) -> str:
        if depth == 0 or self.draw(st.integers(0, 2)) == 0:
            return self.leaf(kind)
        a, b = self.value(kind, depth - 1), self.value(kind, depth - 1)
        if kind == "int":
            forms = [f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} % {b})", f"abs({a})", f"(-({a}))"]
            forms += [f"{name}({a}, {b})" for name in ("least", "greatest", "coalesce")]
            return str(self.pick(*forms, *(f"{name}({self.leaf('timestamp')})" for name in ("hour", "dayofweek"))))
        if kind == "double":
            c = self.value("int", depth - 1)
            forms = [f"({a} + {b})", f"({a} - {c})", f"({a} * {b})", f"({a} / {c})", f"({a} % {b})", f"(-({a}))"]
            return str(self.pick(*forms, f"abs({a})", f"least({a}, {c})", f"coalesce({a}, {b})", f"greatest({a}, {b})"))
        if kind == "string":
            return str(self.pick(f"lower({a})", f"upper({a})", f"coalesce({a}, {b})", f"least({a}, {b})"))
        if kind == "timestamp":
            return str(self.pick(f"({a} + 2 seconds)", f"({a} - INTERVAL '1' MINUTE)", f"coalesce({a}, {b})"))
        return f"({self.condition(depth - 1)})"

    def compared(self, depth: int) -> str:
        kind = self.pick("int", "int", "double", "string", "timestamp", "mixed")
        a = self.value("int" if kind == "mixed" else kind, depth)
        b = self.value("double" if kind == "mixed" else kind, depth)
        return f"{a} {self.pick('=', '!=', '<', '<=', '>', '>=')} {b}"

    def part(self, depth: int) -> str:
        """A condition that is no AND."""
        kind = self.pick("int", "string")
        a, b, c = (self.value(kind, depth) for _ in range(3))
        form = self.draw(st.integers(0, 9))
        if form == 0 and depth:
            return f"({self.condition(depth - 1)} OR {self.condition(depth - 1)})"
        if form == 1 and depth:
            return f"NOT ({self.condition(depth - 1)})"
        if form == 2:
            return f"{a} IN ({b}, {c})"
        if form == 3:
            return f"NOT ({a} BETWEEN {b} AND {c})"
        if form == 4:
            return f"{a} IS {self.pick('', 'NOT ')}NULL"
        if form == 5:
            return f"{self.leaf('boolean')}"
        return self.compared(depth)

    def condition(self, depth: int = 2) -> str:
        return " AND ".join(self.part(depth) for _ in range(self.pick(1, 1, 1, 2)))


@st.composite
def queries(draw: st.DrawFn) -> Automaton:
    """A pattern of kind automaton, right in every part."""
    kinds = draw(
        st.lists(st.sampled_from(["tinyint", "int", "bigint", "double", "string", "boolean", "timestamp"]), max_size=3)
    )
    register = {name: {"type": kind, "init": draw(_init(kind))} for name, kind in zip(NAMES, kinds, strict=False)}
    fields = {name: FAMILY[one["type"]] for name, one in register.items()}
    count = draw(st.integers(2, 4))
    states = [f"q{i}" for i in range(count)]
    arcs = [draw(_arc(states, fields, kinds, first=i == 0)) for i in range(draw(st.integers(2, 6)))]
    reached = {"q0"}
    for _ in states:
        reached |= {arc["to"] for arc in arcs if arc["from"] in reached}
    arcs = [arc for arc in arcs if arc["from"] in reached]
    targets = sorted({arc["to"] for arc in arcs})
    query: Automaton = {
        "kind": "automaton",
        "start": "q0",
        "arcs": arcs,
        "within": f"{draw(st.integers(1, 9))} seconds",
    }
    query["final"] = draw(st.lists(st.sampled_from(targets), min_size=1, max_size=2, unique=True))
    if not any("at" in arc for arc in arcs) and draw(st.integers(0, 2)) == 0:
        query["output"] = "non_overlap"
    if register:
        query["register"] = register
    if draw(st.booleans()):
        query["partition_by"] = draw(st.sampled_from((["symbol"], ["symbol"], ["y"], ["symbol", "y"])))
    return query


def _init(kind: str) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.none(),
        {
            "tinyint": st.sampled_from([0, 1, 100, -128]),
            "int": st.sampled_from([0, 1, 2**31 - 2]),
            "bigint": st.sampled_from([0, 1, 2**62]),
            "double": st.sampled_from([0.0, 0.5, -1.5]),
            "string": st.sampled_from(["a", "b", "B"]),
            "boolean": st.booleans(),
            "timestamp": st.just("1970-01-01T00:00:02Z"),
        }[kind],
    )


@st.composite
def _arc(draw: st.DrawFn, states: list[str], fields: Mapping[str, str], kinds: list[str], *, first: bool) -> Automaton:
    how = "event" if first else draw(st.sampled_from(["event"] * 5 + ["ignore", "ignore", "epsilon", "window_end"]))
    i = 0 if first else draw(st.integers(0, len(states) - 1))
    j = draw(st.integers(0, len(states) - 1))
    arc: Automaton = {"from": states[i], "to": states[i if how == "ignore" else j]}
    write = Writer(draw, fields, how in ("event", "ignore"))
    if draw(st.integers(0, 3)):
        arc["when"] = write.condition(draw(st.sampled_from([0, 1, 1, 2])))
    sets = how != "ignore" and fields and draw(st.booleans()) and not (how == "epsilon" and j <= i)
    if sets:
        name = draw(st.sampled_from(sorted(fields)))
        grows = fields[name] == "int" and draw(st.booleans())
        arc["set"] = {
            name: f"{name} {draw(st.sampled_from(['+ 1', '+ 100', '* 2', '- 1']))}"
            if grows
            else write.value(fields[name], 1)
        }
    if how == "ignore":
        arc["ignore"] = True
    if how == "epsilon":
        arc["epsilon"] = True
    if how == "window_end":
        arc["at"] = "window_end"
    if draw(st.integers(0, 4)) == 0:
        low, high = sorted(draw(st.lists(st.integers(0, 12), min_size=2, max_size=2, unique=True)))
        if draw(st.booleans()):
            arc["valid_from"] = (EPOCH + timedelta(seconds=low)).isoformat()
        if draw(st.booleans()):
            arc["valid_to"] = (EPOCH + timedelta(seconds=high)).isoformat()
    return arc


@st.composite
def streams(draw: st.DrawFn, most: int) -> list[dict[str, Any]]:
    """Events with ties in time, NULLs, two partitions; in order of id."""
    sequenced = draw(st.booleans())
    return [
        {
            "id": f"e{i:02}",
            "type": "T",
            "time": draw(st.integers(0, 10)),
            "x": draw(st.sampled_from([None, -2, 0, 1, 1, 2, 3])),
            "y": draw(st.sampled_from([None, -0.5, 0.0, -0.0, 1.5, float("nan")])),
            "s": draw(st.sampled_from([None, "a", "b", "B"])),
            "b": draw(st.sampled_from([None, True, True, False])),
            "t": draw(st.sampled_from([None, EPOCH + timedelta(seconds=3), EPOCH + timedelta(days=1, hours=5)])),
            "symbol": draw(st.sampled_from(["P", "P", "P", "Q", None])),
            **({"sequence": draw(st.integers(0, 2))} if sequenced else {}),
        }
        for i in range(draw(st.integers(0, most)))
    ]


@st.composite
def cases(draw: st.DrawFn, most: int = 8) -> Case:
    """A question."""
    rows = draw(streams(most))
    watermark = draw(st.sampled_from([None, None, 12_000_000, 30_000_000]))
    return Case(draw(queries()), rows, draw(st.permutations(range(len(rows)))), watermark)


def rows_of(table: pa.Table, plan: Any, watermark: int | None) -> list[dict[str, Any]]:
    """The kernels' rows; times in microseconds."""
    result = run_automaton(plan, table, watermark=watermark)
    for name in result.column_names:
        if pa.types.is_timestamp(result.schema.field(name).type):
            index = result.schema.get_field_index(name)
            result = result.set_column(index, name, result.column(name).cast(pa.int64()))
    rows: list[dict[str, Any]] = result.to_pylist()
    return rows


def compiled(case: Case) -> tuple[pa.Table, Any]:
    """The events, in another order, and the plan."""
    sequence = "sequence" if case.rows and "sequence" in case.rows[0] else None
    types = {name: kind for name, kind in COLUMNS.items() if name != "sequence" or sequence}
    table = to_table([case.rows[i] for i in case.order], types)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)  # an arc that can never fire is no mistake here
        return table, compile_query(case.query, schema_of(table, sequence=sequence))


def in_microseconds(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The enumeration's view of the rows: times are whole numbers."""
    return [
        {
            name: (cell - EPOCH) // timedelta(microseconds=1) if isinstance(cell, datetime) else cell
            for name, cell in row.items()
        }
        for row in rows
    ]


def disagreement(case: Case, tally: AfaTally) -> list[str]:
    """How the kernels' answer, and the partial runs they held, differ from the enumeration's."""
    overflows = False
    rows = in_microseconds(case.rows)
    try:
        expected = enumerate_runs(case.query, rows, case.watermark)
        held = partial_runs(case.query, rows)
    except OverflowedError:
        overflows = True
    except TooManyRunsError:
        tally.too_many += 1
        assume(False)
    try:
        table, plan = compiled(case)
    except PatternErrors as refusal:
        if "no arcs lead" not in str(refusal) and "cycle of epsilon" not in str(refusal):
            return [f"the checks refuse: {refusal}"]
        tally.refused += 1
        assume(False)
    tally.compared += 1
    _count(case, tally)
    try:
        got = rows_of(table, plan, case.watermark)
    except BadEventsError as error:
        if overflows and "overflows" in str(error):
            tally.overflowed += 1
            return []
        return [f"the kernels refuse: {error}"]
    if overflows:
        return ["a whole number overflows, which the kernels do not say"]
    tally.with_rows += bool(expected)
    wanted, seen = {_exact(row) for row in expected}, {_exact(row) for row in got}
    lines = [f"{key} missing" for key in sorted(wanted - seen, key=repr)]
    lines += [f"{key} not expected" for key in sorted(seen - wanted, key=repr)]
    if len(seen) < len(got):
        lines.append("a row comes twice")
    for intervals in (True, False):
        runs = unfolded(case, table, plan, intervals)
        lines += [f"partial run {run} missing" for run in sorted(_keys(held) - runs, key=repr)]
        lines += [f"partial run {run} not expected" for run in sorted(runs - _keys(held), key=repr)]
    return lines


def answer(query: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The enumeration's rows; none where a whole number overflows."""
    try:
        return enumerate_runs(query, in_microseconds(rows))
    except OverflowedError:
        return []


def _count(case: Case, tally: AfaTally) -> None:
    arcs = case.query["arcs"]
    traits = {
        "epsilon": any("epsilon" in arc for arc in arcs),
        "ignore": any("ignore" in arc for arc in arcs),
        "window_end": any("at" in arc for arc in arcs),
        "lifetimes": any("valid_from" in arc or "valid_to" in arc for arc in arcs),
        "registers": "register" in case.query,
    }
    for name, so in traits.items():
        tally.seen[name] = tally.seen.get(name, 0) + so


def _exact(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple((name, type(cell).__name__, cell) for name, cell in sorted(row.items()))


def _keys(held: set[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    return {(first, at, state, tuple((type(v).__name__, v) for v in register)) for first, at, state, register in held}


def unfolded(case: Case, table: pa.Table, plan: Any, intervals: bool) -> set[tuple[Any, ...]]:
    """Partial runs event by event, from what the trace keeps."""
    if not case.rows:
        return set()
    remaining = trace(plan, table, intervals=intervals)
    at = {row["id"]: row for row in case.rows}
    named = case.query.get("partition_by", ())
    ordered = sorted(case.rows, key=lambda row: (row["time"], row.get("sequence", 0), row["id"]))
    names = list(case.query.get("register", {}))
    runs = set()
    for row in remaining.to_pylist():
        mine = [r["id"] for r in ordered if all(as_read(r[k]) == as_read(at[row["first"]][k]) for k in named)]
        register = []
        for name in names:
            cell = row[name]
            cell = (cell - EPOCH) // timedelta(microseconds=1) if isinstance(cell, datetime) else cell
            register.append((type(cell).__name__, cell))
        for event in mine[mine.index(row["since"]) : mine.index(row["until"]) + 1]:
            runs.add((row["first"], event, row["state"], tuple(register)))
    return runs
