"""What a record says that a stage was based on: it is read back as it was, and every difference has a name."""

from __future__ import annotations

import json
from dataclasses import fields, replace

from hypothesis import example, given
from hypothesis import strategies as st

from trendlake.pipelines.runs.basis import Basis, differences
from trendlake.pipelines.runs.source_versions import TableAt, Versions

WINDOWS = st.none() | st.tuples(st.integers(-9, 9), st.integers(0, 9)).map(lambda pair: (pair[0], pair[0] + pair[1]))
IDS = st.sampled_from([None, "x", "y"])
ONE_TABLE = st.builds(Versions.one, st.integers(0, 3), IDS)
TABLES = st.lists(
    st.builds(TableAt, st.sampled_from("abc"), st.integers(0, 3), IDS), min_size=1, unique_by=lambda table: table.name
).map(Versions.of)
BASES = st.builds(
    Basis,
    contract=st.sampled_from(["a", "b"]),
    lateness=st.integers(0, 2).map(lambda hours: hours * 3_600_000_000),
    consistency=st.sampled_from([None, "strong", "middle"]),
    windows=WINDOWS,
    computed=WINDOWS,
    sources=st.none() | ONE_TABLE | TABLES,
    versions=st.none() | st.dictionaries(st.sampled_from(["engine", "contract"]), st.integers(1, 3)),
)


@given(BASES)
def test_it_is_read_back_as_it_was(basis: Basis) -> None:
    stored = json.loads(json.dumps(basis.as_json()))
    assert Basis.from_json(stored) == basis
    assert Basis.from_json({**stored, "of a later version": 1}) == basis


ORDERED = Basis("a", 0, None, None, None, None, {"engine": 1, "contract": 1})


def further_tables(recorded: Versions | None, present: Versions | None) -> int:
    """How many differences of versions and ids there are but one."""
    facts = [
        {(table.name, number): fact for table in some.tables for number, fact in enumerate(table[1:])} if some else {}
        for some in (recorded, present)
    ]
    return max(0, sum(facts[0].get(key) != facts[1].get(key) for key in {**facts[0], **facts[1]}) - 1)


@given(BASES, BASES)
@example(ORDERED, replace(ORDERED, versions={"contract": 1, "engine": 1}))
def test_each_difference_has_a_name(recorded: Basis, present: Basis) -> None:
    """`computed` may differ: it is what the later step takes over. An empty range is an empty range."""

    def plain(basis: Basis) -> Basis:
        low, high = basis.windows or (0, 0)
        return replace(basis, computed=None, windows=(low, high) if low < high else None, versions=basis.versions or {})

    names_that_differ = differences(recorded, present)
    assert bool(names_that_differ) == (plain(recorded) != plain(present))
    names = [
        item.name for item in fields(Basis) if getattr(plain(recorded), item.name) != getattr(plain(present), item.name)
    ]
    assert len(names_that_differ) == len(names) + further_tables(recorded.sources, present.sources)
    assert differences(recorded, replace(recorded, computed=present.computed)) == []
