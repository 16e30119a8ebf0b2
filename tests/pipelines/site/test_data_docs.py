"""Great Expectations' pages of a run, whatever the run is called; and a pattern whose pages fail leaves the others."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.report.places import Places
from trendlake.pipelines.site.build import Built, Site, build_site
from trendlake.pipelines.site.data_docs import _written, content_of


@pytest.mark.parametrize("run_id", ["a/b", "../../x", "scheduled__2026-01-05T00:00:00+00:00", "x" * 300, " "])
def test_a_run_may_have_any_name(run_id: str) -> None:
    """Great Expectations makes a file's name of it, and refuses some."""
    page, suite = _written(pd.DataFrame({"n": [1, 2]}), [], {}, "delays", run_id)
    assert content_of(page, "suite.html")
    assert content_of(suite, "checks.html")


def test_the_site_goes_on_where_a_page_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be read is one pattern's failure, named; the page of all is written."""
    from tests.conftest import ROOT
    from trendlake.pipelines.lake.warehouse import Warehouse
    from trendlake.pipelines.project.paths import find_project

    def no_spark() -> SparkSession:
        raise AssertionError("Spark has been asked for")

    gone = tmp_path / "gone.yaml"
    site = Site(Lake(Warehouse(str(tmp_path)), no_spark), find_project(ROOT), Places(tmp_path / "reports"))
    built = build_site(site, [gone])
    assert [item.name for item in built if item.failure] == ["gone"]
    assert "gone.yaml" in built[0].failure
    assert built[-1] == Built("", site.places.index)
    assert all(item.page.is_file() for item in built[1:])
    assert "it takes Spark to look for it" in site.places.source("flights").read_text(encoding="utf-8")
