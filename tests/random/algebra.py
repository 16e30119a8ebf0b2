"""Random CEL over random events; do the kernels give what the sets by definition are?"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from tests.reference.algebra import OverflowedError, TooManyEventsError, reference
from tests.support.engines import TIME
from tests.support.intervals import plain, table_of
from trendlake.cep_core import PatternErrors, PatternWarning, compile_query, run_plan
from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.schema import schema_of

COLUMNS: Mapping[str, pa.DataType] = {
    "x": pa.int64(),
    "n": pa.int64(),
    "y": pa.float64(),
    "s": pa.string(),
    "b": pa.bool_(),
    "k": pa.string(),
    "start": TIME,
}
KINDS: Mapping[str, type] = {"x": int, "n": int, "y": float, "s": str, "b": bool, "k": str, "start": int}
BASE = {"event_id": "string", "x": "int", "n": "int", "y": "double", "s": "string", "b": "boolean", "k": "string"}
LITERALS = {
    "int": ("0", "1", "2", "-1"),
    "double": ("0.5", "1.5", "-1.0"),
    "string": ("'a'", "'b'", "'ab'", "''"),
    "boolean": ("TRUE", "FALSE"),
    "duration": ("1 second", "2 seconds", "3 seconds", "INTERVAL '0' SECOND"),
}
COMPARE = ("=", "!=", "<", "<=", ">", ">=")

Attributes: TypeAlias = dict[str, str]
Leaves: TypeAlias = list[tuple[str, str]]
"""(text, family) of what an expression may read."""


@dataclass(frozen=True)
class Case:
    """A question, the events, and another order of them."""

    query: dict[str, Any]
    rows: list[dict[str, Any]]
    order: list[int]


@dataclass
class AlgebraTally:
    """How many questions were compared, and what they held."""

    compared: int = 0
    with_rows: int = 0
    overflowed: int = 0
    too_many: int = 0
    seen: dict[str, int] = field(default_factory=dict)

    def lines(self) -> list[str]:
        first = f"{self.compared} compared ({self.with_rows} with rows, {self.overflowed} that overflow)"
        return [
            f"{first}, {self.too_many} too large to enumerate",
            "  of them with " + ", ".join(f"{name}: {count}" for name, count in sorted(self.seen.items())),
        ]


class Writer:
    """Draws CEL text. `partition`: columns of the partition; `depth`: operators within one another."""

    def __init__(self, draw: st.DrawFn, partition: Sequence[str], big: bool) -> None:
        self.draw = draw
        self.partition = tuple(partition)
        self.big = big
        self.published: dict[str, Attributes] = {}
        self.base = {name: kind for name, kind in BASE.items() if name not in partition}

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(0, one_in - 1)) == 0

    # --- expressions
    def leaf(self, kind: str, leaves: Leaves) -> str:
        mine = [text for text, family in leaves if family == kind]
        return str(self.pick(*LITERALS[kind], *mine, *mine, *mine))

    def divisor(self, leaves: Leaves) -> str:
        """A whole number; 0 only as an attribute's value: the reference tells kinds by values, and n / 0 has none."""
        leaf = self.leaf("int", leaves)
        return "2" if leaf == "0" else leaf

    def value(self, kind: str, leaves: Leaves, depth: int = 1) -> str:
        if depth == 0 or self.chance(2) or kind in ("boolean", "duration"):
            return self.leaf(kind, leaves)
        a, b = self.value(kind, leaves, depth - 1), self.value(kind, leaves, depth - 1)
        forms = {
            "int": (f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} % {b})", f"abs({a})", f"least({a}, {b})"),
            "double": (f"({a} + {b})", f"({a} * {b})", f"({a} / {self.divisor(leaves)})", f"coalesce({a}, {b})"),
            "string": (f"upper({a})", f"lower({a})", f"coalesce({a}, {b})", f"greatest({a}, {b})"),
        }
        if self.big and kind == "int" and self.chance(4):
            return f"({a} * 3037000500 * {b} * 3037000500)"
        return str(self.pick(*forms[kind]))

    def part(self, leaves: Leaves, depth: int) -> str:
        kind = self.pick("int", "int", "double", "string", "duration", "mixed")
        a = self.value("int" if kind == "mixed" else kind, leaves)
        b = self.value("double" if kind == "mixed" else kind, leaves)
        form = self.draw(st.integers(0, 11))
        if form == 0 and depth:
            return f"({self.condition(leaves, depth - 1)} OR {self.condition(leaves, depth - 1)})"
        if form == 1:
            return f"NOT ({a} {self.pick(*COMPARE)} {b})"
        if form == 2:
            return f"{a} IS {self.pick('', 'NOT ')}NULL"
        if form == 3 and kind != "mixed":
            return f"{a} IN ({b}, {self.leaf(kind, leaves)})"
        if form == 4:
            return self.leaf("boolean", leaves)
        if form == 5:
            return f"contains({self.leaf('string', leaves)}, {self.leaf('string', leaves)})"
        if form == 6:
            return f"{a} {self.pick('', 'NOT ')}BETWEEN {b} AND {b}"
        return f"{a} {self.pick(*COMPARE)} {b}"

    def condition(self, leaves: Leaves, depth: int = 1) -> str:
        return " AND ".join(self.part(leaves, depth) for _ in range(self.pick(1, 1, 2)))

    def of_one(self, attributes: Attributes, *, decorated: bool = False) -> Leaves:
        leaves = [(name, kind) for name, kind in attributes.items()]
        if decorated:
            leaves += [(f"$1.{name}", kind) for name, kind in attributes.items()]
        return [*leaves, ("DUR", "duration"), *((name, BASE[name]) for name in self.partition if name in BASE)]

    def of_two(self, left: Attributes, right: Attributes, *, fold: bool) -> Leaves:
        leaves = [(f"$1.{name}", kind) for name, kind in left.items()]
        leaves += [(f"$2.{name}", kind) for name, kind in right.items()] * 2
        only = {name: kind for name, kind in left.items() if name not in right}
        leaves += list(only.items())
        if fold:
            leaves += [(f"$.{name}", kind) for name, kind in left.items()] * 2
        else:
            leaves += [(name, kind) for name, kind in right.items() if name not in left]
        durations = ["DUR", "$1.DUR", "$2.DUR", *(["$.DUR"] if fold else [])]
        parts = [(f"{self.pick('', '$1.', '$2.')}{name}", BASE[name]) for name in self.partition if name in BASE]
        return [*leaves, *((name, "duration") for name in durations), *parts]

    def pair_part(self, left: Attributes, right: Attributes, *, fold: bool) -> str:
        """A comparison of two attributes, for which there are passes of their own."""
        pairs = [
            (a, b)
            for a, kind in left.items()
            for b, other in right.items()
            if (kind == other and kind != "boolean") or {kind, other} == {"int", "double"}
        ]
        if not pairs:
            return f"DUR {self.pick(*COMPARE)} {self.pick(*LITERALS['duration'])}"
        a, b = self.pick(*pairs)
        side = self.pick("$", "$", "$1") if fold else "$1"
        op = self.pick("=", "=", "=", *COMPARE)
        texts = f"{side}.{a}", f"$2.{b}"
        return f" {op} ".join(texts if self.chance(2) else reversed(texts))

    def pair_condition(self, left: Attributes, right: Attributes, *, fold: bool) -> str:
        parts = []
        for _ in range(self.pick(0, 1, 1, 1, 2, 2, 3)):
            if self.chance(3):
                parts.append(self.part(self.of_two(left, right, fold=fold), 1))
            elif self.chance(6):
                parts.append(f"DUR {self.pick(*COMPARE)} {self.pick(*LITERALS['duration'])}")
            else:
                parts.append(self.pair_part(left, right, fold=fold))
        return " AND ".join(parts)

    # --- streams
    def source(self) -> tuple[str, Attributes]:
        """A base stream, with few attributes mostly, or one that is published."""
        if self.published and self.chance(2):
            name = self.pick(*self.published)
            return name, dict(self.published[name])
        text = self.pick("A", "A", "A", "B", "EVENTS")
        if self.chance(6):
            return text, {**self.base, "event_type": "string", "event_time": "timestamp"}
        names = self.draw(st.lists(st.sampled_from(sorted(self.base)), min_size=1, max_size=3, unique=True))
        return f"(SELECT {', '.join(names)} FROM {text})", {name: self.base[name] for name in names}

    def stream(self, depth: int) -> tuple[str, Attributes]:
        if depth == 0:
            return self.source()
        form = self.pick("filter", "select", "next", "next", "fold", "fold", "union", "aggregate", "source")
        return getattr(self, f"_{form}")(depth)  # type: ignore[no-any-return]

    def _source(self, depth: int) -> tuple[str, Attributes]:
        return self.source()

    def _filter(self, depth: int) -> tuple[str, Attributes]:
        text, attributes = self.stream(depth - 1)
        return f"FILTER{{{self.condition(self.of_one(attributes, decorated=True))}}}({_bare(text)})", attributes

    def _select(self, depth: int) -> tuple[str, Attributes]:
        text, attributes = self.stream(depth - 1)
        items, result = [], {}
        if self.chance(4):
            items, result = ["*"], dict(attributes)
        leaves = self.of_one(attributes)
        for number in range(self.draw(st.integers(0 if items else 1, 2))):
            kind = self.pick("int", "double", "string", "duration")
            name = self.pick("v", "w", "x", "y", "s") if number else self.pick("v", "x", "y")
            if name in result or name in self.partition:
                continue
            items.append(f"{self.value(kind, leaves)} AS {name}")
            result[name] = kind
        for name in self.draw(st.lists(st.sampled_from(sorted(attributes) or ["?"]), max_size=2, unique=True)):
            if name not in result and name != "?":
                items.append(name)
                result[name] = attributes[name]
        if not items:
            return text, attributes
        return f"(SELECT {', '.join(items)} FROM {text})", result

    def _two(self, depth: int) -> tuple[str, Attributes, str, Attributes]:
        left, a = self.stream(depth - 1)
        right, b = self.stream(self.pick(0, 0, depth - 1))
        return left, a, right, b

    def _joined(self, text: str, names: Mapping[str, str], a: Attributes, b: Attributes) -> tuple[str, Attributes]:
        """The output of NEXT or FOLD, if its names are different."""
        result = {names[name]: kind for name, kind in a.items()} | b
        assume(len(result) == len(a) + len(b))
        return text, result

    def _next(self, depth: int) -> tuple[str, Attributes]:
        left, a, right, b = self._two(depth)
        condition = self.pair_condition(a, b, fold=False)
        asked = f"{{{condition}}}" if condition or self.chance(5) else ""
        return self._joined(f"({left} NEXT{asked} {right})", _moved(a, b), a, b)

    def _fold(self, depth: int) -> tuple[str, Attributes]:
        left, a = self.stream(depth - 1)
        numbers = {name: kind for name, kind in a.items() if kind in ("int", "double", "string")}
        assume(numbers)
        right_names = self.draw(st.lists(st.sampled_from(sorted(numbers)), min_size=1, max_size=2, unique=True))
        if all(self.base.get(name) == a[name] for name in right_names) and self.chance(2):
            right = f"(SELECT {', '.join(right_names)} FROM {self.pick('A', 'A', 'B', 'EVENTS')})"
        else:
            source, own = self.source()
            items = [
                name if own.get(name) == kind else f"{self.value(kind, self.of_one(own))} AS {name}"
                for name, kind in a.items()
                if name in right_names
            ]
            right = f"(SELECT {', '.join(items)} FROM {source})"
        b = {name: a[name] for name in a if name in right_names}
        computed: dict[str, str] = {}
        begun = [name for name in a if name not in b]
        values = []
        if self.chance(2):
            name = self.pick("c", "m")
            if name not in a:
                kind = self.pick("int", "int", "double", "string")
                first = self.value(kind, self.of_one(a), 0)
                left, a = f"(SELECT *, {first} AS {name} FROM {left})", {**a, name: kind}
                begun.append(name)
        for name in begun:
            if a[name] in ("int", "double", "string") and self.chance(2):
                computed[name] = a[name]
        leaves = self.of_two(a, b, fold=True)
        for name in list(computed):
            kind = a[name]
            if kind == "int" and self.chance(4):
                computed[name] = kind = "double"
        now = {**a, **computed}
        leaves = [
            (text, now.get(text.removeprefix("$."), kind) if text.startswith("$.") or "." not in text else kind)
            for text, kind in leaves
        ]
        for name, kind in computed.items():
            simple = {"int": f"$.{name} + 1", "double": f"$.{name} + 0.5", "string": self.leaf("string", leaves)}
            values.append(f"{simple[kind] if self.chance(2) else self.value(kind, leaves)} AS {name}")
        keep = self.pair_condition(now, b, fold=True) if not self.chance(3) else ""
        go = self.pair_condition(now, b, fold=True) if not self.chance(3) else ""
        text = f"({left} FOLD{{{keep}, {go}{', ' if values or self.chance(2) else ''}{', '.join(values)}}} {right})"
        return self._joined(text, _moved(a, b), now, b)

    def _union(self, depth: int) -> tuple[str, Attributes]:
        left, a, right, b = self._two(depth)
        items, result = [], {}
        leaves = self.of_one(b)
        for name, kind in reversed(a.items()):
            if kind not in LITERALS:
                continue
            other = "int" if kind == "double" and self.chance(3) else kind
            items.append(name if b.get(name) == kind else f"{self.value(other, leaves, 0)} AS {name}")
            result[name] = kind
        assume(items)
        names = ", ".join(name for name in a if name in result)
        return f"((SELECT {names} FROM {left}) UNION (SELECT {', '.join(items)} FROM {right}))", dict(
            reversed(result.items())
        )

    def _aggregate(self, depth: int) -> tuple[str, Attributes]:
        text, attributes = self.stream(depth - 1)
        leaves = self.of_one(attributes)
        items, result = [], {}
        for name in self.pick(("x",), ("x", "y"), ("v", "w", "s")):
            if name in self.partition:
                continue
            kind = self.pick("int", "double", "string")
            function = self.pick("COUNT(*)", "COUNT", "MIN", "MAX", "SUM", "AVG", "MAX_BY", "MIN_BY")
            value = self.value(kind, leaves)
            if function in ("SUM", "AVG") and kind == "string":
                function = "MAX"
            if function == "COUNT(*)":
                items.append(f"COUNT(*) AS {name}")
            elif function.endswith("_BY"):
                items.append(
                    f"{function}({value}, {self.value(self.pick('int', 'double', 'string'), leaves)}) AS {name}"
                )
            else:
                items.append(f"{function}({value}) AS {name}")
            result[name] = {"COUNT(*)": "int", "COUNT": "int", "AVG": "double"}.get(function, kind)
        assume(items)
        return f"(SELECT {', '.join(items)} FROM {text})", result

    def file(self) -> str:
        """The statements of a pattern."""
        statements = []
        for number in range(self.pick(0, 0, 1, 2)):
            text, attributes = self.stream(self.pick(1, 1, 2))
            statements.append(f"FROM {text} PUBLISH p{number}")
            self.published[f"p{number}"] = attributes
        text, attributes = self.stream(self.pick(1, 2, 2, 3))
        names = [name for name in attributes if name not in ("start", "end")]
        if self.chance(3) and names:
            chosen = self.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
            text = f"(SELECT {', '.join(chosen)} FROM {text})"
        return "\n".join([*statements, f"FROM {text}"])


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(SELECT") and text.endswith(")") and text.count("(SELECT") == 1 else text


def _moved(a: Mapping[str, str], b: Mapping[str, str]) -> dict[str, str]:
    """As the page says: what both have gets `_1`, and what is in its way, in turn."""
    names = dict.fromkeys(a, "")
    queue = [name for name in a if name in b]
    while queue:
        name = queue.pop()
        if names[name] == "":
            names[name] = f"{name}_1"
            queue += [names[name]] if names[name] in a else []
    return {name: given or name for name, given in names.items()}


@st.composite
def rows_of(draw: st.DrawFn, most: int, *, wide: bool, big: bool) -> list[dict[str, Any]]:
    whole = st.sampled_from((None, -1, 0, 1, 1, 2, 2, 3, *((2**62, -(2**63)) if big else ())))
    rows = []
    for number in range(draw(st.integers(0, most))):
        time = draw(st.integers(0, 8))
        length = draw(st.sampled_from((None, 0, 0, 1, 2, 4)))
        rows.append(
            {
                "id": f"e{number}",
                "type": draw(st.sampled_from("AAAB")),
                "time": time,
                "start": None if length is None or not wide else max(-5, time - length),
                "x": draw(whole),
                "n": draw(whole),
                "y": draw(st.sampled_from((None, -1.0, -0.0, 0.5, 1.5, 2.0, float("nan"), 0.1, 1e17))),
                "s": draw(st.sampled_from((None, "", "a", "b", "ab", "B"))),
                "b": draw(st.sampled_from((None, True, False))),
                "k": draw(st.sampled_from((None, "u", "u", "v"))),
            }
        )
    return rows


@st.composite
def cases(draw: st.DrawFn, most: int = 9) -> Case:
    """A pattern, events with ties, overlaps, NULL and NaN, and another order of them."""
    partition = draw(st.sampled_from(((), (), ("k",), ("k", "s"), ("x",), ("y",))))
    big = draw(st.integers(0, 19)) == 0
    wide = draw(st.booleans())
    writer = Writer(draw, partition, big)
    query: dict[str, Any] = {
        "kind": "algebra",
        "pattern": writer.file(),
        "within": draw(st.sampled_from(("2 seconds", "4 seconds", "4 seconds", "20 seconds"))),
    }
    if partition:
        query["partition_by"] = list(partition)
    if wide:
        query["interval_start"] = "start"
    rows = draw(rows_of(most, wide=wide, big=big))
    return Case(query, rows, draw(st.permutations(range(len(rows)))))


def compiled(case: Case) -> tuple[pa.Table, Any]:
    """The events, in another order, and the plan."""
    table = table_of([case.rows[i] for i in case.order], COLUMNS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)  # a statement that nothing reads is no mistake here
        return table, compile_query(case.query, schema_of(table))


def exact(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows as texts that tell types apart, sorted."""
    return sorted(str(sorted((name, repr(cell)) for name, cell in row.items())) for row in rows)


def answer(query: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The reference's rows; none where a whole number overflows."""
    try:
        return reference(query, rows, KINDS)
    except OverflowedError:
        return []


def disagreement(case: Case, tally: AlgebraTally) -> list[str]:
    """How the kernels' answer, whole and pane by pane, differs from the reference's."""
    overflows = False
    expected: list[dict[str, Any]] = []
    try:
        expected = reference(case.query, case.rows, KINDS)
    except OverflowedError:
        overflows = True
    except TooManyEventsError:
        tally.too_many += 1
        assume(False)
    try:
        table, plan = compiled(case)
    except PatternErrors as refusal:
        if {error.message for error in refusal.errors} != {"an expression cannot be computed: overflow"}:
            raise
        assume(False)  # a constant, which the reference computes where an event needs it only
    tally.compared += 1
    for name in ("NEXT", "FOLD", "UNION", "COUNT(*)", "SUM", "PUBLISH", "DUR"):
        tally.seen[name] = tally.seen.get(name, 0) + (name in case.query["pattern"])
    try:
        whole = plain(run_plan(plan, table))
    except BadEventsError as error:
        if ("overflows" in str(error) and "3037000500" in case.query["pattern"] + str(case.rows)) or overflows:
            tally.overflowed += 1
            return []  # which pairs are evaluated is tested by itself
        return [f"the kernels refuse: {error}"]
    if overflows:
        tally.overflowed += 1
        return []
    tally.with_rows += bool(expected)
    wanted, seen = exact(expected), exact(whole)
    lines = [f"{row} missing" for row in sorted(set(wanted) - set(seen))]
    lines += [f"{row} not expected" for row in sorted(set(seen) - set(wanted))]
    if len(set(seen)) < len(seen):
        lines.append("a row comes twice")
    if lines or not case.rows:
        return lines
    times = [row["time"] * 1_000_000 for row in case.rows]
    held = [plan.windows.holding(time) for time in times]
    paned: list[dict[str, Any]] = []
    for j in range(min(one[0] for one in held), max(one[-1] for one in held) + 1):
        low, high = plan.windows.span(range(j, j + 1))
        within = [low <= time < high for time in table["event_time"].cast(pa.int64()).to_pylist()]
        paned += plain(run_plan(plan, table.filter(pa.array(within, pa.bool_())), range(j, j + 1)))
    return [] if exact(paned) == seen else [f"pane by pane: {exact(paned)} in place of {seen}"]
