"""Revisions by changed reference tables: rows are those of a run from nothing, and no other windows are computed than
those with an event that gets other columns."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.pipelines.revision.test_several_tables import all_steps, on_spark, project_of, published, quarantined
from tests.pipelines.steps.test_lookups import (
    CURRENT,
    NOW,
    ONE,
    OVER_TIME,
    SEVERAL,
    VALID,
    deliver,
    maker,
    rows_by_hand,
)
from tests.support.tables_lake import SeveralTables, customer, order, payment
from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.errors import ToleranceError, TooMuchError
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.revise import revise


@pytest.fixture(params=["here", "plain", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.repeats])])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return maker(request, tmp_path)


def revised(tables: SeveralTables, name: str, days: float = 2) -> Record:
    """A revision, after which the results are those of the tables as they are."""
    record = revise(tables.run(0, days, name))
    assert published(tables) == rows_by_hand(tables, tables.run(0, days, "again"))
    return record


def changes(record: Record) -> dict[str, Any]:
    """What the record says of looked up events."""
    (check,) = [check for check in record.checks if check.name == "lookup_changes"]
    return dict(check.data)


@pytest.mark.parametrize(
    ("keys", "customers", "other", "windows"),
    [
        (ONE, OVER_TIME, [customer("2", "a", "new", 5), customer("9", "zz", "b2b")], 1),
        (SEVERAL, NOW, [customer("2", "b", "b2b")], 2),
        ({**ONE, "lookup": {"customer": CURRENT}}, NOW, [customer("1", "a", "b2c"), customer("3", None, "-")], 1),
    ],
    ids=["valid", "several", "current"],
)
def test_a_changed_row(place: Any, keys: Mapping[str, Any], customers: Any, other: Any, windows: int) -> None:
    """Changes the windows of the events that used it, and no others: of the fourth hour of the first day."""
    tables = place(**keys)
    deliver(tables, *customers)
    tables.deliver("orders", [order(20, 40, "z")])
    all_steps(tables.run(0, 2, "first"))
    before = published(tables)
    tables.deliver("customers", other)
    record = revised(tables, "second")
    assert published(tables) != before
    assert changes(record)["rows"] == {"customers": 2 + (len(other) - 1) * (1 if other[-1]["row"] == "9" else 2)}
    assert record.windows == windows
    assert changes_nothing(tables)


def changes_nothing(tables: SeveralTables) -> bool:
    """A row that no event uses, and a note that no lookup reads."""
    tables.deliver("customers", [customer("77", "nobody", "b2b")])
    record = revised(tables, "third")
    assert (record.windows, record.rows_updated) == (0, 0)
    tables.deliver("customers", [{**customer("77", "nobody", "b2b"), "note": "other"}])
    record = revised(tables, "fourth")
    return changes(record) == {"events": 0, "rows": {}} and record.windows == 0


@pytest.mark.long
def test_events_and_rows_change_together(place: Any) -> None:
    tables = place(**ONE)
    deliver(tables, *OVER_TIME)
    all_steps(tables.run(0, 2, "first"))
    tables.deliver("orders", [order(1, 1, "b", 50), order(30, 2, "a", 60)])
    tables.deliver("customers", [customer("1", "a", "late", -9, 5), customer("9", "c", "b2b", 6, 8)])
    revised(tables, "second")


@pytest.mark.long
def test_rows_that_hold_at_one_moment(place: Any) -> None:
    """End a revision; the results stay as they were, until the table is mended."""
    tables = place(**ONE)
    deliver(tables, *OVER_TIME)
    all_steps(tables.run(0, 2, "first"))
    before = published(tables)
    tables.deliver("customers", [customer("9", "a", "b2b", 4, 6)])
    with pytest.raises(TrendlakeError, match="key a has 2 rows") as repeated:
        revise(tables.run(0, 2, "second"))
    assert repeated.value.code == "LOOKUP_REPEATED"
    assert published(tables) == before
    tables.deliver("customers", [customer("9", "a", "b2b", -30, -20)])
    revised(tables, "third")


@pytest.mark.long
def test_too_many_bad_rows(place: Any) -> None:
    """The contract of the reference table tolerates so many."""
    tables = place(**ONE)
    tables.edit_contract("customers", tolerance=0.3)
    deliver(tables, *OVER_TIME)
    all_steps(tables.run(0, 2, "first"))
    tables.deliver("customers", [customer(f"{n}", "b", "x" * 20) for n in range(50, 56)])
    tables.deliver("orders", [order(31, 3, "a", 61)])
    with pytest.raises(ToleranceError, match="customers"):
        revise(tables.run(0, 2, "second"))


@pytest.mark.long
@pytest.mark.random
@pytest.mark.parametrize("seed", range(4))
def test_histories(tmp_path: Path, seed: int) -> None:
    """Random changes of the events and of both reference tables, in this process. A reference table of no events may be
    replaced."""
    numbers = random.Random(seed)
    current = {"table": "customers", "key": "customer_id", "columns": ["segment"], "valid_from": "since"}
    keys = {**ONE, "lookup": {"customer": current}} if seed % 2 else dict(SEVERAL)
    tables = project_of(tmp_path, plain=seed > 1, **keys)
    names, segments = ["a", "b", "c", None], ["b2b", "b2c", None, "x" * 10]

    def some_customers() -> list[dict[str, Any]]:
        if seed % 2:
            rows = numbers.sample(range(12), 3)
            return [customer(f"{n}", names[n % 4], numbers.choice(segments), n * 5 + n % 4) for n in rows]
        return [customer(str(n), names[n], numbers.choice(segments)) for n in numbers.sample(range(4), 2)]

    def noted(row: dict[str, Any]) -> dict[str, Any]:
        """With a note of its own: of two equal broken rows Java would remove one."""
        return {**row, "note": str(numbers.random())}

    def change() -> None:
        whole = tables.plain and numbers.random() < 0.4
        tables.deliver("customers", [noted(row) for row in some_customers()], whole=whole)
        if numbers.random() < 0.6:
            drawn = [(numbers.randrange(20), numbers.random() * 50) for _ in range(3)]
            rows = {n: order(n, hours, numbers.choice(names), numbers.randrange(90)) for n, hours in drawn}
            tables.deliver("orders", list(rows.values()))
        if numbers.random() < 0.3:
            rows = [payment(f"p{numbers.randrange(9)}", numbers.random() * 50, numbers.choice(names))]
            tables.deliver("payments", rows)

    for _ in range(3):
        change()
    all_steps(tables.run(0, 2, "first"))
    for step in range(4):
        change()
        revised(tables, f"revision {step}")


@pytest.mark.long
def test_more_windows_than_a_pattern_allows(place: Any) -> None:
    """Nothing is published, until the user says so."""
    tables = place(**{**ONE, "lookup": {"customer": {**VALID, "most_windows": 1}}})
    deliver(tables, *OVER_TIME)
    tables.deliver("orders", [order(20, 30, "a")])
    all_steps(tables.run(0, 2, "first"))
    before = published(tables)
    tables.deliver("customers", [customer("2", "a", "new", 5)])
    with pytest.raises(TooMuchError, match=r"touch 2 windows of unpaid, more than the 1 of `most_windows`") as caught:
        revise(tables.run(0, 2, "second"))
    assert "trendlake revise unpaid --all" in str(caught.value.hint)
    assert published(tables) == before
    revise(replace(tables.run(0, 2, "third"), unlimited=True))
    assert published(tables) == rows_by_hand(tables, tables.run(0, 2, "again"))
    assert published(tables) != before


@pytest.mark.long
def test_a_column_that_the_contract_derives(place: Any) -> None:
    """Of the reference table, looked up and followed."""
    derived = {"table": "customers", "key": "customer_id", "columns": [{"segment": "whose"}]}
    tables = place(**{**ONE, "lookup": {"customer": derived}})
    file = tables.project.contract_path("customers")
    text = file.read_text()
    added = '{property: derive, value: {whose: "lower(segment)"}}'
    file.write_text(text.replace("customProperties: [", f"customProperties: [{added}, ", 1))
    deliver(tables, customer("1", "a", "B2B"), customer("2", "b", "b2c"))
    all_steps(tables.run(0, 2, "first"))
    assert {row["segment"] for row in published(tables)} == {"b2b", "b2c", None}
    tables.deliver("customers", [customer("1", "a", "b2B"), customer("2", "b", "Other")])
    record = revise(tables.run(0, 2, "second"))
    assert changes(record) == {"events": 1, "rows": {"customers": 2}}
    assert {row["segment"] for row in published(tables)} == {"b2b", "other", None}


@pytest.mark.repeats
@pytest.mark.spark
def test_a_table_that_is_another_one(spark: SparkSession, tmp_path: Path) -> None:
    """Compacted: nothing is computed. Made anew, or with another contract: all windows are, and its rows are judged."""
    tables = on_spark(spark, tmp_path, **ONE)
    deliver(tables, *OVER_TIME)
    all_steps(tables.run(0, 2, "first"))
    DeltaTable(tables.lake.warehouse.source("customers")).optimize.compact()
    assert revised(tables, "compacted").windows in (0, None)
    tables.drop("customers")
    tables.make("customers")
    tables.deliver("customers", [customer("1", "a", "new"), customer("2", "b", "x" * 20)])
    record = revised(tables, "another")
    assert "made anew" in str([check.observed for check in record.checks if check.name == "revision"])
    assert {row["segment"] for row in published(tables)} == {"new", None}
    assert quarantined(tables, "customers", "another") == 1
    before = published(tables)
    tables.drop("customers")
    tables.make("customers")
    tables.deliver("customers", [customer("1", "c", "new", -9, 9), customer("2", "c", "b2b", 1, 2)])  # of no event
    with pytest.raises(TrendlakeError, match="key c has 2 rows"):
        revise(tables.run(0, 2, "repeated"))
    assert published(tables) == before
    tables.edit_contract("customers", tolerance=0.6)
    file = tables.project.contract_path("customers")
    file.write_text(file.read_text().replace("maxLength: 9", "maxLength: 2"))
    with pytest.raises(ToleranceError, match="customers"):
        revise(tables.run(0, 2, "stricter"))
