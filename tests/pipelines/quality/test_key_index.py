"""The index of keys, beside a count of all keys of the table: whatever was added and removed in between."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.disks import full, small_disk
from trendlake.pipelines.lake.here.read import TableHere, table_here
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import NotHere, tried
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.quality import key_index
from trendlake.pipelines.quality.key_index import hashes_of, occurrences

COLUMNS = ["id", "place"]
KEYS = st.tuples(st.one_of(st.none(), st.text("ab", max_size=2)), st.integers(0, 3))
STEPS = st.lists(st.tuples(st.booleans(), st.lists(KEYS, min_size=1, max_size=6)), min_size=1, max_size=8)


def rows_of(keys: list[Any]) -> pa.Table:
    ids, places = zip(*keys, strict=True)
    return pa.table({"id": pa.array(ids, pa.string()), "place": pa.array(places, pa.int64())})


def opened(folder: Path) -> TableHere:
    project, profile = Project(folder, folder / ".trendlake"), Profile(master="local[1]")
    lake = Lake.on_demand(Warehouse.of(profile, project), project, profile, "no Spark")
    return table_here(lake, str(folder / "table"))


def counted(folder: Path, keys: list[Any]) -> list[int]:
    """By the index; each time as a new process would."""
    return [int(n) for n in occurrences(folder / "index", opened(folder), COLUMNS, hashes_of(rows_of(keys), COLUMNS))]


@settings(max_examples=25, deadline=None)
@given(steps=STEPS, asked=st.lists(KEYS, min_size=1, max_size=8))
def test_as_a_count_of_all_rows(tmp_path_factory: pytest.TempPathFactory, steps: Any, asked: list[Any]) -> None:
    """Files come, and are rewritten without some rows; what the index has of old files no longer counts."""
    folder = tmp_path_factory.mktemp("index")
    there: Counter[Any] = Counter()
    for added, keys in steps:
        if added or not (folder / "table").exists():
            write_deltalake(folder / "table", rows_of(keys), mode="append")
            there.update(keys)
        elif left := [key for key in there.elements() if key[1] != keys[0][1]]:
            write_deltalake(folder / "table", rows_of(left), mode="overwrite")
            there = Counter(left)
        assert counted(folder, asked) == [there[key] for key in asked]


def test_only_new_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    real = key_index.hashes_of
    monkeypatch.setattr(key_index, "hashes_of", lambda rows, names: read.append(rows.num_rows) or real(rows, names))
    for number in range(20):
        write_deltalake(tmp_path / "table", rows_of([(f"k{number}", 0), (f"m{number}", 1)]), mode="append")
        assert counted(tmp_path, [("k0", 0)]) == [1]
    assert read == 20 * [2]
    assert len(list((tmp_path / "index").rglob("*.hashes.npy"))) <= 5  # log2


@pytest.mark.parametrize("broken", ["*.json", "*.hashes.npy", "*.owners.npy"])
def test_an_index_that_cannot_be_read_is_made_anew(tmp_path: Path, broken: str) -> None:
    write_deltalake(tmp_path / "table", rows_of([("a", 0), ("a", 0), ("b", 1)]), mode="append")
    assert counted(tmp_path, [("a", 0), ("b", 1), ("c", 1)]) == [2, 1, 0]
    for file in (tmp_path / "index").rglob(broken):
        file.write_bytes(file.read_bytes()[:7])
    assert counted(tmp_path, [("a", 0), ("b", 1), ("c", 1)]) == [2, 1, 0]


def test_equal_keys_have_equal_hashes() -> None:
    keys = rows_of([("a", 1), ("b", 1), ("a", 1), (None, 1), (None, 1)])
    hashes = hashes_of(keys, COLUMNS)
    assert hashes[0] == hashes[2] != hashes[1]
    assert hashes[3] == hashes[4]
    assert len(np.unique(hashes)) == 3


@pytest.mark.parametrize("text", ["[]", "null", '{"segments": 1}', ""])
def test_a_list_that_is_none_is_made_anew(tmp_path: Path, text: str) -> None:
    write_deltalake(tmp_path / "table", rows_of([("a", 0), ("a", 0)]))
    assert counted(tmp_path, [("a", 0)]) == [2]
    next((tmp_path / "index").rglob("index.json")).write_text(text)
    assert counted(tmp_path, [("a", 0)]) == [2]


def test_a_full_disk_leaves_the_keys_to_spark(tmp_path: Path) -> None:
    """The index is a copy: a run does not end because it cannot be written."""
    write_deltalake(tmp_path / "table", rows_of([("a", 0), ("a", 0)]))
    with small_disk(tmp_path / "index", 100) as disk:
        with full(disk):
            answer = tried(lambda: counted(tmp_path, [("a", 0)]))
        assert isinstance(answer, NotHere)
        assert "No space left" in answer.reason
        assert counted(tmp_path, [("a", 0)]) == [2]
