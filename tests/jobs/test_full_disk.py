"""A disk without room for the pages of a run: the run has published, and says what is left to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.support.disks import full, small_disk
from tests.support.flights import Flights, all_steps, snowball
from trendlake.jobs.terminal.workspace import Place, refresh_if_possible, report, report_if_possible, reports
from trendlake.pipelines.errors import DiskFullError
from trendlake.pipelines.lake.here.write import append_any, refuse_full_disk
from trendlake.pipelines.runs.record import SCHEMA

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_a_full_disk_below_the_pages(lake: Flights, capfd: pytest.CaptureFixture[str]) -> None:
    """Of a run, of several, of a revision; then the command that the message names."""
    lake.deliver(snowball(1, 4))
    pattern = Path(lake.pattern())
    all_steps(lake.run(str(pattern), "2013-03-01", "2013-03-02", "one"))
    place = Place(lake.project, lake.profile)
    with small_disk(lake.project.state / "reports", 400) as disk:
        with full(disk):
            assert set(report_if_possible(place, lake.lake, str(pattern), "one").values()) == {None}
            said = capfd.readouterr().err
            assert "published; its report could not be written: [DISK_FULL]" in said
            assert f"trendlake report {pattern} --run-id 'one'" in said
            assert refresh_if_possible(place, lake.lake, pattern) is None
            assert "its page could not be written: [DISK_FULL]" in capfd.readouterr().err
            assert reports(place, lake.lake, [str(pattern)], "one") == {}
            assert capfd.readouterr().err.count("[DISK_FULL]") == 4  # report, page, the source's, the index
        assert report(place, lake.lake, str(pattern), "one")["report"].is_file()


def test_a_full_disk_below_the_run_record(lake: Flights, capfd: pytest.CaptureFixture[str]) -> None:
    """An error of Python's, before delta-rs has begun a file; with room again the record is written."""
    runs = Path(lake.warehouse.runs)
    with small_disk(runs.parent, 400) as disk:
        lake.deliver(snowball(1, 4))
        records = DeltaTable(runs).to_pyarrow_table()
        assert records.schema.names == SCHEMA.names
        with full(disk):
            files = set(runs.rglob("*"))
            with pytest.raises(DiskFullError, match="No space left"):
                append_any(lake.lake, lake.warehouse.runs, records)
            assert set(runs.rglob("*")) == files
        assert "panicked" not in capfd.readouterr().err
        append_any(lake.lake, lake.warehouse.runs, records)
        assert DeltaTable(runs).to_pyarrow_table().num_rows == 2 * records.num_rows


def test_a_file_system_that_counts_no_blocks() -> None:
    """It is not taken for a full disk."""
    assert os.statvfs("/proc").f_blocks == 0
    refuse_full_disk(Path("/proc"))
