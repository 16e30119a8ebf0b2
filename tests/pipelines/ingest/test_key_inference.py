"""Which columns of a file identify its rows: the counts, and the columns that `new source` proposes."""

from __future__ import annotations

import csv
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from trendlake.pipelines.ingest.readers.key_inference import MOST_COLUMNS, Key, examine_key
from trendlake.pipelines.ingest.readers.read_once import read_once

NAMES = ("a", "b", "c", "d")
CELLS = st.sampled_from(["", "0", "1", "2"])
Row = tuple[str, ...]


def write(path: Path, rows: list[Row]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([NAMES, *rows])
    return path


def tells_apart(rows: set[Row], names: tuple[str, ...]) -> bool:
    """Whether columns have a value in each row, and no two rows the same ones; an empty cell is NULL."""
    keys = [tuple(row[NAMES.index(name)] for name in names) for row in rows]
    return len(set(keys)) == len(rows) and all(all(key) for key in keys)


@examples(300)
@given(rows=st.lists(st.tuples(*[CELLS] * 4), min_size=1, max_size=9), width=st.integers(1, 3))
def test_any_file(tmp_path_factory: pytest.TempPathFactory, rows: list[Row], width: int) -> None:
    """Rows without a value in the key do not count. What is proposed identifies the others and needs each of its
    columns; nothing is proposed only if nothing does."""
    key = NAMES[:width]
    with read_once(write(tmp_path_factory.mktemp("key") / "e.csv", rows)) as file:
        result = examine_key(file, key, NAMES, NAMES)
    keyed = [row for row in rows if all(row[:width])]
    contents = set(keyed)
    assert (result.rows, result.keys) == (len(keyed), len({row[:width] for row in keyed}))
    assert result.identifies == (result.keys == len(contents))
    if result.identifies:
        assert result.proposed == ()
        return
    possible = [names for size in range(1, 5) for names in combinations(NAMES, size) if tells_apart(contents, names)]
    assert bool(result.proposed) == bool(possible)
    if result.proposed:
        assert tells_apart(contents, result.proposed)
        for name in result.proposed:
            rest = tuple(one for one in result.proposed if one != name)
            assert not rest or not tells_apart(contents, rest)


def test_columns_that_may_not_be_a_key(tmp_path: Path) -> None:
    path = write(tmp_path / "e.csv", [("0", "1", "1", "1"), ("0", "2", "2", "1")])
    with read_once(path) as file:
        assert examine_key(file, ["a"], NAMES, ["a", "c"]) == Key(2, 1, 2, ("c",))
        assert examine_key(file, ["a"], NAMES, ["a", "d"]) == Key(2, 1, 2)
    assert len(NAMES) < MOST_COLUMNS
