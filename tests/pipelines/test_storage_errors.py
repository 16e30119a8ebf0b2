"""What disks and memory do to a process, in words: the place, what was expected, what to do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.parquet import write_table

from tests.support.disks import full, small_disk
from trendlake.pipelines.errors import PASSING
from trendlake.pipelines.report.places import write_whole
from trendlake.pipelines.storage_errors import in_users_terms, storage_error

WORKER = "SparkException: Job aborted: Lost task 0.0: SparkException: Python worker exited unexpectedly (crashed)"


def test_a_full_disk(tmp_path: Path) -> None:
    """A page is the old one or the new one, and no part of it stays; the error names it."""
    with small_disk(tmp_path / "disk", 200) as disk:
        page = disk / "index.html"
        write_whole(page, b"old")
        with full(disk):
            with pytest.raises(OSError, match="No space left") as error:
                write_whole(page, b"x" * 100_000)
            assert {file.name for file in disk.iterdir()} == {"index.html", "filler"}
        meant = storage_error(error.value)
        assert meant is not None
        assert (meant.code, str(page) in meant.message) == ("DISK_FULL", True)
        assert page.read_bytes() == b"old"
        write_whole(page, b"new")
        assert page.read_bytes() == b"new"


def test_arrow_on_a_full_disk(tmp_path: Path) -> None:
    rows = pa.table({"n": np.arange(100_000)})
    disk = small_disk(tmp_path / "disk", 200)
    with disk as folder, full(folder), pytest.raises(OSError, match="No space left") as error:
        write_table(rows, folder / "part.parquet")
    meant = storage_error(error.value)
    assert meant is not None
    assert meant.code == "DISK_FULL"


def test_a_read_only_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 200) as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(OSError, match="Read-only") as error:
            write_whole(disk / "index.html", b"new")
    meant = storage_error(error.value)
    assert meant is not None
    assert (meant.code, str(disk) in meant.message) == ("NOT_WRITABLE", True)


def test_memory() -> None:
    """Of this process, and of a worker that was ended from outside; the cause may be below other exceptions."""
    with pytest.raises(MemoryError) as error:
        np.empty(1 << 60, np.int8)
    outer = RuntimeError("a step failed")
    outer.__cause__ = error.value
    for exception in (error.value, outer, RuntimeError(WORKER)):
        meant = storage_error(exception)
        assert meant is not None
        assert (meant.code, "shard_rows" in (meant.hint or "")) == ("OUT_OF_MEMORY", True)
        assert meant.code in PASSING


@pytest.mark.parametrize("error", [ValueError("no such column"), FileNotFoundError(2, "No such file", "conf/x.yaml")])
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    assert storage_error(error) is None
    assert in_users_terms(error, "compute", "falling") is error
