"""Tests of patterns with `sources` and `lookup`: events by table, rows of reference tables, and their mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.pipelines.revision.test_several_tables import project_of
from tests.pipelines.steps.test_lookups import CURRENT, ONE, SEVERAL
from trendlake.cep_core.errors import PatternErrors, TrendlakeError
from trendlake.pipelines.authoring.pattern_tests import Verdict, run_tests

BOTH: Mapping[str, Any] = {**SEVERAL, "lookup": {"customer": {**CURRENT, "of": ["Order"]}}, "derive": None}
ONE_NOW: Mapping[str, Any] = {**ONE, "lookup": {"customer": CURRENT}}
PAID = """\
- name: of a customer of segment b2b
  events:
    orders:
      - {number: 7, at: 2026-01-01T09:00:00Z, customer_id: a, amount: 5}
      - {at: 2026-01-01T09:01:00Z, customer_id: b}
    payments:
      - {ref: p, paid: 2026-01-01T10:00:00Z, cust: a, paid_amount: 5}
      - {paid: 2026-01-01T10:30:00Z, cust: b}
  tables:
    customers: [{customer_id: a, segment: b2b}, {customer_id: b, segment: b2c}]
  expect:
    - {o: ["orders:7"], p: ["payments:p"], total: 5}
- name: of no customer that is there
  events: {orders: [{at: 2026-01-01, customer_id: a}], payments: [{paid: 2026-01-01T10:00:00Z, cust: a}]}
  expect: []
"""
SEGMENTS = """\
- name: by segment
  events:
    - {at: 2026-01-01T01:00:00Z, customer_id: a, amount: 5}
    - {at: 2026-01-01T02:00:00Z, customer_id: a, amount: 7}
    - {at: 2026-01-01T03:00:00Z, customer_id: c, amount: 1}
  tables: {customers: [{customer_id: a, segment: b2b}]}
  expect: [{segment: b2b, n: 3, most: 7}, {segment: null, n: 1}]
"""


def verdicts(folder: Path, keys: Mapping[str, Any], text: str) -> list[Verdict]:
    tables = project_of(folder, **keys)
    file = tables.project.patterns / "tests" / "unpaid.yaml"
    file.parent.mkdir()
    file.write_text(text)
    return list(run_tests(tables.project, file))


@pytest.mark.parametrize(("keys", "text"), [(BOTH, PAID), (ONE_NOW, SEGMENTS)], ids=["sources", "source"])
def test_tests_that_hold(tmp_path: Path, keys: Mapping[str, Any], text: str) -> None:
    assert [verdict.differences for verdict in verdicts(tmp_path, keys, text)] == [()] * text.count("- name")


def test_a_difference(tmp_path: Path) -> None:
    """A table that a test leaves out has no rows."""
    first, second = verdicts(
        tmp_path, BOTH, PAID.replace("customer_id: a, segment: b2b", "customer_id: a, segment: b2")
    )
    assert first.differences == ("missing    {o: [orders:7], p: [payments:p], total: 5}",)
    assert second.differences == ()


def test_a_table_that_is_looked_up_in_itself(tmp_path: Path) -> None:
    """Its rows are the events."""
    lookup = {"table": "orders", "key": "number", "columns": [{"again": "amount"}]}
    keys = {**ONE, "lookup": {"same": lookup}, "where": None, "group_by": ["again"], "return": {"n": "COUNT(*)"}}
    text = "- {name: a, events: [{number: 1, at: 2026-01-01, amount: 4}], expect: [{again: 4, n: 1}]}\n"
    assert [verdict.differences for verdict in verdicts(tmp_path, keys, text)] == [()]


@pytest.mark.parametrize(
    ("keys", "text", "message", "hint"),
    [
        (BOTH, "events: []", "events of the tables orders, payments", "events: {orders: [...], payments: [...]"),
        (ONE_NOW, "events: {orders: []}", "the pattern reads events of one table", "events: [...]"),
        (BOTH, "events: {order: []}", "the pattern does not read 'order'", "did you mean 'orders'?"),
        (BOTH, "events: {customers: []}", "'customers' is a table of `lookup`", "tables: {customers: [...]}"),
        (
            BOTH,
            "events: {}, tables: {orders: []}",
            "the rows of 'orders' are events",
            "tables: those of `lookup` alone",
        ),
        (BOTH, "events: {}, tables: {customer: []}", "does not read 'customer'", "did you mean 'customers'?"),
        (BOTH, "events: {}, tables: {customers: [{segmnt: x}]}", "customers has no column 'segmnt'", "'segment'"),
        (BOTH, "events: {orders: [{at: 2026-01-01, cust: x}]}", "orders has no column 'cust'", "known: number"),
        (ONE_NOW, "events: [{at: 2026-01-01, segment: x}]", "no column 'segment'", "rows of that under `tables`"),
        (BOTH, "events: {orders: [{number: 1}]}", "the event has no at", ""),
        (BOTH, "events: {orders: [{at: 2026-01-01, amount: x}]}", "amount: expected bigint, found 'x'", ""),
        (BOTH, "events: {orders: {at: 2026-01-01}}", "list", "a list of {name, events, expect}"),
        (BOTH, "events: {}, tables: []", "", "a list of {name, events, expect}"),
    ],
)
def test_mistakes_of_a_file(tmp_path: Path, keys: Mapping[str, Any], text: str, message: str, hint: str) -> None:
    with pytest.raises(PatternErrors) as caught:
        verdicts(tmp_path, keys, f"- {{name: a, {text}, expect: []}}\n")
    (error,) = caught.value.errors
    assert message in error.message
    assert hint in str(error.hint)
    assert error.place is not None
    assert error.place.line == 1


def test_rows_that_hold_at_one_moment(tmp_path: Path) -> None:
    """Are an error with the place of the test."""
    text = SEGMENTS.replace(
        "[{customer_id: a, segment: b2b}]", "[{customer_id: z, segment: a}, {customer_id: z, segment: b}]"
    )
    with pytest.raises(TrendlakeError, match="customers: key z has 2 rows") as caught:
        verdicts(tmp_path, ONE_NOW, text)
    assert caught.value.code == "LOOKUP_REPEATED"
    assert "unpaid.yaml:1:" in str(caught.value)
