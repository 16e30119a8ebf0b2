"""Vectors of versions: a partial order, by a slow loop over tables, and their stored forms."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from trendlake.pipelines.results.coverage import Segment, overlaid
from trendlake.pipelines.results.notes import Note
from trendlake.pipelines.runs.source_versions import TableAt, Versions, oldest

pytestmark = pytest.mark.random

NAMES = ("orders", "payments", "results/falling")


def vectors(ids: str = "tu?", names: Sequence[str] = NAMES) -> st.SearchStrategy[Versions]:
    """Of all `names`. An id `?` is not known."""
    table_id = st.sampled_from(ids).map(lambda name: None if name == "?" else name)
    at = [st.builds(TableAt, st.just(name), st.integers(0, 3), table_id) for name in names]
    return st.tuples(*at).map(Versions.of)


KNOWN = vectors("t")
"""Of the same tables always."""
SOME = st.lists(st.sampled_from(NAMES), min_size=1, unique=True).flatmap(lambda names: vectors(names=names))
"""Of some tables."""


@given(KNOWN, KNOWN, KNOWN)
@examples(400)
def test_a_partial_order(a: Versions, b: Versions, c: Versions) -> None:
    assert a.no_older(a)
    assert (a.no_older(b) and b.no_older(a)) == (a == b)
    assert a.no_older(c) or not (a.no_older(b) and b.no_older(c))
    assert a.no_older(b) == (not b.newer(a))
    assert bool(a.newer(b)) == a.numbered_above(b)


@given(st.lists(KNOWN, min_size=1, max_size=4), KNOWN)
@examples(400)
def test_the_oldest_is_the_greatest_lower_bound(many: list[Versions], other: Versions) -> None:
    assert all(one.no_older(oldest(many)) for one in many)
    assert oldest(many).no_older(other) == all(one.no_older(other) for one in many)


@given(SOME, SOME)
@examples(600)
def test_comparisons_table_by_table(a: Versions, b: Versions) -> None:
    """Only numbers of one table that is known are compared."""
    newer, no_older = [], a.names == b.names
    for name in NAMES:
        mine = [table for table in a.tables if table.name == name]
        theirs = [table for table in b.tables if table.name == name]
        if not mine or not theirs:
            continue
        same = mine[0].table_id is not None and mine[0].table_id == theirs[0].table_id
        if same and mine[0].version > theirs[0].version:
            newer.append((mine[0], theirs[0]))
        no_older = no_older and same and mine[0].version >= theirs[0].version
    assert list(a.newer(b)) == newer
    assert a.no_older(b) == no_older


@given(vectors(), vectors())
@examples(400)
def test_a_quiet_claim_replaces_nothing_newer(shown: Versions, quiet: Versions) -> None:
    """What is left in its place is newer in no table, and known to be older in some or of an unknown one."""
    old, given_ = Segment(0, 9, "form", "c", shown), Segment(3, 5, "form", "c", quiet)
    (middle,) = [part for part in overlaid((old,), given_, newest=True) if part.first <= 4 <= part.last]
    assert (middle.sources == shown) == (bool(shown.newer(quiet)) or shown.no_older(quiet) or shown == quiet)
    assert not quiet.newer(shown) or shown.newer(quiet) or middle.sources == quiet


@given(st.none() | SOME | st.builds(Versions.one, st.integers(0, 9), st.sampled_from([None, "t"])))
@examples(200)
def test_stored_forms(versions: Versions | None) -> None:
    """Of one `source` no name is stored."""
    stored = {
        "source_version": None if versions is None else versions.version,
        "source_table": None if versions is None else versions.table_id,
    }
    if versions is not None and versions.named:
        stored["sources"] = versions.as_json()
    assert Versions.stored(json.loads(json.dumps(stored))) == versions


@given(SOME | st.builds(Versions.one, st.integers(0, 9), st.sampled_from([None, "t"])))
@examples(100)
def test_notes_of_versions(versions: Versions) -> None:
    """A note of `source` has the keys that it has always had; one of `sources` two more."""
    contracts = {name: f"contract of {name}" for name in versions.names} if versions.named else None
    note = Note("form", versions, ((0, 1),), (), stretches=(), contracts=contracts).signed("r", "publish", 1)
    stored = json.loads(json.dumps(note.as_json()))
    assert Note.from_json(stored) == note
    assert ({"sources", "contracts"} <= stored.keys()) == versions.named
    assert (stored["source_version"], stored["source_table"]) == (versions.version, versions.table_id)


def test_words() -> None:
    orders, payments = TableAt("orders", 12, "a"), TableAt("payments", 7, "b")
    both = Versions.of([payments, orders])
    assert str(both) == "orders@12 payments@7"
    assert both.as_json() == {"orders": [12, "a"], "payments": [7, "b"]}
    assert (both.version, both.table_id, both.at("payments")) == (None, None, payments)
    assert str(Versions.one(3)) == "3"
    assert (Versions.one(3, "t").version, Versions.one(3, "t").table_id) == (3, "t")


@pytest.mark.parametrize("tables", [[], [TableAt("orders", 1), TableAt("orders", 2)]])
def test_each_table_once(tables: list[TableAt]) -> None:
    with pytest.raises(ValueError, match="one version for each"):
        Versions.of(tables)


@pytest.mark.parametrize("stored", [{}, {"orders": ["12", "a"]}, {"orders": [1]}, {"orders": 1}, [1]])
def test_what_no_version_has_stored(stored: object) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError)):
        Versions.stored({"sources": stored})
