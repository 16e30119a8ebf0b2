"""Kind matches where the page leaves room (docs/adr), and where it must not break: one small example each."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.random.matches import engine
from tests.reference.matches import reference
from tests.support.engines import to_table
from trendlake.cep_core import compile_query, evaluate, run_plan
from trendlake.cep_core.errors import BadEventsError, TooManyMatchesError
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.matches.run.compressed import unfold


def stream(text: str, **columns: list[Any]) -> list[dict[str, Any]]:
    """`A1 B2 B2` as events: types with their times; ids e0, e1 ... in this order."""
    rows = [{"id": f"e{n}", "type": word[0], "time": int(word[1:])} for n, word in enumerate(text.split())]
    for name, cells in columns.items():
        for row, cell in zip(rows, cells, strict=True):
            row[name] = cell
    return rows


def matches(pattern: str, rows: list[dict[str, Any]], **keys: Any) -> list[str]:
    """Each match as `a=e0,e1 b=e2`, as engine and reference agree."""
    query = {"kind": "matches", "pattern": pattern, "within": "10 seconds", **keys}
    answers = []
    for actual in (engine(query, rows, {}), reference(query, rows)):
        listed = [{name: cell for name, cell in row.items() if isinstance(cell, list)} for row in actual]
        answers.append(sorted(" ".join(f"{v}={','.join(ids)}" for v, ids in row.items()) for row in listed))
    assert answers[0] == answers[1]
    return answers[0]


def test_of_equal_times_neither_is_later() -> None:
    """An id is no order; where no event may be ignored, all are in one."""
    for text in ("A1 B1", "B1 A1"):
        assert matches("SEQ(A a, B b)", stream(text)) == []
    assert matches("SEQ(A a, B b)", stream("A1 B1"), select="contiguous") == ["a=e0 b=e1"]
    assert matches("SEQ(A a, B b)", stream("B1 A1"), select="contiguous") == []


def test_a_sequence_column_goes_before_ids() -> None:
    rows = stream("B1 A1", n=[2, 1])
    query = {"kind": "matches", "pattern": "SEQ(A a, B b)", "within": "1 day"}
    assert evaluate(query, to_table(rows)).num_rows == 0
    assert evaluate(query, to_table(rows), sequence="n")["a"].to_pylist() == [["e1"]]


def test_the_window_is_open_at_its_end() -> None:
    assert matches("SEQ(A a, B b)", stream("A0 B9"), within="10 seconds") == ["a=e0 b=e1"]
    assert matches("SEQ(A a, B b)", stream("A0 B10"), within="10 seconds") == []


def test_a_kleene_part_at_the_end_gives_a_match_at_each_of_its_events() -> None:
    assert matches("SEQ(A a, B b+)", stream("A1 B2 B3")) == ["a=e0 b=e1", "a=e0 b=e1,e2"]


def test_at_a_kleene_part_only_what_cannot_be_taken_is_ignored() -> None:
    """That an event could begin the next part does not hold it back; elsewhere it does."""
    rows = stream("A1 A2 B3 B4")
    assert matches("SEQ(A a+, B b)", rows) == ["a=e0,e1 b=e2", "a=e0,e1 b=e3", "a=e1 b=e2", "a=e1 b=e3"]
    assert matches("SEQ(A a, B b)", rows) == ["a=e0 b=e2", "a=e1 b=e2"]


def test_a_last_not_looks_to_the_end_of_the_first_events_window() -> None:
    assert matches("SEQ(A a, NOT B b)", stream("A0 B9")) == []
    assert matches("SEQ(A a, NOT B b)", stream("A0 B10")) == ["a=e0"]


def test_a_first_not_looks_as_far_back_as_the_window_of_the_last_event() -> None:
    assert matches("SEQ(NOT B b, A a, C c)", stream("B0 A1 C9")) == []
    assert matches("SEQ(NOT B b, A a, C c)", stream("B0 A1 C10")) == ["a=e1 c=e2"]


def test_a_not_does_not_change_what_a_run_selects() -> None:
    """NOTs are checked on the finished match: the run has taken the first C, and a later one does not save it."""
    assert matches("SEQ(A a, NOT B b, C c)", stream("A1 B2 C3 C4")) == []


def test_a_condition_on_each_event_of_a_part_that_is_done() -> None:
    """`b.x > a.x`: of all of a's events; `b.x > a[i].x`: of all but the first."""
    rows = stream("A1 A2 B3", x=[5, 3, 4])
    assert matches("SEQ(A a+, B b)", rows, where=["b.x > a.x"]) == ["a=e1 b=e2"]
    assert matches("SEQ(A a+, B b)", rows, where=["b.x > a[i].x"]) == ["a=e0,e1 b=e2", "a=e1 b=e2"]


def test_a_compressed_row_leaves_out_what_a_not_rules_out() -> None:
    """Between, first and last; a row that no match is left of is none."""
    rows = stream("A1 B2 A3 C4 C5")
    query = {"kind": "matches", "within": "4 seconds", "select": "skip_till_any_match", "output": "compressed"}
    for pattern, expected in (
        ("SEQ(A a, NOT B k, C c)", [["e2", "e3"], ["e2", "e4"]]),
        ("SEQ(A a, C c, NOT C k)", [["e0", "e3"], ["e2", "e4"]]),
        ("SEQ(NOT B k, A a, C c)", [["e0", "e3"]]),
    ):
        actual = evaluate(query | {"pattern": pattern}, to_table(rows)).to_pylist()
        assert [match["a"] + match["c"] for row in actual for match in unfold(row)] == expected


def test_non_overlapping_matches_end_first_then_start_first_then_take_each_event_early() -> None:
    rows = stream("A1 A2 B3 A4 B5")
    assert matches("SEQ(A a+, B b)", rows, output="non_overlap") == ["a=e0,e1 b=e2", "a=e3 b=e4"]
    every = {"select": "skip_till_any_match", "output": "non_overlap"}
    assert matches("SEQ(A a+, B b)", rows, **every) == ["a=e0,e1 b=e2", "a=e3 b=e4"]


def test_a_limit_is_an_error_that_names_partition_and_window() -> None:
    rows = stream("A1 A2 A3 A4", g=["u", "v", "v", "v"])
    query = {"kind": "matches", "pattern": "A a+", "where": ["[g]"], "within": "1 hour", "limit_per_partition": 6}
    with pytest.raises(TooManyMatchesError) as caught:
        evaluate(query, to_table(rows))
    assert str(caught.value).splitlines()[0] == (
        "[TOO_MANY_MATCHES] g = 'v': limit_per_partition, 6 matches, is reached in "
        "[1970-01-01T00:00:00Z, 1970-01-01T01:00:00Z)"
    )
    assert evaluate(query | {"limit_per_partition": 7}, to_table(rows)).num_rows == 7


def test_a_match_has_the_same_id_in_every_run() -> None:
    rows = stream("A1 A2 B3 B4")
    query = {"kind": "matches", "pattern": "SEQ(A a+, B b)", "within": "1 day"}
    one, other = (evaluate(query, to_table(events)) for events in (rows, rows[::-1]))
    assert one.equals(other)
    assert evaluate(query, to_table(rows[1:]))["match_id"].to_pylist() == [
        row["match_id"] for row in one.to_pylist() if "e0" not in row["a"]
    ]


@pytest.mark.parametrize("name", ["event_id", "event_time", "event_type"])
def test_an_event_without_id_time_or_type_is_an_error(name: str) -> None:
    table = to_table(stream("A1 B2"))
    column = table.schema.get_field_index(name)
    broken = table.set_column(column, name, pa.nulls(2, table.schema.field(name).type))
    with pytest.raises(BadEventsError, match=f"'{name}' has a NULL"):
        evaluate({"kind": "matches", "pattern": "A a", "within": "1 day"}, broken)


def test_two_events_of_one_id_are_an_error() -> None:
    table = pa.concat_tables([to_table(stream("A1")), to_table(stream("A2"))])
    with pytest.raises(BadEventsError, match="the same 'event_id'"):
        evaluate({"kind": "matches", "pattern": "A a", "within": "1 day"}, table)


def test_a_plan_travels() -> None:
    """Pickled for Spark's workers, and equal there."""
    query = {"kind": "matches", "pattern": "SEQ(A a+, B b)", "within": "1 day"}
    plan = compile_query(query, schema_of(to_table(stream("A1"))))
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert {plan: 1}[plan] == 1


def test_more_matches_than_could_be_written_fit_a_compressed_row() -> None:
    """200 As under skip_till_any_match: 2^200 - 1 matches, counted and read one by one."""
    rows = stream(" ".join([f"A{second}" for second in range(200)] + ["B200"]))
    query = {"kind": "matches", "pattern": "SEQ(A a+, B b)", "within": "1 hour", "select": "skip_till_any_match"}
    (row,) = evaluate(query | {"output": "compressed"}, to_table(rows)).to_pylist()
    assert row["matches"] is None
    assert row["matches_log10"] == pytest.approx(200 * np.log10(2), rel=1e-12)
    first = next(unfold(row))
    assert first["b"] == ["e200"]
    assert len(row["graph"]) <= 2 * 201


EXPLODES = "SEQ(A a+, B b+, C c+, E e)"


@pytest.mark.parametrize("select", ["skip_till_next_match", "skip_till_any_match", "contiguous"])
@pytest.mark.parametrize("order", ["mixed", "sorted"])
def test_a_pattern_that_explodes_a_backtracking_matcher(select: str, order: str) -> None:
    """80,000 rows of A, B and C with no E: none is found (`make bench` tells how fast)."""
    count = 80_000
    kinds = np.random.default_rng(1).choice(list("ABC"), count)
    times = pa.array(np.arange(count) * 1_000_000).cast(pa.timestamp("us", tz="UTC"))
    types = pa.array(np.sort(kinds) if order == "sorted" else kinds)
    table = pa.table({"event_id": np.arange(count), "event_time": times, "event_type": types})
    query = {"kind": "matches", "pattern": EXPLODES, "select": select, "within": "30 days"}
    assert evaluate(query, table).num_rows == 0


def test_a_buffer_that_is_cleared_loses_no_match(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read and cleared after every few links, in place of every few millions."""
    random = np.random.default_rng(3)
    kinds = random.choice(list("AB"), 300)
    rows = stream(" ".join(f"{kind}{n}" for n, kind in enumerate(kinds)), x=random.integers(0, 4, 300).tolist())
    every = ("skip_till_next_match", "skip_till_any_match"), ("all", "non_overlap", "compressed"), (True, False)
    for select, output, registers in product(*every):
        query = {"kind": "matches", "pattern": "SEQ(A a+, B b)", "within": "12 seconds", "select": select}
        where = ["a[i].x >= a[i-1].x", "b.x < a[1].x"] if registers else ["a.x > 0"]
        query |= {"output": output, "where": where}
        whole = evaluate(query, to_table(rows))
        assert whole.num_rows > 10
        monkeypatch.setattr("trendlake.cep_core.matches.run.matcher.MANY_LINKS", 5)
        monkeypatch.setattr("trendlake.cep_core.matches.run.matcher.ROOM", 16)
        cleared = evaluate(query, to_table(rows))
        monkeypatch.undo()
        assert _by_row(cleared) == _by_row(whole)


def _by_row(table: pa.Table) -> list[str]:
    return sorted(str({**row, "graph": None}) for row in table.to_pylist())


def test_a_first_and_a_last_not_look_two_windows_back_from_where_a_match_is_decided() -> None:
    """The work is cut by panes of a day or `within`; the events that either NOT needs are in the pane's window."""
    query = {"kind": "matches", "pattern": "SEQ(NOT B b, A a, NOT C c)", "within": "10 seconds"}
    plan = compile_query(query, schema_of(to_table(stream("A1"))))
    rows = stream("B0 A9 A15 C24")
    whole = evaluate(query, to_table(rows))
    assert whole["a"].to_pylist() == []
    for j in range(-3, 6):
        assert run_plan(plan, to_table(rows), range(j, j + 1)).num_rows == 0
    start, end = plan.windows.span(range(2, 3))
    assert (start, end) == (0, 30_000_000)
