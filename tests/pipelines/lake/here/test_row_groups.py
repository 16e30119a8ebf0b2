"""Row groups are passed over by what files say of them only where they say it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trendlake.pipelines.lake.here import row_groups

START = datetime(2026, 1, 5, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def write(path: Path, values: pa.Array, name: str = "v", **options: object) -> Path:
    """Two rows a group."""
    pq.write_table(pa.table({name: values}), path, row_group_size=2, **options)
    return path


def test_a_file_in_the_place_of_another(tmp_path: Path) -> None:
    """What is held of a file is that file's."""
    path = write(tmp_path / "f.parquet", pa.array([1, 2, 3, 4]))
    assert row_groups.within("v", pa.array([3]))(path) == [1]
    write(path, pa.array([3, 3, 9, 9, 9]))
    assert row_groups.within("v", pa.array([3]))(path) == [0]
    assert [group.low for group in row_groups.values(path, "v")] == [3, 9, 9]


def test_a_file_that_is_no_more(tmp_path: Path) -> None:
    path = write(tmp_path / "f.parquet", pa.array([1, 2]))
    assert len(row_groups.values(path, "v")) == 1
    path.unlink()
    with pytest.raises(FileNotFoundError):
        row_groups.values(path, "v")


@pytest.mark.parametrize(
    ("values", "asked", "expected"),
    [
        (pa.array(["a", "b", "c", None]), pa.array(["c", "x"]), [1]),
        (pa.array(["a", "b", "c", None]), pa.array(["c", None]), [0, 1]),  # a group with a NULL says it nowhere
        (pa.array(["a", "b", None, None]), pa.array(["a"]), [0, 1]),  # NULLs have no bounds
        (pa.array([1, 2, 3, 4]), pa.array(["1"]), [0, 1]),  # of another type
        (pa.array([1, 2, 3, 4]), pa.array([], pa.int64()), []),
        (pa.array([0.0, 1.0, 2.0, 3.0]), pa.array([-0.0]), [0, 1]),  # reals are compared by whoever reads them
        (pa.array([False, False, True, True]), pa.array([1]), [0, 1]),
    ],
)
def test_groups_with_a_value(tmp_path: Path, values: pa.Array, asked: pa.Array, expected: list[int]) -> None:
    assert list(row_groups.within("v", asked)(write(tmp_path / "f.parquet", values))) == expected


def test_files_that_do_not_say_it(tmp_path: Path) -> None:
    moments = pa.array([START + timedelta(days=day) for day in range(4)], pa.timestamp("us", "UTC"))
    first = int(START.timestamp()) * 1_000_000
    near, silent = row_groups.near("v", [(first, first + 1)]), row_groups.unbounded("v")
    assert near(write(tmp_path / "plain", moments)) == [0]
    assert silent(tmp_path / "plain") == []
    for name, path in {
        "without statistics": write(tmp_path / "a", moments, write_statistics=False),
        "milliseconds": write(tmp_path / "b", moments.cast(pa.timestamp("ms", "UTC"))),
        "INT96": write(tmp_path / "c", moments, use_deprecated_int96_timestamps=True),
        "another column": write(tmp_path / "d", moments, "w"),
    }.items():
        assert near(path) == silent(path) == [0, 1], name
    old = pa.table({"v": moments}).replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    pq.write_table(old, tmp_path / "old", row_group_size=2)
    assert near(tmp_path / "old") == silent(tmp_path / "old") == [0, 1]


@given(
    moments=st.lists(st.none() | st.integers(-3, 12).map(lambda n: START + n * MICROSECOND), min_size=1, max_size=9),
    slices=st.lists(st.tuples(st.integers(-4, 12), st.integers(0, 5)), max_size=3),
)
def test_groups_near_slices(
    tmp_path_factory: pytest.TempPathFactory, moments: list[datetime | None], slices: list[tuple[int, int]]
) -> None:
    """A group that has a row in a slice is chosen; one whose rows all have a time, before or after all of them, not."""
    path = write(tmp_path_factory.mktemp("f") / "f.parquet", pa.array(moments, pa.timestamp("us", "UTC")))
    first = int(START.timestamp()) * 1_000_000
    chosen = row_groups.near("v", [(first + low, first + low + size) for low, size in slices])(path)
    for group in range(-(-len(moments) // 2)):
        offsets = [(at - START) // MICROSECOND for at in moments[2 * group : 2 * group + 2] if at is not None]
        inside = any(low <= offset < low + size for offset in offsets for low, size in slices)
        apart = all(max(offsets) < low or min(offsets) >= low + size for low, size in slices) if offsets else False
        assert (group in chosen) >= inside
        assert not (apart and group in chosen)
