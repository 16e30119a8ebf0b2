"""Hypothesis strategies for kind matches: a query and a stream to ask it of; and whether two answers agree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from tests.random.agreement import Tally, count_refusal
from tests.random.strategies import COLUMNS, Question
from tests.reference.matches import TooManyRunsError, reference
from tests.support.engines import to_table
from trendlake.cep_core import PatternErrors, TrendlakeError, compile_query, evaluate, run_plan
from trendlake.cep_core.derived import derive
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.matches.run.compressed import unfold
from trendlake.cep_core.matches.run.events import Stream
from trendlake.cep_core.matches.run.run import Matches

LIMIT = 3_000
"""Runs at one moment: some 50 ms of enumeration."""

COMPARE = ("<", "<=", ">", ">=", "=", "!=")

OF_ONE = (
    "{v}.x > 0",
    "{v}.y < 1.5",
    "{v}.g = 'u'",
    "{v}.x IS NULL OR {v}.x >= 0",
    "{v}.x IN (-1, 1, 2)",
    "abs({v}.x) < {c}",
    "{v}.x + {v}.n > 0",
    "{v}.event_time > TIMESTAMP '1970-01-01T00:00:01Z'",
)
OF_KLEENE = (
    "{v}[1].x {op} {c}",
    "{v}[1].g = 'u'",
    "{v}[i].x {op} {v}[i-1].x",
    "{v}[i].y {op} {v}[i-1].x + {c}",
    "{v}[i].x {op} {v}[1].x",
    "{v}[i-1].x {op} {c}",
    "{v}[i].x > 0",
    "{v}[i].x {op} avg({v}[..i-1].x)",
    "{v}[i].y {op} sum({v}[..i-1].y)",
    "{v}[i].x {op} min({v}[..i-1].n)",
    "{v}[i].y {op} max({v}[..i-1].y)",
    "{v}[i].g = max({v}[..i-1].g)",
    "count({v}[..i-1].x) {op} {c}",
    "{v}[i].x {op} count({v}[..i-1].y) + {v}[i-1].n",
    "{v}[{v}.LEN].x {op} {c}",
    "{v}[{v}.LEN].x {op} {v}[1].x",
    "{v}.x {op} {v}[1].x",
    "{v}.x {op} {v}[{v}.LEN].x",
    "{v}[i].x {op} {v}[{v}.LEN].n",
    "{v}[i].event_time - {v}[i-1].event_time < 3 seconds",
    "seconds({v}[i].event_time - {v}[1].event_time) {op} {c} + 0.5",
    "{v}[i].g = {v}[i-1].g OR {v}[i].x % 2 = 1",
    "NOT ({v}[i].x {op} {v}[i-1].x)",
    "coalesce({v}[i].x, {c}) {op} least({v}[i-1].x, {v}[1].y)",
)
SIDES_OF_KLEENE = (
    "{v}[1].x",
    "{v}[{v}.LEN].x",
    "{v}.x",
    "{v}[i].x",
    "{v}[i-1].y",
    "avg({v}[..i-1].x)",
    "sum({v}[..i-1].n)",
    "{v}[1].n * 2",
    "-{v}[{v}.LEN].y",
    "abs({v}.x)",
)
SIDES_OF_ONE = ("{v}.x", "{v}.n", "{v}.y", "{v}.x + {c}", "coalesce({v}.x, 0)", "{v}.x / 2")

LIMITS = {how: f" within {how.split()[1]} seconds" for how in ("not 2", "not 3", "not 15")}
"""Ways in which a NOT stands that looks so many seconds far."""
SEQUENCES = st.sampled_from((None, None, "n", "x"))
"""Columns that number the events of one time: most none, one with ties, one with NULLs too."""

MEASURES_OF_KLEENE = (
    "COUNT({v})",
    "AVG({v}.x)",
    "SUM({v}.y)",
    "SUM({v}.x)",
    "MIN({v}.n)",
    "MAX({v}.g)",
    "{v}[1].x",
    "{v}[{v}.LEN].y - {v}[1].x",
    "COUNT({v}) * 2",
    "{v}[{v}.LEN].event_time - {v}[1].event_time",
    "minutes({v}[{v}.LEN].event_time - {v}[1].event_time) + AVG({v}.x)",
    "MIN({v}.event_time)",
)
MEASURES_OF_ONE = ("{v}.x", "COUNT({v})", "AVG({v}.x)", "{v}.y + {v}.n", "upper({v}.g)", "{v}.event_time")

_cells = {
    "x": st.sampled_from((-2, -1, 0, 1, 1, 2, 2, 3, 3, 4, 4, None)),
    "n": st.integers(-1, 2),
    "y": st.sampled_from((-1.5, -1.0, -0.25, 0.0, 0.5, 1.0, 1.25, 2.0, 2.0, None, float("nan"))),
    "g": st.sampled_from(("u", "u", "u", "v", None)),
    "h": st.sampled_from((1, 1, 1, 2, None)),
}


@st.composite
def shapes(draw: st.DrawFn, negation: bool) -> list[tuple[str, str, str]]:
    """Parts in order: (type, variable, how it stands: one, kleene or not)."""
    parts = []
    for name in "abcd"[: draw(st.sampled_from((1, 2, 2, 3, 3, 4)))]:
        how = draw(st.sampled_from(("one", "kleene", "kleene")))
        kinds = "AAAAB" if name in "ac" else "AABBBBC"
        parts.append((draw(st.sampled_from((*kinds, "ANY"))), name, how))
    if negation and draw(st.booleans()):
        for name in ("k", "m")[: draw(st.sampled_from((1, 1, 2)))]:
            place = draw(st.integers(0, len(parts)))
            how = draw(st.sampled_from(("not", "not", *LIMITS)) if place else st.just("not"))
            parts.insert(place, (draw(st.sampled_from((*"ABCCDABCCD", "ANY"))), name, how))
    if [how[:3] for _, _, how in parts] == ["not", "kle", "not"]:
        parts.pop()  # legal, with a warning that each stretch is a row
    return parts


def _text(parts: Sequence[tuple[str, str, str]]) -> str:
    before, after = dict.fromkeys(("not", *LIMITS), "NOT "), {"kleene": "+", **LIMITS}
    written = [f"{before.get(how, '')}{kind} {name}{after.get(how, '')}" for kind, name, how in parts]
    return written[0] if len(written) == 1 else f"SEQ({', '.join(written)})"


COUNTS = ("+", "*", "?", "?", "{2}", "{1,2}", "{,2}", "{2,3}", "{2,}", "{,3}")
"""How often a part may be there."""


@st.composite
def operators(draw: st.DrawFn, negation: bool) -> tuple[str, list[tuple[str, str, str]]]:
    """A pattern of any operators, as text; and its parts in order, as of `shapes`."""
    names = iter("abcd")
    nots = iter("km" if negation else "")
    parts: list[tuple[str, str, str]] = []

    def atom(many: bool) -> str:
        name = next(names)
        kinds = "AAAAB" if name in "ac" else "AABBBBC"
        kind = draw(st.sampled_from((*kinds, "ANY")))
        parts.append((kind, name, "kleene" if many else "one"))
        return f"{kind} {name}"

    def negated() -> str:
        name = next(nots, None)
        if name is None or draw(st.integers(0, 2)):
            return ""
        how = draw(st.sampled_from(("not", "not", "not", *LIMITS)))
        kind = draw(st.sampled_from((*"ABCCD", "ANY")))
        parts.append((kind, name, how))
        return f"NOT {kind} {name}{LIMITS.get(how, '')}"

    def node(size: int, many: bool, outermost: bool = False) -> str:
        count = draw(st.sampled_from(("", "", *COUNTS)))
        many = many or count not in ("", "?")
        if size == 1:
            return atom(many) + count
        first = draw(st.integers(1, size - 1))
        sizes = [first, size - first]
        if draw(st.integers(0, 2)) == 0:
            return f"({' OR '.join(node(one, many) for one in sizes)}){count}"
        between = []
        for place, one in enumerate(sizes):
            if negation and (place or (outermost and count == "")):
                between.append(negated())
            between.append(node(one, many))
        if outermost and count == "":
            between.append(negated())
        text = f"SEQ({', '.join(part for part in between if part)})"
        return f"({text}){count}" if count else text

    text = node(draw(st.sampled_from((1, 2, 2, 3, 3, 4))), many=False, outermost=True)
    return text, parts


@st.composite
def conditions(draw: st.DrawFn, parts: Sequence[tuple[str, str, str]]) -> str:
    """One line of `where`."""
    _, v, how = draw(st.sampled_from(parts))
    words = {"v": v, "op": draw(st.sampled_from(COMPARE)), "c": draw(st.integers(0, 3))}
    kind = draw(st.sampled_from(("one", "own", "two", "two", "three")))
    if kind == "one" or (kind == "own" and how != "kleene"):
        return draw(st.sampled_from(OF_ONE)).format(**words)
    if kind == "own":
        return draw(st.sampled_from(OF_KLEENE)).format(**words)
    sides = []
    for _ in range(2 if kind == "two" else 3):
        _, w, other = draw(st.sampled_from(parts))
        templates = SIDES_OF_KLEENE if other == "kleene" else SIDES_OF_ONE
        sides.append(draw(st.sampled_from(templates)).format(v=w, c=words["c"]))
    if kind == "two":
        return f"{sides[0]} {words['op']} {sides[1]}"
    forms = ("{0} {op} {1} OR {1} < {2}", "{0} + {1} {op} {2}", "{0} {op} {1} AND {1} < {2}")
    return draw(st.sampled_from(forms)).format(*sides, op=words["op"])


@st.composite
def streams(draw: st.DrawFn, kinds: Sequence[str], most: int, ties: bool = False) -> list[dict[str, Any]]:
    """Up to `most` events in any order of arrival, with ties and NULLs; most of them of the pattern's types. `ties`:
    most of a time that several have."""
    kinds = [kind for kind in kinds if kind != "ANY"] or ["A"]
    size = draw(st.sampled_from([size for size in range(most + 1) for _ in range(1 + size * size // 8)]))
    names = draw(st.permutations(range(size)))
    time = draw(st.integers(-3, 3))
    turn = 0
    rows: list[dict[str, Any]] = []
    for name in names:
        time += draw(st.sampled_from((0, 0, 1, 2) if ties else (1, 1, 1, 2, 0, 3)))
        kind = draw(st.sampled_from((*[None] * 9, *kinds, "E")))
        if kind is None:  # the pattern's types in turn, each a few times
            kind = kinds[turn // 3 % len(kinds)]
            turn += draw(st.sampled_from((1, 1, 2, 3)))
        cells = {column: draw(cell) for column, cell in _cells.items()}
        rows.append({"id": f"e{name}", "type": kind, "time": time, **cells})
    return sorted(rows, key=lambda row: str(row["id"]))


@st.composite
def matches_questions(
    draw: st.DrawFn,
    *,
    negation: bool = True,
    output: bool = True,
    ties: bool = False,
    most: int = 10,
    any_operator: bool = False,
) -> Question:
    """A legal query of kind matches, mostly, and a stream. `any_operator`: patterns of all operators, with `derive` and
    `having`."""
    if any_operator:
        text, parts = draw(operators(negation))
    else:
        parts = draw(shapes(negation))
        text = _text(parts)
    query: dict[str, Any] = {"kind": "matches", "pattern": text}
    bound = [part for part in parts if not part[2].startswith("not")]
    lines = [draw(conditions(parts)) for _ in range(draw(st.sampled_from((0, 1, 1, 1, 2))))]
    if draw(st.integers(0, 2)) == 0:
        text = draw(st.sampled_from(("[g]", "[h]", "[g, h]", "[{v}.g]", "[{v}.g, {w}.g]", "[{v}.h, g]")))
        lines.append(text.format(v=draw(st.sampled_from(parts))[1], w=draw(st.sampled_from(parts))[1]))
    query["where"] = lines
    rare = ("contiguous", "partition_contiguous")
    query["select"] = draw(st.sampled_from(("skip_till_any_match", "skip_till_next_match") * 2 + rare))
    query["within"] = f"{draw(st.sampled_from((4, 8, 12, 60)))} seconds"
    if output and draw(st.integers(0, 3)) == 0:
        query["output"] = "non_overlap"
    measures = {}
    for k in range(draw(st.sampled_from((0, 0, 1, 2)))):
        _, v, how = draw(st.sampled_from(bound))
        templates = MEASURES_OF_KLEENE if how == "kleene" else MEASURES_OF_ONE
        measures[f"m{k}"] = draw(st.sampled_from(templates)).format(v=v)
    query["return"] = measures
    if any_operator:
        v = draw(st.sampled_from(bound))[1]
        if draw(st.integers(0, 3)) == 0:
            query["derive"] = {"z": draw(st.sampled_from(("x + n", "coalesce(x, 0) * 2", "abs(x)")))}
            query["where"] = [*lines, f"{v}.z > {draw(st.integers(-1, 2))}"]
        if output and draw(st.integers(0, 3)) == 0:
            query["return"] = {**measures, "often": f"COUNT({v})"}
            query["having"] = [draw(st.sampled_from(("often > 0", "often = 0", "often < 2")))]
    return query, draw(streams([kind for kind, _, _ in bound], most, ties))


def any_questions(**flags: Any) -> st.SearchStrategy[Question]:
    """Of the old form or of any operators."""
    return st.booleans().flatmap(lambda any_operator: matches_questions(any_operator=any_operator, **flags))


def engine(
    query: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    types: Mapping[str, pa.DataType] = COLUMNS,
    sequence: str | None = None,
) -> list[dict[str, Any]]:
    """`evaluate`, in the reference's shape and with the match ids."""
    table = evaluate(query, to_table(rows, types), sequence=sequence)
    columns = {
        field.name: table[field.name].cast(pa.int64() if pa.types.is_timestamp(field.type) else field.type).to_pylist()
        for field in table.schema
    }
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def disagreement(question: Question, tally: Tally, sequence: str | None = None) -> list[str]:
    """How the engine's rows differ from the reference's; what the engine refuses is only counted."""
    query, rows = question
    try:
        compile_query(query, schema_of(to_table(rows, COLUMNS), sequence=sequence))
    except PatternErrors as refusal:
        count_refusal(refusal, tally)
        assume(False)
    try:  # before the engine, which enumerates millions of matches where there are so many
        expected = reference(query, rows, sequence=sequence, limit=LIMIT)
    except TooManyRunsError:
        tally.too_many += 1
        assume(False)
    actual = engine(query, rows, sequence=sequence)
    tally.compared += 1
    tally.with_trends += bool(expected)
    names = [row.pop("match_id") for row in actual]
    lines = [] if len(set(names)) == len(names) else ["two matches of one id"]
    return lines + differences(expected, actual) + interpreted(query, rows, sequence)


def differences(expected: Iterable[Mapping[str, Any]], actual: Iterable[Mapping[str, Any]]) -> list[str]:
    """How two answers differ: events exactly, doubles to 1e-9; rows in any order."""
    wanted, got = ({_key(row): row for row in rows} for rows in (expected, actual))
    lines = [f"missing: {dict(wanted[key])}" for key in wanted.keys() - got.keys()]
    lines += [f"not expected: {dict(got[key])}" for key in got.keys() - wanted.keys()]
    for key in wanted.keys() & got.keys():
        if wanted[key].keys() != got[key].keys():
            lines.append(f"columns {sorted(wanted[key])} expected, found {sorted(got[key])}")
            continue
        lines += [
            f"{key}: {name} {cell!r} expected, found {got[key][name]!r}"
            for name, cell in wanted[key].items()
            if not _same(cell, got[key][name])
        ]
    return sorted(lines)


def _key(row: Mapping[str, Any]) -> str:
    return repr(sorted((name, cell) for name, cell in row.items() if isinstance(cell, list)))


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return math.isclose(expected, actual, rel_tol=1e-9, abs_tol=1e-12)
    return bool(expected == actual)


def plan_of(query: Mapping[str, Any], table: pa.Table, sequence: str | None = None) -> Any:
    try:
        return compile_query(query, schema_of(table, sequence=sequence))
    except PatternErrors:
        assume(False)


def cut_rows(query: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> tuple[Any, Any]:
    """The rows computed at once; and window by window, each from its own events, put together."""
    table = to_table(rows, COLUMNS)
    plan = plan_of(query, table)
    assume(table.num_rows)
    time = table["event_time"].cast(pa.int64()).to_pylist()
    held = [j for moment in (min(time), max(time)) for j in plan.windows.holding(moment)]
    collected = []
    for j in range(min(held), max(held) + 1):
        one = range(j, j + 1)
        part = run_plan(plan, table, one)
        column, low, high = plan.owned(one)
        assert all(low <= cell < high for cell in part[column].cast(pa.int64()).to_pylist())
        collected += part.to_pylist()
    # of the whole nothing is held back, as of windows
    return _sorted(run_plan(plan, table, watermark=2**62).to_pylist()), _sorted(collected)


def _sorted(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(rows, key=lambda row: str(row.get("match_id", row.get("end_event"))))


def unfolded(query: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """How the matches in the compressed rows differ from the matches."""
    table = to_table(rows, COLUMNS)
    plan_of({**query, "output": "compressed"}, table)
    collected = []
    for row in evaluate({**query, "output": "compressed"}, table).to_pylist():
        inside = list(unfold(row))
        assert len(inside) == row["matches"] == round(10 ** row["matches_log10"])
        collected += inside
    expected = evaluate(query, table).drop_columns(["match_id", "start", "end"]).to_pylist()
    collected = [{name: match.get(name, []) for name in expected[0]} for match in collected] if expected else collected
    assert len(expected) == len(collected)
    return differences(expected, collected)


def _stream(plan: Any, rows: Sequence[Mapping[str, Any]]) -> Stream:
    return Stream(plan, derive(to_table(rows, COLUMNS), plan.schema))


def _trends_of(matches: Matches) -> list[Any]:
    return [match for chunk in matches.chunks() for match in chunk.matches()]


def interpreted(query: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], sequence: str | None = None) -> list[str]:
    """How the matches differ, or the errors, when runs are stepped in Python."""
    plan = plan_of(query, to_table(rows, COLUMNS), sequence)
    stream = _stream(plan, rows)
    answers: list[Any] = []
    for compiled in (True, False):
        try:
            answers.append(sorted(_trends_of(Matches(plan, stream, None, compiled=compiled))))
        except TrendlakeError as error:
            answers.append(str(error))
    return [] if answers[0] == answers[1] else [f"{answers[0]} compiled, {answers[1]} interpreted"]


def unmerged(query: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], sequence: str | None = None) -> list[str]:
    """How the matches differ when no runs are merged."""
    plan = plan_of(query, to_table(rows, COLUMNS), sequence)
    stream = _stream(plan, rows)
    merged, apart = (sorted(_trends_of(Matches(plan, stream, None, merging=on))) for on in (True, False))
    return [] if merged == apart else [f"{merged} merged, {apart} apart"]


__all__ = ["any_questions", "disagreement", "engine", "matches_questions"]
