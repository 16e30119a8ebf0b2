"""Tables of results: what was measured first, in the width of a terminal, of rows of every kind."""

from __future__ import annotations

import csv
import random
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from rich.console import Console

from trendlake.cep_core import AnyPlan, EventSchema, compile_query, run_plan
from trendlake.jobs.actions.show import changes_of
from trendlake.jobs.python import html
from trendlake.jobs.terminal.printing import NARROW
from trendlake.jobs.terminal.rows import Rows, table_of
from trendlake.pipelines.report.amounts import length, time_text
from trendlake.pipelines.results.columns import Reading
from trendlake.pipelines.results.row_files import write_rows

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
SCHEMA = EventSchema(
    {"event_id": "string", "event_time": "timestamp", "event_type": "string", "machine": "string", "v": "double"}
)
EVENTS = pa.Table.from_pylist(
    [
        {
            "event_id": f"{NOON + timedelta(minutes=n):%Y-%m-%d %H:%M:%S.000000Z}|{n + 100}",
            "event_time": NOON + timedelta(minutes=n),
            "event_type": "R",
            "machine": "the first machine" if n % 3 else "m2",
            "v": float(n * 7 % 10),
        }
        for n in range(40)
    ]
)
ROW_PATTERN = """
  FROM e MATCH_RECOGNIZE (
    PARTITION BY machine ORDER BY event_time
    MEASURES COUNT(*) AS n, ARRAY_AGG(up.event_id) AS ids, ARRAY_AGG(up.v) AS vs,
      LAST(up.event_time) - low.event_time AS lasted
    PATTERN (low up+) DEFINE up AS v > PREV(v))
"""
KINDS: dict[str, dict[str, Any]] = {
    "trends": {
        "pattern": "R r+",
        "where": ["[machine]", "r.v < NEXT(r).v"],
        "group_by": ["machine"],
        "return": {"runs": "COUNT(*)", "top": "MAX(r.v)", "ids": "LONGEST(*)", "slowest": "MAX(DURATION(*))"},
        "within": "1 hour",
    },
    "matches": {
        "kind": "matches",
        "pattern": "SEQ(R low, R r+, R after)",
        "where": ["[machine]", "r[1].v > low.v", "r[i].v > r[i-1].v", "after.v <= r[r.LEN].v"],
        "select": "partition_contiguous",
        "return": {"rises": "COUNT(r)", "bottom": "low.v", "lasted": "after.event_time - low.event_time"},
        "within": "2 days",
    },
    "graphs": {
        "kind": "matches",
        "pattern": "SEQ(R low, R r+)",
        "where": ["[machine]", "r[i].v > r[i-1].v"],
        "output": "compressed",
        "within": "10 minutes",
    },
    "automaton": {
        "kind": "automaton",
        "register": {"low": {"type": "double", "init": None}},
        "start": "q0",
        "final": ["a_state_with_a_long_name"],
        "arcs": [
            {"from": "q0", "to": "down", "when": "e.v < 3", "set": {"low": "e.v"}},
            {"from": "down", "to": "a_state_with_a_long_name", "when": "e.v > 6"},
        ],
        "partition_by": ["machine"],
        "within": "2 hours",
    },
    "algebra": {
        "kind": "algebra",
        "partition_by": ["machine"],
        "pattern": "SELECT event_id_1 AS a, v_1 AS first_v, v AS last_v, DUR AS lasted FROM R NEXT{$2.v > 5} R",
        "within": "1 day",
    },
    "row patterns": {"kind": "match_recognize", "pattern": ROW_PATTERN},
    "a family": {
        "pattern": "R r+",
        "where": ["[machine]", "r.v > $least"],
        "group_by": ["machine"],
        "return": {"runs": "COUNT(*)", "high": "MAX(r.v)"},
        "within": "1 hour",
        "for_each": {"least": [1, 5]},
    },
}


def answered(kind: str) -> tuple[AnyPlan, list[dict[str, Any]]]:
    plan = compile_query(KINDS[kind], SCHEMA)
    rows = run_plan(plan, EVENTS).to_pylist()
    assert rows
    return plan, rows


def printed(rows: Rows, width: int = 80) -> list[str]:
    console = Console(width=width, file=StringIO(), highlight=False, markup=False)
    console.print(rows)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "['" not in text
    return [line.rstrip() for line in text.splitlines()]


@pytest.mark.parametrize("ids", [False, True], ids=["folded", "ids"])
@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("kind", KINDS)
def test_no_line_is_longer_than_a_terminal(kind: str, width: int, ids: bool) -> None:
    """Whatever the kind; measures come first, and no value is cut: a word that is too long goes on below."""
    plan, rows = answered(kind)
    lines = printed(table_of(plan, f"{kind}: rows", rows, ids=ids), width)
    assert max(map(len, lines)) <= min(width, 80)
    first = Reading.of(plan).measures[0]
    assert lines[1].split()[0] == first


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_ids_are_numbers_until_they_are_asked_for(kind: str) -> None:
    plan, rows = answered(kind)
    reading = Reading.of(plan)
    names = [*reading.listed_ids]
    assert bool(names) == (kind in ("trends", "matches", "row patterns"))
    for name in names:
        several = [row for row in rows if len(row[name] or ()) > 1]
        text = "\n".join(printed(table_of(plan, "", several, [name])))
        assert text.splitlines()[2:][: len(several)] == [f"{len(row[name])} events" for row in several]
        assert not several or "`--ids`" in text
        single = [row for row in rows if len(row[name] or ()) == 1]
        assert all(row[name][0] in "\n".join(printed(table_of(plan, "", [row], [name]))) for row in single)
        in_full = printed(table_of(plan, "", rows[:1], ids=True))
        assert "".join("".join(in_full).split()).count("|1") >= len(rows[0][name])
        assert all("".join(one.split()) in "".join("".join(in_full).split()) for one in rows[0][name])


def test_ids_give_way_to_what_was_measured() -> None:
    """The widest first; the line below the table names them."""
    plan, rows = answered("matches")
    _, head, *body = printed(table_of(plan, "rises", rows))
    assert head.split() == ["rises", "bottom", "lasted", "start", "end", "r"]
    assert body[0].split()[:3] == [f"{rows[0]['rises']}", f"{rows[0]['bottom']:.2f}", "0:30:00"]
    assert body[-1] == "left out: low, after, match_id; `--ids` prints them"
    assert len(body) == len(rows) + 1


def test_rows_too_wide_for_a_table_are_records() -> None:
    plan, rows = answered("algebra")
    _, *lines = printed(table_of(plan, "", rows[:2]))
    row = rows[0]
    assert lines[:8] == [
        f"a        {row['a']}",
        f"first_v  {row['first_v']:.2f}",
        f"last_v   {row['last_v']:.2f}",
        f"lasted   {length(row['lasted'])}",
        f"machine  {row['machine']}",
        f"start    {row['start']:%Y-%m-%d %H:%M}",
        f"end      {row['end']:%Y-%m-%d %H:%M}",
        "",
    ]


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("terminal", [True, False])
def test_a_list_of_any_texts(width: int, terminal: bool) -> None:
    """What a command lists is a table where it fits, else records; no line is longer than a terminal, no text is cut.
    In a pipe a program reads a line for each where 150 characters hold it."""
    rng = random.Random(width)
    names = ["run_id", "pattern", "stage", "rows", "+ / ~ / -", "finished (UTC)"]
    for longest in (3, 12, 24, 100):
        texts = [["x" * rng.randrange(1, longest) for _ in names] for _ in range(5)]
        console = Console(width=width, file=StringIO(), force_terminal=terminal, color_system=None)
        if not terminal:
            console.width = NARROW
        console.print(Rows.of_a_list(names, texts, right=["rows"]))
        lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
        assert max(len(line.rstrip()) for line in lines) <= console.width
        assert "".join(lines).count("x") == sum(len(text) for row in texts for text in row)
        if not terminal and longest < 25:
            assert len(lines) == 1 + len(texts)


def test_columns_that_are_asked_for_stay() -> None:
    """In the order in which they are asked for, also where they do not fit a table."""
    plan, rows = answered("matches")
    names = ["match_id", "low", "after", "rises"]
    lines = printed(table_of(plan, "", rows[:1], names))
    assert [line.split()[0] for line in lines[1:5]] == names
    assert lines[1].split()[1] == rows[0]["match_id"]


@pytest.mark.parametrize("kind", KINDS)
def test_notebooks_show_the_same_columns(kind: str) -> None:
    """In the same order, lists as numbers of events, durations as clocks; of chosen columns those."""
    plan, rows = answered(kind)
    table = run_plan(plan, EVENTS)
    shown = html.rows(kind, table, plan)
    reading = Reading.of(plan)
    assert re.findall(r"<th(?: class=\"number\")?>(.*?)</th>", shown) == [*reading.shown]
    assert "['" not in unescape(shown)
    first = next((name for name in reading.measures if reading.unit(name)), None)
    if first is not None:
        assert f">{time_text(rows[0][first], reading.unit(first))}</td>" in shown
    for name in reading.listed_ids:
        several = [row for row in rows[:10] if len(row[name]) > 1]
        assert all(f">{len(row[name])} events</td>" in shown for row in several)
    two = [reading.measures[0], reading.shown[-1]]
    assert re.findall(r"<th(?: class=\"number\")?>(.*?)</th>", html.rows(kind, table.select(two[::-1]), plan)) == two


@pytest.mark.parametrize("kind", ["matches", "algebra", "row patterns", "trends"])
def test_durations_are_clocks(kind: str) -> None:
    """Of all kinds that measure them; in seconds or microseconds."""
    plan, rows = answered(kind)
    name = "slowest" if kind == "trends" else "lasted"
    lines = printed(table_of(plan, "", rows[:1], [name]))
    assert lines[2] == length(round(rows[0][name] * 1e6) if kind == "trends" else rows[0][name])
    assert re.fullmatch(r"\d:\d\d:\d\d", lines[2])


def test_a_spreadsheet_runs_no_cell_of_a_csv_file(tmp_path: Path) -> None:
    """Texts of the data as `quarantine show --out` writes them; a list is JSON; a number keeps its sign."""
    at = datetime(2026, 1, 5, tzinfo=UTC)
    rows = pa.table(
        {
            "=place": ["=cmd|'/c calc'!A1", "'tis", None, ""],
            "n": pa.array([Decimal(-1), Decimal(10**30), None, Decimal(0)], pa.decimal128(38, 0)),
            "e": pa.array([["=1", "b"], [], None, [None]], pa.list_(pa.string())),
            "times": pa.array([[at], [], None, [None]], pa.list_(pa.timestamp("us", "UTC"))),
        }
    )
    write_rows(rows, tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(newline="") as file:
        header, *cells = csv.reader(file)
    assert header == ["'=place", "n", "e", "times"]
    assert cells == [
        ["'=cmd|'/c calc'!A1", "-1", '["=1", "b"]', '["2026-01-05T00:00:00Z"]'],
        ["''tis", "1" + "0" * 30, "[]", "[]"],
        ["", "", "", ""],
        ["'", "0", "[null]", "[null]"],
    ]
    write_rows(rows, tmp_path / "rows.parquet")
    assert parquet.read_table(tmp_path / "rows.parquet").to_pylist() == rows.to_pylist()


@pytest.mark.parametrize(
    ("counts", "text"),
    [((1_200, 3, 0), "1,200 / 3 / 0"), ((1_200, 0, None), "1,200 / 0 / -"), ((None, None, None), "")],
    ids=["published", "delivered", "neither"],
)
def test_changes_of_a_run_record(counts: tuple[int | None, ...], text: str) -> None:
    """A delivery counts no deleted rows."""
    names = ("rows_inserted", "rows_updated", "rows_deleted")
    assert changes_of(dict(zip(names, counts, strict=True))) == text
