"""Events lie where the cut says, arrive as they were sent, and a group is one group however it is written."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trendlake.cep_core import compile_query
from trendlake.cep_core.events.codes import group_codes
from trendlake.cep_core.events.normalise import normalise
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.events.windows import Windows
from trendlake.cep_core.plan import AnyPlan
from trendlake.pipelines.execute import pack
from trendlake.pipelines.execute.hashing import row_hashes
from trendlake.pipelines.execute.pack import packer, unpacked
from trendlake.pipelines.execute.shard_assignment import place, time_shards
from trendlake.pipelines.execute.shard_plan import Cut, Part

pytestmark = pytest.mark.random

TYPES = {
    "event_id": pa.string(),
    "event_time": pa.timestamp("us", "UTC"),
    "event_type": pa.string(),
    "name": pa.string(),
    "x": pa.float64(),
    "n": pa.int32(),
    "b": pa.bool_(),
    "d": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "m": pa.decimal128(10, 2),
    "f": pa.float32(),
}
VALUES: dict[str, list[Any]] = {
    "event_id": ["e1", "", "ü"],
    "event_time": [datetime.fromtimestamp(second, UTC) for second in range(-3, 12)],
    "event_type": ["A", "B", "C"],
    "name": ["", "a", "aa", "ü", "a" * 40, None],
    "x": [0.0, -0.0, float("nan"), None, 1.5, float("inf"), 2.0**60],
    "n": [0, -1, 7, 2**31 - 1, None],
    "b": [True, False, None],
    "d": [date(1969, 12, 31), date(2020, 2, 29), None],
    "at": [datetime(1960, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, 1, 2, 3, 4, UTC), None],
    "m": [Decimal("0.10"), Decimal("-7.00"), None],
    "f": [0.5, -0.0, float("nan"), None],
}
ROWS = st.lists(st.fixed_dictionaries({name: st.sampled_from(values) for name, values in VALUES.items()}), max_size=40)
WINDOWS = st.builds(Windows, st.integers(1, 50), st.integers(1, 50), st.integers(-30, 30))


def events_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, pa.schema(TYPES))


def plan_of(group_by: list[str], **more: Any) -> AnyPlan:
    """Trends of A and B events of one group, that read every column."""
    query = {
        "name": "packed",
        "kind": "trends",
        "source": "events",
        "pattern": "SEQ(A+, B b)",
        "where": ["b.x > 0 OR b.n > 0 OR b.b OR b.m > 0 OR b.f > 0", "b.d = b.d OR b.at = b.at OR b.event_id = 'e1'"],
        "return": {"trends": "COUNT(*)"},
        "group_by": group_by,
        "within": "3 seconds",
        "slide": "2 seconds",
    }
    return compile_query(query | more, schema_of(events_of([]), "event_id", "event_time", "event_type", None))


def sent(plan: AnyPlan, events: pa.Table) -> pa.Table:
    """The events as `packing.typed` hands them to a worker."""
    if plan.event_types is None:
        return events
    kinds = events["event_type"].to_pylist()
    events = events.filter(pa.array([kind in plan.event_types for kind in kinds], pa.bool_()))
    if "event_type" in plan.unit_key:
        return events
    numbers = pa.array([plan.event_types.index(kind) for kind in kinds if kind in plan.event_types], pa.int32())
    index = events.schema.get_field_index("event_type")
    return events.set_column(index, "event_type", numbers)


def written(rows: list[dict[str, Any]]) -> Counter[str]:
    """Rows to compare: in no order, with NaN equal to itself."""
    return Counter(repr(sorted(row.items())) for row in rows)


@settings(deadline=None)
@given(WINDOWS, st.integers(1, 6), st.integers(-5, 5), st.integers(1, 9), st.lists(st.integers(-100, 100), max_size=30))
def test_time_shards_are_those_of_the_windows(
    windows: Windows, size: int, low: int, many: int, time: list[int]
) -> None:
    """A time is in the shards of the windows that hold it, `Windows.holding`, before the epoch and after."""
    cut = Cut(range(low, low + many), size)
    rows, shard = time_shards(windows, cut, np.array(time, np.int64))
    packed = sorted(zip(rows.tolist(), shard.tolist(), strict=True))
    start, end = windows.span(cut.windows)
    slow = [
        (row, k)
        for row, at in enumerate(time)
        for k in sorted({(j - low) // size for j in windows.holding(at) if j in cut.windows})
    ]
    if cut.shards == 1:  # all of the span, the gaps between windows too: the kernel leaves them out
        slow = [(row, 0) for row, at in enumerate(time) if start <= at < end]
    assert packed == slow
    assert rows.tolist() == sorted(rows.tolist())


@pytest.mark.long
@pytest.mark.parametrize(
    "plan",
    [
        plan_of(["name"]),
        plan_of(["x", "name"]),
        plan_of(["event_type", "n"]),
        plan_of([], pattern="A b+"),
        plan_of(["m", "d", "b", "at", "f"], empty_windows=True),
    ],
    ids=lambda plan: " ".join(plan.unit_key) or "no key",
)
@settings(deadline=None)
@given(rows=ROWS, size=st.integers(1, 6), partitions=st.integers(1, 5), step=st.integers(1, 15), left=st.booleans())
def test_events_arrive_as_they_were_sent(
    plan: AnyPlan, rows: list[dict[str, Any]], size: int, partitions: int, step: int, left: bool
) -> None:
    """Every row is in the partition of each of its units, once, with the values it had; none is made or lost. In the
    rows that are sent, or left in files."""
    cut = Cut(range(-2, 4), size, partitions)
    whole = events_of(rows)
    events = sent(plan, whole)
    held = whole
    if plan.event_types is not None:
        held = whole.filter(
            pa.array([kind in plan.event_types for kind in whole["event_type"].to_pylist()], pa.bool_())
        )
    placed = place(plan, cut, events)
    arrived: dict[int, list[dict[str, Any]]] = {}
    with TemporaryDirectory() as folder:
        for batch in packer(plan, [Part(plan, cut)], folder if left else None)(
            iter(events.to_batches(max_chunksize=step))
        ):
            assert (batch["events"].null_count, batch["file"].null_count) == (len(batch), 0)[:: 1 if left else -1]
            for number, partition in enumerate(batch["partition"].to_pylist()):
                for shard, part in unpacked(plan, batch.slice(number, 1)):
                    labelled = [row | {"shard": shard} for row in part.to_pylist()]
                    arrived.setdefault(partition, []).extend(labelled)
    expected: dict[int, list[dict[str, Any]]] = {}
    values = held.to_pylist()
    for row, shard, partition in zip(placed.rows, placed.shard, placed.partition, strict=True):
        expected.setdefault(int(partition), []).append(values[row] | {"shard": int(shard)})
    assert {p: written(content) for p, content in arrived.items()} == {
        p: written(content) for p, content in expected.items()
    }


@settings(deadline=None)
@given(ROWS, st.integers(1, 4), st.data())
def test_a_group_is_one_however_it_is_written(rows: list[dict[str, Any]], step: int, data: st.DataObject) -> None:
    """Rows have equal hashes exactly when the engine takes them for one group; as dictionaries, in parts, or whole. So
    have the codes of a group that comes as a dictionary."""
    names = data.draw(st.lists(st.sampled_from(["name", "x", "n", "b", "d", "at", "m", "f"]), min_size=1, unique=True))
    table = events_of(rows)
    columns = [normalise(table[name]) for name in names]
    codes = group_codes(columns, len(rows)).tolist()
    hashes = row_hashes(columns, len(rows)).tolist()
    assert len(set(zip(codes, hashes, strict=True))) == len(set(codes)) == len(set(hashes))
    parts = [[pa.array(part[name]) for name in names] for part in table.to_batches(max_chunksize=step)]
    assert [h for part in parts for h in row_hashes(part, len(part[0])).tolist()] == hashes
    coded = [pa.concat_arrays(table[name].chunks or [pa.array([], TYPES[name])]).dictionary_encode() for name in names]
    assert row_hashes(coded, len(rows)).tolist() == hashes
    again = group_codes(coded, len(rows)).tolist()
    assert len(set(zip(codes, again, strict=True))) == len(set(codes)) == len(set(again))


def test_units_of_their_own_have_the_last_partitions() -> None:
    """What `alone` names lies by itself; all else in the partitions before."""
    rows = [{name: values[0] for name, values in VALUES.items()} | {"name": f"{i % 7}"} for i in range(50)]
    plan = plan_of(["name"])
    free = place(plan, Cut(range(-2, 4), 6, 3), events_of(rows))
    chosen = sorted({free.unit[0], free.unit[3]})
    bound = place(plan, Cut(range(-2, 4), 6, 5, tuple(int(unit) for unit in chosen)), events_of(rows))
    for unit, before, after in zip(free.unit, free.partition, bound.partition, strict=True):
        assert after == (3 + chosen.index(unit) if unit in chosen else before)


def test_blocks_are_bounded_and_whole() -> None:
    """Batches are joined to blocks of the size asked for, in order; empty ones are passed over."""
    table = pa.table({"x": range(100)})
    batches = [table.slice(at, 7).to_batches()[0] for at in range(0, 100, 7)]
    cut_blocks = list(pack.blocks(iter([batches[0].slice(0, 0), *batches]), rows=20))
    assert [block.num_rows for block in cut_blocks] == [21, 21, 21, 21, 16]
    assert pa.concat_tables(cut_blocks)["x"].to_pylist() == list(range(100))
