"""Measures of whole trends on the way to people: run by the driver and by workers, checked, published, shown, exported,
on pages; and read by another pattern."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from tests.pipelines.revision.test_unique_rows import row
from tests.support.flights import all_steps
from tests.support.promises import agree
from tests.support.signal_patterns import PATTERNS
from tests.support.signals import IN_DRIVER, IN_WORKERS, Signals, signals
from trendlake.cep_core import AnyPlan
from trendlake.jobs.terminal.rows import table_of
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.report.build import build_report
from trendlake.pipelines.report.places import Places
from trendlake.pipelines.results.read import Selection, read_rows
from trendlake.pipelines.results.row_files import write_rows
from trendlake.pipelines.site.build import Site, refresh_pattern

pytestmark = pytest.mark.spark

DAYS = (0.5, 2.5)


def published(spark: SparkSession, folder: Path, pattern: str, profile: Profile) -> Signals:
    lake = signals(spark, folder, PATTERNS[pattern], profile=profile)
    lake.insert([row(n, 20 + n, price=n * 7 % 9) for n in range(20)])
    run = lake.run(*DAYS, "first")
    all_steps(run)
    agree(lake, run)
    return lake


def results(lake: Signals) -> tuple[AnyPlan, pa.Table]:
    run = lake.run(*DAYS, "first")
    return run.plan, read_rows(lake.lake, lake.warehouse.results(run.name), run.plan, Selection()).table


@pytest.mark.parametrize(
    "profile", [IN_DRIVER, pytest.param(IN_WORKERS, marks=pytest.mark.repeats)], ids=["driver", "workers"]
)
def test_a_longest_trend_is_shown_exported_and_on_pages(spark: SparkSession, tmp_path: Path, profile: Profile) -> None:
    lake = published(spark, tmp_path / "project", "lengths", profile)
    plan, table = results(lake)
    rows = table.to_pylist()
    longest = max(rows, key=lambda one: one["most"])
    assert len(longest["events"]) == longest["most"] > 2
    assert longest["lasts"] <= 8 * 3600
    text = StringIO()
    Console(file=text, width=400).print(table_of(plan, "rows", rows, ids=True))
    assert ", ".join(longest["events"]) in text.getvalue()
    write_rows(table, tmp_path / "rows.csv")
    exported = list(csv.DictReader(StringIO((tmp_path / "rows.csv").read_text())))
    assert sorted(json.loads(one["events"]) for one in exported) == sorted(one["events"] for one in rows)
    report = build_report(lake.lake, Path(lake.pattern), "first", tmp_path / "pages", plan).html
    page = refresh_pattern(Site(lake.lake, lake.project, Places(tmp_path / "pages")), Path(lake.pattern))
    for file in (report, page):
        assert f">{len(longest['events'])} events<" in file.read_text(), file


def test_maximal_runs_are_published(spark: SparkSession, tmp_path: Path) -> None:
    lake = published(spark, tmp_path / "project", "maximal runs", IN_DRIVER)
    rows = results(lake)[1].to_pylist()
    assert sum(one["events"] for one in rows) == sum(round(float(one["runs"]) * one["mean"]) for one in rows) > 0


def test_an_older_contract_of_results_lets_them_through(spark: SparkSession, tmp_path: Path) -> None:
    """The template of a project that was made before it had such columns: it has no rules for them."""
    lake = signals(spark, tmp_path / "project", PATTERNS["lengths"])
    template = lake.project.contract_path("results_trends")
    text = template.read_text()
    first, last = text.index("      - name: length\n"), text.index("      - name: log10\n")
    template.write_text(text[:first] + text[last:])
    lake.insert([row(n, 20 + n) for n in range(8)])
    run = lake.run(*DAYS, "first")
    all_steps(run)
    agree(lake, run)
    assert max(one["most"] for one in results(lake)[1].to_pylist()) > 1
