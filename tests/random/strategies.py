"""Hypothesis strategies for whole questions: a query of kind trends and a stream to ask it of."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa
from hypothesis import strategies as st

from tests.random import conditions
from tests.random.patterns import Drawn, drawn, patterns
from tests.reference.trends.shape import shape_of
from trendlake.cep_core.language.parse import parse_pattern

Question: TypeAlias = tuple[dict[str, Any], list[dict[str, Any]]]

COLUMNS = {"x": pa.int64(), "n": pa.int64(), "y": pa.float64(), "g": pa.string(), "h": pa.int64()}
"""The attributes of every stream, typed though a column may be all NULL."""

SELECTIONS = ("skip_till_next_match", "contiguous", "partition_contiguous")
ORIGINS = ("1970-01-01T00:00:03Z", "1969-12-31T23:59:55.5Z", "2000-01-01")
WINDOWS = (
    *[(60, None)] * 4,
    (20, None),
    (20, 5),
    (15, None),
    (8, None),
    (5, 2),
    (12, 4),
    (9, 3),
    (10, 7),
    (4, 6),
    (1, None),
)
"""(within, slide) in seconds; a stream lasts some 12 of them."""

ONE_WINDOW = {"within": "60 seconds", "origin": "1969-12-31T23:59:50Z"}

MEASURES = ("COUNT({v})", "MIN({v}.{a})", "MAX({v}.{a})", "SUM({v}.{a})", "AVG({v}.{a})")
CHOSEN = ("FIRST({v}.{a})", "LAST({v}.{a})", "MIN_BY({v}.{a}, {v}.{b})", "MAX_BY({v}.{a}, {v}.{b})")
OF_TRENDS = (
    *(f"{name}(LENGTH({of}))" for name in ("MIN", "MAX", "SUM", "AVG") for of in ("*", "{v}")),
    *(f"{name}(DURATION(*))" for name in ("MIN", "MAX", "SUM", "AVG")),
    *(f"COUNT(*) FILTER (WHERE LENGTH({of}) {op} {k})" for of, op, k in (("*", ">=", 2), ("*", "=", 3), ("*", "<", 3))),
    *(f"COUNT(*) FILTER (WHERE LENGTH({{v}}) {op} {k})" for op, k in ((">", 1), ("<=", 1), ("=", 2))),
    *["LONGEST(*)"] * 4,
)

_cells = {
    "x": st.sampled_from((-2, -1, 0, 1, 1, 2, 2, 3, 3, None)),
    "n": st.integers(-1, 2),
    "y": st.sampled_from((-1.5, -1.0, -0.25, 0.0, 0.5, 1.0, 1.25, 2.0, 2.0, None, float("nan"))),
    "g": st.sampled_from(("u", "u", "u", "v", None)),
    "h": st.sampled_from((1, 1, 1, 2, None)),
}


@st.composite
def streams(draw: st.DrawFn, pattern: Drawn, *, most: int = 9) -> list[dict[str, Any]]:
    """Up to `most` events in any order of arrival, with ties and NULLs.

    Most follow the pattern's types in reading order, round and round, so that trends are no rarity.
    """
    size = draw(st.sampled_from([size for size in range(most + 1) for _ in range(1 + size * size // 20)]))
    names = draw(st.permutations(range(size)))
    types = [kind for kind in pattern.types if kind != "ANY"] or ["A"]
    noise = st.sampled_from((*[None] * 7, *sorted({*types, *pattern.negated_types} - {"ANY"}), "E"))
    time = draw(st.integers(0, 8))
    turn = 0
    rows: list[dict[str, Any]] = []
    for name in names:
        time += draw(st.sampled_from((1, 1, 1, 2, 0, 3)))
        kind = draw(noise)
        if kind is None:
            kind = types[turn % len(types)]
            turn += 1
        cells = {column: draw(cell) for column, cell in _cells.items()}
        rows.append({"id": f"e{name}", "type": kind, "time": time - 6, **cells})
    return sorted(rows, key=lambda row: str(row["id"]))


@st.composite
def questions(
    draw: st.DrawFn,
    *,
    negation: bool = True,
    where: bool = True,
    equivalence: bool = True,
    windows: bool = True,
    select: bool = True,
    conjunction: bool = True,
    lengths: bool = False,
    depth: int = 3,
    most: int = 9,
) -> Question:
    """A legal query, mostly, and a stream; the flags leave whole themes out, but for `lengths`, see `returns`."""
    pattern = draw(patterns(negation=negation, conjunction=conjunction, depth=depth))
    lines: list[str] = []
    if where:
        pairs = draw(st.sampled_from((0, 0, 1, 1, 2)))
        lines += [line for _ in range(pairs) for line in draw(conditions.adjacent(pattern))]
        lines += [draw(conditions.local(pattern)) for _ in range(draw(st.sampled_from((0, 0, 0, 1, 2))))]
    if equivalence and draw(st.integers(0, 2)) == 2:
        lines.append(draw(conditions.equivalence(pattern)))
    query: dict[str, Any] = {"kind": "trends", "pattern": pattern.text}
    if lines:
        query["where"] = lines
    query["return"] = draw(returns(pattern, lengths=lengths))
    if equivalence and draw(st.integers(0, 3)) == 3:
        query["group_by"] = draw(st.sampled_from((["g"], ["h"], ["g", "h"])))
    query |= draw(bounds()) if windows else ONE_WINDOW
    if select and draw(st.integers(0, 2)) == 2:
        query["select"] = draw(st.sampled_from(SELECTIONS))
    query |= draw(outputs(query))
    return query, draw(streams(pattern, most=most))


SHORT = (
    "SEQ(A, B)",
    "SEQ(A, A x)",
    "A{2}",
    "A{1,3}",
    "SEQ(A, B, A)",
    "SEQ(A?, B)",
    "SEQ(A, NOT C, B)",
    "SEQ(A OR B, B z)",
)
"""Patterns of a few events: even 50 events have few enough trends to enumerate."""

SIDES = (
    "A+",
    "SEQ(A, C)",
    "SEQ(A, B?, C)",
    "SEQ(A+, C)",
    "SEQ(A, B*, C?)",
    "SEQ(A, NOT C, B)",
    "(A OR B)+",
    "(A OR B OR C)+",
    "SEQ(A?, B, C?)",
    "(SEQ(A, B?))+",
)
"""Patterns that have trends in common, but not what may come between their events."""


@st.composite
def pairs_of_patterns(draw: st.DrawFn) -> Question:
    """`P AND Q` over the same variables, by any selection: a trend of both is one that each selects."""
    sides = [draw(st.sampled_from(SIDES)) for _ in range(2)]
    pattern = drawn(" AND ".join(f"({side})" for side in sides))
    query: dict[str, Any] = {"kind": "trends", "pattern": pattern.text, "return": {"trends": "COUNT(*)"}}
    lines = draw(st.sampled_from(([], [], ["[g]"], ["equivalence"], ["adjacent"])))
    if lines == ["equivalence"]:
        lines = [draw(conditions.equivalence(pattern))]
    elif lines == ["adjacent"]:
        lines = draw(conditions.adjacent(pattern))
    if lines:
        query["where"] = lines
    query["select"] = draw(st.sampled_from((*SELECTIONS, "skip_till_next_match", "skip_till_any_match")))
    return query | ONE_WINDOW, draw(streams(pattern, most=8))


COPIES = ("{2}", "{2}", "{1,2}", "{2,}", "{2,3}", "{1,3}", "{0,2}", "+", "?", "*")


@st.composite
def repetitions(draw: st.DrawFn, depth: int = 3) -> str:
    """A pattern of few variables, most at several positions: bounds in bounds, alternatives and sequences that begin
    alike, a NOT now and then."""
    kind = draw(st.integers(0, 8)) if depth else 0
    if kind <= 1:
        return draw(st.sampled_from(("A", "A", "A", "B", "B", "A x", "C")))
    if kind <= 4:
        return f"({draw(repetitions(depth - 1))}){draw(st.sampled_from(COPIES))}"
    if kind == 5:
        return f"({draw(repetitions(depth - 1))} OR {draw(repetitions(depth - 1))})"
    parts = [draw(repetitions(depth - 1)) for _ in range(draw(st.sampled_from((2, 2, 3))))]
    if draw(st.integers(0, 5)) == 5:
        parts.insert(1, draw(st.sampled_from(("NOT C", "NOT D", "NOT SEQ(C, D)"))))
    return f"SEQ({', '.join(parts)})"


@st.composite
def repeated_questions(draw: st.DrawFn, *, lengths: bool = False) -> Question:
    """Variables at several positions, under every selection but mostly skip_till_next_match, which tells them apart."""
    sides = [draw(repetitions()) for _ in range(draw(st.sampled_from((1, 1, 1, 1, 2))))]
    if any(shape_of(parse_pattern(side)).nullable for side in sides):
        sides = [f"SEQ({side}, B)" for side in sides]
    pattern = drawn(" AND ".join(f"({side})" for side in sides) if len(sides) > 1 else sides[0])
    query: dict[str, Any] = {
        "kind": "trends",
        "pattern": pattern.text,
        "return": draw(returns(pattern, lengths=lengths)),
    }
    lines = draw(conditions.adjacent(pattern)) if draw(st.integers(0, 2)) == 2 else []
    if draw(st.integers(0, 3)) == 3:
        lines.append(draw(conditions.equivalence(pattern)))
    if lines:
        query["where"] = lines
    query["select"] = draw(st.sampled_from(("skip_till_next_match",) * 6 + (*SELECTIONS[1:], "skip_till_any_match")))
    query |= draw(bounds()) if draw(st.integers(0, 2)) == 2 else ONE_WINDOW
    query |= draw(outputs(query))
    return query, draw(streams(pattern, most=9))


_wide = {"x": st.integers(-30, 30), "n": st.integers(-30, 30), "y": st.integers(-99, 99).map(lambda n: n / 4)}


@st.composite
def long_questions(draw: st.DrawFn) -> Question:
    """A short pattern with adjacent conditions over 20 to 50 events of many values, some of them NULL."""
    pattern = drawn(draw(st.sampled_from(SHORT)))
    query: dict[str, Any] = {"kind": "trends", "pattern": pattern.text}
    lines = [line for _ in range(draw(st.integers(1, 2))) for line in draw(conditions.adjacent(pattern))]
    query["where"] = lines + draw(st.sampled_from(([], ["[g]"], ["A.x > -20"])))
    query["return"] = draw(returns(pattern))
    query |= draw(st.sampled_from((ONE_WINDOW, {"within": "30 seconds", "slide": "10 seconds"})))
    time = 0
    rows: list[dict[str, Any]] = []
    for place in range(draw(st.integers(20, 50))):
        time += draw(st.sampled_from((1, 1, 1, 0)))
        cells = {name: None if draw(st.integers(0, 9)) == 9 else draw(cell) for name, cell in _wide.items()}
        cells |= {"g": draw(_cells["g"]), "h": draw(_cells["h"])}
        rows.append({"id": f"e{place}", "type": draw(st.sampled_from("AAAABBBC")), "time": time, **cells})
    return query, rows


@st.composite
def bounds(draw: st.DrawFn) -> dict[str, Any]:
    """`within`, `slide`, `origin` and `empty_windows`."""
    within, slide = draw(st.sampled_from(WINDOWS))
    query: dict[str, Any] = {"within": f"{within} seconds"}
    if slide is not None:
        query["slide"] = f"{slide} seconds"
    if draw(st.integers(0, 3)) == 3:
        query["origin"] = draw(st.sampled_from(ORIGINS))
    if draw(st.integers(0, 5)) == 5:
        query["empty_windows"] = True
    return query


@st.composite
def returns(draw: st.DrawFn, pattern: Drawn, *, lengths: bool = False) -> dict[str, str]:
    """`COUNT(*)` and up to three more measures of positive variables; AND goes with `COUNT(*)` only. `lengths`: of what
    trends are, and of occurrences that are chosen."""
    measures = {"trends": "COUNT(*)"}
    texts = (*CHOSEN, *OF_TRENDS, *(() if lengths else (*MEASURES, *MEASURES)))
    for k in range(0 if pattern.conjunction else draw(st.integers(int(lengths), 3))):
        text = draw(st.sampled_from(texts))
        v = draw(st.sampled_from(pattern.positive))
        if text in (*MEASURES, *CHOSEN) and draw(st.integers(0, 3)) == 3:
            text += f" FILTER (WHERE {draw(st.sampled_from(conditions.LOCAL))})"
        a, b = draw(st.sampled_from(("x", "n", "y"))), draw(st.sampled_from(("x", "n", "y", "event_time")))
        measures[f"m{k}"] = text.format(v=v, a=a, b=b)
    return measures


@st.composite
def outputs(draw: st.DrawFn, query: dict[str, Any]) -> dict[str, Any]:
    """`output: maximal` now and then, where it may stand, mostly."""
    contiguous = query.get("select") in ("contiguous", "partition_contiguous")
    allowed = contiguous and "LONGEST(*)" not in query["return"].values() and " AND " not in query["pattern"]
    return {"output": "maximal"} if allowed and draw(st.integers(0, 1)) else {}
