"""Kind automaton in small examples, over the enumeration and the kernels: what docs/adr/0005 reads out of the page."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.reference.automaton import enumerate_runs
from tests.support.engines import to_table
from trendlake.cep_core import compile_query, evaluate, run_plan
from trendlake.cep_core.automaton.run.run import run_automaton
from trendlake.cep_core.automaton.run.trace import trace
from trendlake.cep_core.events.schema import schema_of

SECOND = 1_000_000


def events(text: str) -> list[dict[str, Any]]:
    """`A1 B2 C2` is an A at 1 s, a B at 2 s and a C at 2 s; ids are these words."""
    return [{"id": word, "type": "T", "time": int(word[1:]), "kind": word[0]} for word in text.split()]


def automaton(*arcs: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"kind": "automaton", "start": "q0", "final": ["done"], "within": "10 seconds", "arcs": list(arcs), **more}


def on(kind: str, source: str, target: str, **more: Any) -> dict[str, Any]:
    return {"from": source, "to": target, "when": f"e.kind = '{kind}'", **more}


def pairs(query: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], watermark: int | None = None) -> set[str]:
    """`first-last` of the rows, on which both engines agree."""
    table = to_table(random.Random(2).sample(list(rows), len(rows)))
    actual = run_automaton(compile_query(query, schema_of(table)), table, watermark=watermark).to_pylist()
    expected = enumerate_runs(query, rows, watermark)
    names = ("first", "last", "state", *query.get("register", {}))
    assert {tuple(row[n] for n in names) for row in actual} == {tuple(row[n] for n in names) for row in expected}
    return {f"{row['first']}-{row['last']}" for row in actual}


def test_each_event_is_consumed_or_ends_the_run() -> None:
    """A C in between is fatal unless an arc takes it."""
    query = automaton(on("A", "q0", "q1"), on("B", "q1", "done"))
    assert pairs(query, events("A1 B2 A3 C4 B5")) == {"A1-B2"}
    query["arcs"].append(on("C", "q1", "q1", ignore=True))
    assert pairs(query, events("A1 B2 A3 C4 B5")) == {"A1-B2", "A3-B5"}


def test_an_ignored_event_is_consumed() -> None:
    """A final state that ignores gives a row for each event it ignores."""
    query = automaton(on("A", "q0", "done"), on("C", "done", "done", ignore=True))
    assert pairs(query, events("A1 C2 C3 B4 C5")) == {"A1-A1", "A1-C2", "A1-C3"}


def test_the_window_is_open_at_its_end() -> None:
    query = automaton(on("A", "q0", "q1"), on("C", "q1", "q1", ignore=True), on("B", "q1", "done"))
    assert pairs(query, events("A1 C5 B10")) == {"A1-B10"}
    assert pairs(query, events("A1 C5 B11")) == set()


def test_epsilon_arcs_of_the_start_fire_before_the_first_event() -> None:
    """With a lifetime: asked at that event's time."""
    query = automaton(
        {"from": "q0", "to": "q1", "epsilon": True, "valid_from": "1970-01-01T00:00:03Z"}, on("A", "q1", "done")
    )
    assert pairs(query, events("A1 A3 A5")) == {"A3-A3", "A5-A5"}


def test_a_run_that_consumed_nothing_is_no_row() -> None:
    query = automaton({"from": "q0", "to": "done", "epsilon": True}, on("A", "q0", "q0"))
    assert pairs(query, events("A1 B2")) == {"A1-A1"}


ABSENCE = automaton(
    on("A", "q0", "wait"),
    {"from": "wait", "to": "wait", "when": "e.kind != 'B'", "ignore": True},
    {"from": "wait", "to": "done", "at": "window_end"},
)


@pytest.mark.parametrize(
    ("text", "watermark", "rows"),
    [
        ("A1 C4", None, set()),  # the data has come to 4 s only
        ("A1 C4", 10, set()),
        ("A1 C4", 11, {"A1-C4"}),
        ("A1 C4 D11", None, {"A1-C4"}),  # the event that reaches the end is not of the window
        ("A1 C4 B11", None, {"A1-C4"}),
        ("A1 C4 B10", 30, set()),
        ("A1", 11, {"A1-A1"}),
        ("A1 A3 C4 C12", None, {"A1-C4"}),
        ("A1 A3 C4 C12", 13, {"A1-C4", "A3-C12"}),
    ],
)
def test_window_end(text: str, watermark: int | None, rows: set[str]) -> None:
    """`last` is the last event consumed; the end is reached by the data or by the watermark."""
    assert pairs(ABSENCE, events(text), None if watermark is None else watermark * SECOND) == rows


def test_any_partition_moves_the_time_of_all() -> None:
    """The latest event of the whole input says how far the data has come."""
    query = ABSENCE | {"partition_by": ["stock"]}
    rows = [row | {"stock": "P" if row["id"] == "A1" else "Q"} for row in events("A1 B2 C20")]
    assert pairs(query, rows) == {"A1-A1"}


def test_window_end_fires_once_and_then_epsilon_arcs() -> None:
    """A second window_end arc has no window to end."""
    query = automaton(
        on("A", "q0", "wait"),
        {"from": "wait", "to": "mid", "at": "window_end", "set": {"n": "n + 1"}},
        {"from": "mid", "to": "done", "epsilon": True, "when": "n = 1", "set": {"n": "n + 10"}},
        {"from": "mid", "to": "twice", "at": "window_end"},
        register={"n": {"type": "int", "init": 0}},
        final=["done", "twice"],
    )
    with pytest.warns(UserWarning, match="arc 4"):
        plan = compile_query(query, schema_of(to_table(events("A1"))))
    rows = run_automaton(plan, to_table(events("A1")), watermark=99 * SECOND).to_pylist()
    assert [(row["state"], row["n"]) for row in rows] == [("done", 11)]
    assert [(row["state"], row["n"]) for row in enumerate_runs(query, events("A1"), 99 * SECOND)] == [("done", 11)]


def test_the_lifetime_of_a_window_end_arc_is_asked_at_the_end() -> None:
    query = ABSENCE | {"arcs": [*ABSENCE["arcs"][:2], ABSENCE["arcs"][2] | {"valid_from": "1970-01-01T00:00:12Z"}]}
    assert pairs(query, events("A1 A2 C30")) == {"A2-A2"}


def test_set_reads_the_register_as_it_was() -> None:
    register = {"x": {"type": "int", "init": 1}, "y": {"type": "int", "init": 2}}
    query = automaton({"from": "q0", "to": "done", "set": {"x": "y", "y": "x"}}, register=register)
    (row,) = evaluate(query, to_table(events("A1"))).to_pylist()
    assert (row["x"], row["y"]) == (2, 1)


def test_types_of_the_register() -> None:
    """Columns have the fields' types; NULL is a value like others."""
    init = {
        "a": ("tinyint", 1),
        "b": ("smallint", 1),
        "c": ("int", 1),
        "d": ("bigint", 1),
        "f": ("double", 1),
        "g": ("string", "x"),
        "h": ("boolean", True),
        "i": ("timestamp", "2013-01-01T00:00:00Z"),
        "j": ("date", "2013-01-02"),
        "k": ("string", None),
    }
    query = automaton(
        {"from": "q0", "to": "done", "when": "k IS NULL AND upper(g) = 'X'", "set": {"g": "e.kind"}},
        register={name: {"type": kind, "init": value} for name, (kind, value) in init.items()},
    )
    actual = evaluate(query, to_table(events("A1")))
    kinds = [str(actual.schema.field(name).type) for name in init]
    assert kinds == [
        "int8",
        "int16",
        "int32",
        "int64",
        "double",
        "string",
        "bool",
        "timestamp[us, tz=UTC]",
        "date32[day]",
        "string",
    ]
    (row,) = actual.to_pylist()
    assert (row["f"], row["g"], row["h"], row["j"].isoformat(), row["k"]) == (1.0, "A", True, "2013-01-02", None)


def test_a_pattern_changed_in_june_behaves_in_may_as_in_may() -> None:
    """Replaying a period gives what the pattern was then, whatever has been added since."""
    may = automaton(on("A", "q0", "q1"), on("B", "q1", "done", valid_to="1970-01-01T00:00:30Z"))
    june = automaton(*may["arcs"], on("C", "q1", "done", valid_from="1970-01-01T00:00:30Z"))
    early, late = events("A1 B2 A3 C4"), events("A31 B32 A33 C34")
    assert pairs(may, early) == pairs(june, early) == {"A1-B2"}
    assert pairs(june, early + late) == {"A1-B2", "A33-C34"}


OVERLAPS = automaton(
    on("A", "q0", "q1"), on("B", "q1", "q1"), on("C", "q1", "done"), on("B", "q0", "q1"), within="7 seconds"
)


@pytest.mark.parametrize(
    ("query", "least"), [(ABSENCE | {"final": ["done", "wait"]}, 50), (OVERLAPS | {"output": "non_overlap"}, 10)]
)
def test_windows_part_the_rows(query: Any, least: int) -> None:
    """The rows of windows, each computed from its own events, are the rows of all, each once, as `owned` says."""
    rng = random.Random(3)
    rows = events(" ".join(f"{rng.choice('AABC')}{t}" for t in sorted(rng.sample(range(120), 80))))
    table = to_table(rows)
    plan = compile_query(query, schema_of(table))
    whole = run_automaton(plan, table, watermark=10_000 * SECOND)
    collected = []
    for j in range(-2, 14 if plan.within > 7 * SECOND else 20):
        low, high = plan.windows.start(j), plan.windows.end(j)
        mine = to_table([row for row in rows if low <= row["time"] * SECOND < high], {"kind": table["kind"].type})
        part = run_plan(plan, mine, range(j, j + 1))
        column, first, end = plan.owned(range(j, j + 1))
        assert all(first <= value.value < end for value in part[column])
        collected += part.to_pylist()
    key = [repr(sorted(row.items())) for row in collected]
    assert len(key) == len(set(key)) > least
    assert set(key) == {repr(sorted(row.items())) for row in whole.to_pylist()}


def test_the_trace_keeps_ignored_stretches_as_intervals() -> None:
    rows = events("A1 C2 C3 C4 B5")
    query = automaton(on("A", "q0", "q1"), on("C", "q1", "q1", ignore=True), on("B", "q1", "done"))
    table = to_table(rows)
    plan = compile_query(query, schema_of(table))
    said = {(row["first"], row["since"], row["until"], row["state"]) for row in trace(plan, table).to_pylist()}
    assert said == {("A1", "A1", "C4", "q1"), ("A1", "B5", "B5", "done")}
    assert trace(plan, table, intervals=False).num_rows == 5


def test_groups_sets_and_rows_grow_as_they_must() -> None:
    """Runs by the thousand, of one register and of many: what the kernel's memory is at first is far too small."""
    rows = events(" ".join(f"A{t}" for t in range(300)))
    query = automaton(
        on("A", "q0", "q0", set={"n": "n + 1"}),
        on("A", "q0", "q1"),
        on("A", "q1", "q1"),
        {"from": "q1", "to": "done", "epsilon": True, "when": "n % 50 = 3"},
        register={"n": {"type": "int", "init": 0}},
        within="5 minutes",
    )
    actual = evaluate(query, to_table(rows)).to_pylist()
    # a run takes n events in q0, one to q1 and any number there
    expected = {
        (f"A{first}", f"A{last}", n)
        for first in range(300)
        for n in range(3, 300, 50)
        for last in range(first + n, 300)
    }
    assert {(row["first"], row["last"], row["n"]) for row in actual} == expected
    assert len(actual) == len(expected) > 64_000


def test_shared_sets_are_tidied_and_stay_right() -> None:
    """A pattern that is nondeterministic everywhere, over far more events than a window holds."""
    rows = [{"id": i, "type": "T", "time": i, "kind": "E" if i % 97 == 0 else "A"} for i in range(20_000)]
    query = automaton(
        {"from": "q0", "to": "a"},
        {"from": "a", "to": "a"},
        {"from": "a", "to": "b"},
        {"from": "b", "to": "b"},
        on("E", "b", "done"),
        within="60 seconds",
    )
    actual = [(row["first"], row["last"]) for row in evaluate(query, to_table(rows)).to_pylist()]
    expected = {(last - back, last) for last in range(0, 20_000, 97) for back in range(2, 60) if last >= back}
    assert set(actual) == expected
    assert len(actual) == len(expected)


def test_an_arc_replaced_at_every_event() -> None:
    """A program may give more arcs than a file may hold: each is valid for its second only."""

    def moment(second: int) -> str:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)).isoformat()

    arcs = [
        on("AB"[second % 2], "q0", "done", valid_from=moment(second), valid_to=moment(second + 1))
        for second in range(3_000)
    ]
    table = to_table([{"id": f"e{second}", "type": "T", "time": second, "kind": "A"} for second in range(3_000)])
    plan = compile_query(automaton(*arcs), schema_of(table))
    assert run_plan(plan, table).num_rows == 1_500


@pytest.mark.parametrize("values", [1, 5, 6, 7, 20])
def test_runs_that_meet_are_one_however_many_others_there_are(values: int) -> None:
    """Each run is in both states after each event, and comes to each from both, by its second way only after all others
    have come by their first: were it not found to be there, its rows would double each time."""
    rows = [{"id": i, "type": "T", "time": 0.1 * i, "kind": "A", "n": i % values} for i in range(24)]
    rows.append({"id": 24, "type": "T", "time": 3, "kind": "E", "n": 0})
    query = automaton(
        {"from": "q0", "to": "a", "set": {"k": "e.n"}},
        *({"from": origin, "to": there} for origin in "ab" for there in "ab"),
        on("E", "a", "done"),
        register={"k": {"type": "bigint", "init": None}},
    )
    actual = evaluate(query, to_table(rows)).to_pylist()
    assert sorted((row["first"], row["k"]) for row in actual) == [(i, i % values) for i in range(24)]


def test_a_partition_is_shown_as_it_is_read() -> None:
    """A NaN is a NULL and -0.0 is 0.0, whichever of them the run's first event has: both engines say so."""
    cells = [float("nan"), None, -0.0, 0.0, None, float("nan")]
    rows = [{**row, "level": cell} for row, cell in zip(events("A1 A2 A3 A4 B5 B6"), cells, strict=True)]
    query = automaton(on("A", "q0", "q1"), on("A", "q1", "q1", ignore=True), on("B", "q1", "done"))
    query |= {"partition_by": ["level"]}
    rows += [
        {**row, "id": f"{row['id']}z", "level": cell} for row, cell in zip(events("B5 B6"), (0.0, -0.0), strict=True)
    ]
    table = to_table(rows)
    actual = [(row["first"], row["last"], repr(row["level"])) for row in evaluate(query, table).to_pylist()]
    expected = [(row["first"], row["last"], repr(row["level"])) for row in enumerate_runs(query, rows)]
    assert sorted(actual) == sorted(expected)
    assert {level for *_, level in actual} == {"None", "0.0"}
    assert len(actual) == 4
