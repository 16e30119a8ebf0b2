"""Measures of what trends are (length, duration, the longest) and of occurrences that are chosen: large numbers against
closed forms, families, batches, and the same rows whatever the order of events or of windows."""

from __future__ import annotations

import bisect
import math
import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.reference.trends import reference
from tests.support.cases import Case, load, unexpected
from tests.support.engines import ENGINES, Engine, kernels, to_table
from trendlake.cep_core import compile_query, evaluate, run_plan
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.sharing.run_plans import run_plans
from trendlake.cep_core.trends.run import length_pass

ALL = {
    "trends": "COUNT(*)",
    "least": "MIN(LENGTH(*))",
    "most": "MAX(LENGTH(*))",
    "total": "SUM(LENGTH(*))",
    "mean": "AVG(LENGTH(*))",
    "quickest": "MIN(DURATION(*))",
    "slowest": "MAX(DURATION(*))",
    "lasts": "SUM(DURATION(*))",
    "mean_lasts": "AVG(DURATION(*))",
    "three": "COUNT(*) FILTER (WHERE LENGTH(*) = 3)",
    "few": "COUNT(*) FILTER (WHERE LENGTH(*) <= 2)",
    "many": "COUNT(*) FILTER (WHERE LENGTH(*) > 4)",
    "high": "COUNT(S) FILTER (WHERE S.x >= 2)",
    "events": "LONGEST(*)",
    "first": "FIRST(S.event_id)",
    "last": "LAST(S.x) FILTER (WHERE S.x < 9)",
    "dearest": "MAX_BY(S.event_id, S.x)",
}


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("case", load("occurrences.yaml"), ids=lambda case: case.name)
def test_case_of_occurrences(engine: Engine, case: Case) -> None:
    assert unexpected(case, engine(case.query, case.events)) == []


# --- large numbers
FORMS: Mapping[str, Mapping[str, Any]] = {
    "no condition": {},
    "one inequality": {"where": ["S.x < NEXT(S).x"]},
    "two inequalities": {"where": ["S.x < NEXT(S).x", "S.y > NEXT(S).y"]},
    "overlapping windows": {"slide": "3 hours"},
    "overlapping windows, one inequality": {"slide": "3 hours", "where": ["S.x < NEXT(S).x"]},
    "a NOT": {"pattern": "SEQ(NOT C, S+)"},
}


@pytest.mark.parametrize("events", [2, 52, 127, 700])
@pytest.mark.parametrize("form", ["overlapping windows", "overlapping windows, one inequality"])
@pytest.mark.parametrize("extrema", [True, False])
def test_closed_forms_of_windows_that_share_a_pass(form: str, extrema: bool, events: int) -> None:
    """With DURATION or LONGEST they share none."""
    rows = [{"id": f"e{k:04}", "type": "S", "time": 10 * k, "x": k} for k in range(events)]
    names = ("trends", "total", "mean", *(("least", "most", "first", "dearest") if extrema else ()))
    query = {"kind": "trends", "pattern": "S+", "within": "6 hours", "return": {name: ALL[name] for name in names}}
    (row,) = [one for one in kernels(query | FORMS[form], rows) if one["window_start"] == 0]
    trends, total = 2**events - 1, events * 2 ** (events - 1)
    for name, count in (("trends", trends), ("total", total)):
        assert row[name] == (count if count < 10**38 else None)
        assert row[f"{name}_log10"] == pytest.approx(math.log10(count), rel=1e-9, abs=0)
    assert row["mean"] == pytest.approx(float(Fraction(total, trends)), rel=1e-14)
    if extrema:
        assert (row["least"], row["most"]) == (1, events)
        assert (row["first"], row["dearest"]) == ("e0000", rows[-1]["id"])


@pytest.mark.parametrize("events", [2, 52, 127, 700])
@pytest.mark.parametrize("form", FORMS)
def test_closed_forms(form: str, events: int) -> None:
    """Of n events any one or more are a trend: n 2^(n-1) events in all, C(n, k) trends of k events. Trends from event
    i to event j are 2^(j-i-1) for i < j. Counts are exact up to 38 digits, means and sums doubles of the true ones."""
    times = [k * k % 7 + 10 * k for k in range(events)]
    rows = [{"id": f"e{k:04}", "type": "S", "time": t, "x": k, "y": -k} for k, t in enumerate(times)]
    query = {"kind": "trends", "pattern": "S+", "within": "6 hours", "return": ALL} | FORMS[form]
    (row, *more) = [one for one in kernels(query, rows) if one["window_start"] == 0]
    assert not more
    trends, total = 2**events - 1, events * 2 ** (events - 1)
    lasts = sum(2 ** (j - i - 1) * (times[j] - times[i]) for j in range(events) for i in range(j))
    chosen = [math.comb(events, k) for k in range(events + 1)]
    counts = {
        "trends": trends,
        "total": total,
        "three": sum(chosen[3:4]),
        "few": sum(chosen[1:3]),
        "many": sum(chosen[5:]),
        "high": max(0, events - 2) * 2 ** (events - 1),
    }
    for name, count in counts.items():
        assert row[name] == (count if count < 10**38 else None), name
        if count:
            logarithm = math.log10(count)
            assert row[f"{name}_log10"] == pytest.approx(logarithm, rel=1e-9, abs=0), name
    assert (row["least"], row["most"]) == (1, events)
    assert (row["quickest"], row["slowest"]) == (0.0, float(times[-1] - times[0]))
    assert row["mean"] == pytest.approx(float(Fraction(total, trends)), rel=1e-14)
    assert row["mean_lasts"] == pytest.approx(float(Fraction(lasts, trends)), rel=1e-14)
    assert row["lasts"] == pytest.approx(float(lasts), rel=1e-14)
    assert row["lasts_log10"] == pytest.approx(math.log10(lasts), rel=1e-9)
    assert row["events"] == [one["id"] for one in rows]
    dearest = rows[-1]["id"]
    assert (row["first"], row["last"], row["dearest"]) == ("e0000", min(events - 1, 8), dearest)


def test_maximal_runs_are_those_of_a_loop() -> None:
    """Of 3,000 values, in windows that overlap: a run ends where a value falls, and where its window does."""
    rng = random.Random(5)
    values = [rng.randrange(5) for _ in range(3_000)]
    rows = [{"id": f"e{k:04}", "type": "S", "time": k, "x": x} for k, x in enumerate(values)]
    query = {
        "kind": "trends",
        "pattern": "S+",
        "where": ["S.x <= NEXT(S).x"],
        "select": "contiguous",
        "output": "maximal",
        "within": "100 seconds",
        "slide": "40 seconds",
        "return": {name: ALL[name] for name in ("trends", "most", "total", "slowest", "three")},
    }
    for row in kernels(query, rows):
        start = row["window_start"] // 1_000_000
        runs: list[int] = []
        for k in range(max(0, start), min(3_000, start + 100)):
            grows = bool(runs) and k > start and values[k - 1] <= values[k]
            runs[-1:] = [runs[-1] + 1] if grows else [*runs[-1:], 1]
        assert (row["trends"], row["most"], row["total"]) == (len(runs), max(runs), sum(runs))
        assert (row["slowest"], row["three"]) == (float(max(runs) - 1), runs.count(3))


def test_the_longest_is_that_of_a_slower_search() -> None:
    """Of 20,000 values: the longest fall, by bisection; and of all falls of that length the first, from the last event
    back."""
    rng = random.Random(7)
    values = [rng.randrange(4_000) for _ in range(20_000)]
    rows = [{"id": f"e{k:05}", "type": "S", "time": k, "x": x} for k, x in enumerate(values)]
    ends: list[int] = []
    lengths = []
    for x in values:
        place = bisect.bisect_left(ends, -x)
        ends[place : place + 1] = [-x]
        lengths.append(place + 1)
    back = [lengths.index(len(ends))]
    while lengths[back[-1]] > 1:
        last = back[-1]
        back.append(next(k for k in range(last) if lengths[k] == lengths[last] - 1 and values[k] > values[last]))
    query = {
        "kind": "trends",
        "pattern": "S+",
        "where": ["S.x > NEXT(S).x"],
        "within": "1 day",
        "return": {"most": "MAX(LENGTH(*))", "events": "LONGEST(*)"},
    }
    (row,) = kernels(query, rows)
    assert row["most"] == len(ends) > 100
    assert row["events"] == [rows[k]["id"] for k in reversed(back)]


@pytest.mark.parametrize(
    ("select", "expected"), [("skip_till_any_match", "da"), ("skip_till_next_match", "da"), ("contiguous", "ca")]
)
def test_events_of_one_time_are_in_the_order_of_their_sequence(select: str, expected: str) -> None:
    """Ids have the opposite order."""
    rows = [
        {"id": "d", "type": "S", "time": 1, "n": 1},
        {"id": "c", "type": "S", "time": 1, "n": 2},
        {"id": "b", "type": "S", "time": 2, "n": 8},
        {"id": "a", "type": "S", "time": 2, "n": 7},
    ]
    query = {"kind": "trends", "pattern": "S{2}", "within": "1 day", "return": {"m": "LONGEST(*)"}, "select": select}
    table = to_table(rows)
    result = run_plan(compile_query(query, schema_of(table, sequence="n")), table)
    assert result["m"].to_pylist() == [list(expected)]
    assert reference(query, rows, sequence="n")[0]["m"] == list(expected)


# --- the same rows
PATTERNS = (
    {"pattern": "S+", "where": ["S.x <= NEXT(S).x"]},
    {"pattern": "(S OR A a)+", "where": ["[g]"], "group_by": ["g"]},
    {"pattern": "SEQ(S+, NOT A a, S b)", "where": ["S.x != NEXT(b).x"], "group_by": ["g"]},
    {"pattern": "SEQ(S, S b)+", "select": "skip_till_next_match", "where": ["[S.g, b.g]"]},
    {"pattern": "S{2,}", "select": "partition_contiguous", "where": ["[g]"], "empty_windows": True},
)
WINDOWS = {"within": "12 seconds", "slide": "5 seconds"}


def stream(seed: int, count: int = 60) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        {
            "id": f"e{k:02}",
            "type": rng.choice("SSSA"),
            "time": rng.randrange(count // 2),
            "x": rng.choice([None, 1, 2, 3, 4, 11]),
            "g": rng.choice("uv"),
        }
        for k in range(count)
    ]


def in_order(table: pa.Table) -> pa.Table:
    keys = [name for name in table.column_names if name in ("g", "window_start")]
    return table.combine_chunks().sort_by([(name, "ascending") for name in keys])


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda one: str(one["pattern"]))
def test_neither_the_order_of_events_nor_of_windows_shows(pattern: Mapping[str, Any]) -> None:
    query = {"kind": "trends", "return": ALL, **WINDOWS, **pattern}
    rows = stream(1)
    table = to_table(rows)
    together = in_order(evaluate(query, table))
    assert together.num_rows > 3
    for seed in range(3):
        shuffled = random.Random(seed).sample(rows, len(rows))
        assert in_order(evaluate(query, to_table(shuffled))).equals(together)
    plan = compile_query(query, schema_of(table))
    times = range(-3, 10)
    parts = [run_plan(plan, table, range(j, j + 1)) for j in times]
    pairs = [run_plan(plan, table, range(j, j + 2)) for j in times[::2]]
    for apart in (parts, pairs):
        assert in_order(pa.concat_tables(apart)).equals(together)


@pytest.mark.parametrize("pattern", PATTERNS[:3], ids=lambda one: str(one["pattern"]))
def test_members_of_a_family_have_the_rows_of_queries_of_their_own(pattern: Mapping[str, Any]) -> None:
    table = to_table(stream(2))
    where = [*pattern["where"], "S.x >= $low"]
    measures = ALL | {"above": "SUM(S.x) FILTER (WHERE S.x > $low)"}
    query = {"kind": "trends", **WINDOWS, **pattern, "where": where}
    for left_out in ((), ("events",)):  # with LONGEST members run one after the other
        measured = {name: text for name, text in measures.items() if name not in left_out}
        family = evaluate(query | {"return": measured, "for_each": {"low": [1, 2, 3]}}, table)
        for low in (1, 2, 3):
            alone = {
                "where": [text.replace("$low", str(low)) for text in where],
                "return": {name: text.replace("$low", str(low)) for name, text in measured.items()},
            }
            member = family.filter(pc.equal(family["low"], low)).drop_columns(["low"])
            assert in_order(member).equals(in_order(evaluate(query | alone, table)))


def test_patterns_together_have_the_rows_of_each_alone() -> None:
    table = to_table(stream(3))
    queries = [{"kind": "trends", "return": ALL, **WINDOWS, **pattern} for pattern in PATTERNS]
    queries += [queries[0] | {"where": [*PATTERNS[0]["where"], f"S.x > {low}"]} for low in (1, 2)]
    plans = [compile_query(query, schema_of(table)) for query in queries]
    for number, answer in run_plans(plans, table):
        assert isinstance(answer, pa.Table)
        assert in_order(answer).equals(in_order(evaluate(queries[number], table)))


# --- numbers of lengths side by side, and states of their own
FILTERS = ("LENGTH(*) >= 3", "LENGTH(*) = 1", "LENGTH(*) <= 4", "LENGTH(*) >= 1", "LENGTH(*) < 6")
SHAPES = ("A+", "SEQ(A+, B)", "(SEQ(A+, B+))+", "SEQ(A?, B+)", "SEQ(A{2,3}, B*, C)", "SEQ(A, B)", "(A OR B)+")
EDGES = ([], ["A.x < NEXT(A).x"], ["A.x <= NEXT(B).x"], ["[g]"], ["A.x > NEXT(A).x", "A.x < NEXT(B).x", "[g]"])


@pytest.mark.filterwarnings("ignore::trendlake.cep_core.PatternWarning")
@pytest.mark.parametrize("seed", range(60))
def test_beside_one_another_as_by_states(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The same rows, of counts that float64 holds and of larger ones, with ties, NULLs and any windows."""
    drawn = random.Random(seed)
    shape, edges = drawn.choice(SHAPES), drawn.choice(EDGES)
    where = [text for text in edges if text == "[g]" or "B" in shape or "B" not in text]
    asked = [*drawn.sample(FILTERS, 2), f"LENGTH(A) {drawn.choice(('>=', '=', '<='))} {drawn.randint(1, 4)}"]
    query = {
        "kind": "trends",
        "pattern": shape,
        "where": where,
        "return": {f"m{k}": f"COUNT(*) FILTER (WHERE {text})" for k, text in enumerate(asked)},
        "group_by": drawn.choice(([], ["g"])) if "[g]" in where else [],
        "within": "1 hour",
        **drawn.choice(({}, {"slide": "20 minutes"})),
    }
    size = drawn.choice((30, 60, 400))
    rows = [
        {
            "id": f"e{k}",
            "type": drawn.choice("AAABC"),
            "time": drawn.randint(0, 7_200),
            "x": drawn.choice((None, *range(30))),
            "g": drawn.choice("uv"),
        }
        for k in range(size)
    ]
    table = to_table(rows)
    beside = sorted(map(str, evaluate(query, table).to_pylist()))
    monkeypatch.setattr(length_pass, "MAX_BYTES", -1)
    assert sorted(map(str, evaluate(query, table).to_pylist())) == beside


def test_lengths_of_many_trends() -> None:
    """Counts beyond 10^300, by a closed form: of n events in order all subsets but the small ones."""
    n = 1_100
    rows = [{"id": f"e{k:04}", "type": "S", "time": k, "x": k} for k in range(n)]
    texts = {"open": "LENGTH(*) >= 40", "exact": "LENGTH(*) = 12", "few": "LENGTH(*) <= 60"}
    query = {
        "kind": "trends",
        "pattern": "S+",
        "where": ["S.x < NEXT(S).x"],
        "return": {name: f"COUNT(*) FILTER (WHERE {text})" for name, text in texts.items()},
        "within": "1 day",
    }
    (row,) = evaluate(query, to_table(rows)).to_pylist()
    counts = {
        "open": 2**n - sum(math.comb(n, k) for k in range(40)),
        "exact": math.comb(n, 12),
        "few": sum(math.comb(n, k) for k in range(1, 61)),
    }
    for name, count in counts.items():
        assert row[name] == (count if count < 10**38 else None)
        assert row[f"{name}_log10"] == pytest.approx(math.log10(count), rel=1e-9, abs=0)
