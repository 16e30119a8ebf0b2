"""What an implementer would skip: the pitfalls of the algebra, one after the other. Times are seconds."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.reference.algebra import reference
from tests.support.intervals import plain, table_of
from trendlake.cep_core import PatternErrors, compile_query, evaluate, run_plan
from trendlake.cep_core.events.schema import schema_of

Row = dict[str, Any]
NEXT = "SELECT event_id_1 AS a, event_id AS b FROM A NEXT A"
FOLD = "SELECT v_1 AS first, v AS last FROM (SELECT v FROM A) FOLD{, $2.v > $.v, } (SELECT v FROM A)"


def event(number: int, time: float, start: float | None = None, kind: str = "A", **more: Any) -> Row:
    row = {"id": f"e{number}", "type": kind, "time": time, **more}
    return row if start is None else {**row, "start": start}


def values(*pairs: tuple[float, Any], kind: str = "A") -> list[Row]:
    """An event for each (time, v)."""
    return [event(number, time, kind=kind, v=v) for number, (time, v) in enumerate(pairs)]


def answer(pattern: str, rows: list[Row], within: str = "1 hour", **more: Any) -> list[Row]:
    """The engine's rows, which the sets by definition give too; sorted by their text."""
    query = {"kind": "algebra", "pattern": pattern, "within": within, **more}
    if any("start" in row for row in rows):
        rows = [{"start": row["time"], **row} for row in rows]
        query["interval_start"] = "start"
    actual = sorted(plain(evaluate(query, table_of(rows))), key=str)
    assert actual == sorted(reference(query, rows), key=str)
    return actual


def pairs(rows: list[Row], *names: str) -> set[tuple[Any, ...]]:
    return {tuple(row[name] for name in names) for row in rows}


def test_01_events_of_one_time_are_never_before_one_another() -> None:
    rows = [event(0, 1), event(1, 2), event(2, 2)]
    assert pairs(answer(NEXT, rows), "a", "b") == {("e0", "e1"), ("e0", "e2")}


def test_02_an_event_that_starts_at_anothers_end_is_not_after_it() -> None:
    rows = [event(0, 2, 1), event(1, 4, 2), event(2, 6, 3)]
    assert pairs(answer(NEXT, rows), "a", "b") == {("e0", "e2")}


def test_03_an_overlapping_event_does_nothing() -> None:
    """It neither matches, nor ends a FOLD, nor keeps a later one away."""
    rows = [event(0, 3, 1, v=1), event(1, 4, 2, v=0), event(2, 6, 5, v=2)]
    assert pairs(answer(FOLD, rows), "first", "last") == {(1, 2), (0, 2)}
    assert pairs(answer(NEXT, rows), "a", "b") == {("e0", "e2"), ("e1", "e2")}


def test_04_the_next_is_that_of_least_end() -> None:
    rows = [event(0, 1, 0), event(1, 9, 2), event(2, 8, 3)]
    assert pairs(answer(NEXT, rows), "a", "b") == {("e0", "e2")}


def test_05_of_two_simultaneous_candidates_one_fails() -> None:
    """The other goes on; if both fail, the instance ends."""
    assert (1, 4) in pairs(answer(FOLD, values((1, 1), (2, 2), (2, 0), (3, 4))), "first", "last")
    assert (1, 4) not in pairs(answer(FOLD, values((1, 1), (2, -1), (2, 0), (3, 4))), "first", "last")


def test_06_one_simultaneous_candidate_ends_an_instance() -> None:
    """The other event of that moment is skipped by the first condition."""
    pattern = "SELECT v_1 AS first, v AS last FROM A FOLD{$2.k = $.k, $2.v > $.v, } A"
    rows = [event(0, 1, k=1, v=1), event(1, 2, k=2, v=9), event(2, 2, k=1, v=0), event(3, 3, k=1, v=5)]
    assert pairs(answer(pattern, rows), "first", "last") == {(0, 5)}


def test_07_an_instance_takes_no_other_event_of_its_moment() -> None:
    """Also where both come from earlier statements."""
    pattern = f"{FOLD} PUBLISH runs SELECT last_1 AS a, last AS b FROM runs NEXT runs"
    assert answer(pattern, values((1, 1), (2, 2), (2, 3), (3, 4))) == []


def test_08_a_first_event_alone_is_no_row_of_fold() -> None:
    assert answer(FOLD, values((1, 1))) == []


def test_09_a_condition_that_is_null() -> None:
    """It skips in NEXT and in the first condition, and stops in the second; so does NOT of it."""
    rows = values((1, 1), (2, None), (3, 3))
    for condition in ("$2.v > $1.v", "NOT ($2.v <= $1.v)"):
        pattern = f"SELECT v_1 AS first, v AS last FROM A NEXT{{{condition}}} A"
        assert pairs(answer(pattern, rows), "first", "last") == {(1, 3)}
    skips = FOLD.replace("{, $2.v > $.v, }", "{NOT ($2.v <= $.v), , }")
    assert pairs(answer(skips, rows), "first", "last") == {(1, 3)}
    assert answer(FOLD, rows) == []
    assert answer(FOLD.replace("$2.v > $.v", "NOT ($2.v <= $.v)"), rows) == []


@pytest.mark.parametrize("order", [("$.n + 1 AS n", "$.n * 10 AS m"), ("$.n * 10 AS m", "$.n + 1 AS n")])
def test_10_values_of_one_fold_read_those_before_the_step(order: tuple[str, str]) -> None:
    pattern = f"SELECT n, m FROM (SELECT v, 1 AS n, 0 AS m FROM A) FOLD{{, , {', '.join(order)}}} (SELECT v FROM A)"
    rows = values((1, 1), (2, 2), (3, 3))
    assert pairs(answer(pattern, rows), "start", "n", "m") == {(10**6, 2, 10), (10**6, 3, 20), (2 * 10**6, 2, 10)}


def test_11_what_is_of_the_first_the_last_and_the_new_event_differs() -> None:
    values_ = "$1.v AS f, $.v AS l, $2.v AS s, $.DUR AS d, $1.DUR AS d1, $2.DUR AS d2, DUR AS w"
    begun = "SELECT v, 0 AS f, 0 AS l, 0 AS s, 1 second AS d, 1 second AS d1, 1 second AS d2, 1 second AS w FROM A"
    pattern = f"SELECT f, l, s, d, d1, d2, w FROM ({begun}) FOLD{{, , {values_}}} (SELECT v FROM A)"
    rows = [event(0, 2, 1, v=1), event(1, 5, 3, v=2), event(2, 9, 6, v=3)]
    second = 1_000_000
    (row,) = [row for row in answer(pattern, rows) if (row["f"], row["s"]) == (1, 3)]
    assert (row["l"], row["d"], row["d1"], row["d2"], row["w"]) == (2, 4 * second, second, 3 * second, 8 * second)


def test_12_equal_rows_are_one() -> None:
    """In attributes, start and end; rows that differ in start only are two."""
    assert len(answer("SELECT v FROM A", values((1, 1), (1, 1)))) == 1
    assert len(answer("SELECT v FROM A NEXT B", [*values((1, 1), (2, 1)), event(9, 3, kind="B", v=5)])) == 2


def test_13_count_counts_what_projection_left() -> None:
    rows = values((1, 7), (2, 7), (2, 7), (3, 7))
    assert pairs(answer("SELECT COUNT(*) AS n FROM (SELECT v FROM A)", rows), "end", "n") == {
        (10**6, 1),
        (2 * 10**6, 1),
        (3 * 10**6, 1),
    }
    runs = "SELECT COUNT(*) AS n FROM (SELECT v FROM A FOLD{, , } A)"
    assert pairs(answer(runs, rows), "end", "n") == {(2 * 10**6, 1), (3 * 10**6, 2)}


def test_14_names_of_a_chain() -> None:
    pattern = "FROM (SELECT x, v FROM A) NEXT (SELECT x FROM A) NEXT (SELECT x FROM A)"
    rows = [event(number, number, x=number, v=-number) for number in range(3)]
    (row,) = answer(pattern, rows)
    assert row == {"start": 0, "end": 2 * 10**6, "x_1_1": 0, "v": 0, "x_1": 1, "x": 2}


def test_15_union_goes_by_name() -> None:
    pattern = "FROM (SELECT v, w FROM A) UNION (SELECT w, v FROM B)"
    rows = [event(0, 1, v=1, w=2), event(1, 2, kind="B", v=1, w=2)]
    assert pairs(answer(pattern, rows), "v", "w") == {(1, 2)}


def test_16_a_partition_column_occurs_once_and_null_is_a_partition() -> None:
    rows = [event(0, 1, k=None, v=1), event(1, 2, k="x", v=2), event(2, 3, k=None, v=3)]
    (row,) = answer("FROM (SELECT v FROM A) NEXT A", [dict(row, w=0) for row in rows], partition_by=["k"])
    assert (row["k"], row["v_1"], row["v"]) == (None, 1, 3)
    assert "k_1" not in row


def test_17_end_less_start_equal_to_within_is_no_row() -> None:
    rows = [event(0, 0), event(1, 4), event(2, 5)]
    pattern = "SELECT event_id_1 AS a, event_id AS b FROM A FOLD{, , } A"
    assert pairs(answer(pattern, rows, "5 seconds"), "a", "b") == {("e0", "e1"), ("e1", "e2")}


def test_18_a_pane_with_its_reach_has_its_rows() -> None:
    """With instants too, each of which makes the reach longer."""
    inner = "SELECT COUNT(*) AS n FROM (SELECT event_id FROM A NEXT A)"
    pattern = f"""{inner} PUBLISH p
    SELECT SUM(n) AS n FROM (FROM p NEXT (SELECT n AS m FROM p)) PUBLISH q
    FROM q NEXT (SELECT n AS o FROM q)"""
    rows = [event(number, number // 2) for number in range(40)]
    plan = compile_query({"kind": "algebra", "pattern": pattern, "within": "4 seconds"}, schema_of(table_of(rows)))
    assert plan.reach == 3 * 4_000_000
    whole = plain(run_plan(plan, table_of(rows)))
    assert whole
    paned = [row for j in range(-1, 7) for row in plain(run_plan(plan, table_of(rows), range(j, j + 1)))]
    assert sorted(paned, key=str) == sorted(whole, key=str)


def test_19_order_and_sequence_change_nothing() -> None:
    rows = [event(number, number // 3, v=number % 4, sequence=-number) for number in range(15)]
    expected = answer(FOLD, rows)
    query = {"kind": "algebra", "pattern": FOLD, "within": "1 hour"}
    for seed in range(3):
        table = table_of(random.Random(seed).sample(rows, len(rows)))
        assert sorted(plain(evaluate(query, table, sequence="sequence")), key=str) == expected


def test_20_a_changed_event_touches_rows_up_to_the_reach() -> None:
    """An insertion, a change and a deletion at time t: rows that end before t, or the reach after it, stay."""
    pattern = "SELECT COUNT(*) AS n, SUM(v) AS total FROM (SELECT v FROM A NEXT{$2.v > $1.v} A)"
    rows = values(*((time, time % 3) for time in range(20)))
    before = answer(pattern, rows, "3 seconds")
    inserted = [*rows, event(99, 7, v=5)]
    for changed in (inserted, [dict(r, v=9) if r["time"] == 7 else r for r in rows], rows[:7] + rows[8:]):
        after = answer(pattern, changed, "3 seconds")
        low, high = 7_000_000, 7_000_000 + 6_000_000
        assert [r for r in before if not low <= r["end"] < high] == [r for r in after if not low <= r["end"] < high]
        assert before != after


def test_21_a_counter_that_adds_doubles_is_a_double_in_every_row() -> None:
    """Also in one branch of a UNION."""
    pattern = """
    SELECT total FROM (SELECT v, 0 AS total FROM A) FOLD{, , $.total + $2.v AS total} (SELECT v FROM A) PUBLISH sums
    FROM sums UNION (SELECT 1 AS total FROM A)"""
    rows = answer(pattern, values((1, 0.5), (2, 2.0), (3, 1.0)))
    assert {type(row["total"]) for row in rows} == {float}


def test_22_a_pattern_reads_neither_itself_nor_what_is_later() -> None:
    table = table_of(values((1, 1)))
    for pattern, place in (("FROM p NEXT A PUBLISH p", "1:6"), ("FROM q PUBLISH p FROM A PUBLISH q", "1:6")):
        with pytest.raises(PatternErrors, match="is published later, or by this statement") as failure:
            evaluate({"kind": "algebra", "pattern": pattern, "within": "1 hour"}, table)
        assert f"query.pattern:{place}:" in str(failure.value)
        assert "move that statement up" in str(failure.value)
