"""docs/how-to/several-tables.md: its commands are run as typed, and show the rows of the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.conftest import ROOT
from tests.support.typed_pages import follow, output_of
from trendlake.jobs.main import app

PAGE = (ROOT / "docs" / "how-to" / "several-tables.md").read_text()


@pytest.mark.filterwarnings("ignore::trendlake.cep_core.errors.PatternWarning")
def test_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert follow(PAGE.split("\n## What to know")[0], tmp_path, monkeypatch) == 2
    difference = output_of(["diff", "unpaid", "--from", "1", "--to", "2"])
    stages = json.loads(CliRunner().invoke(app, ["runs", "--json"]).stdout)["records"]
    of_run = {record["stage"]: record for record in stages if record["source"] == "orders,payments"}
    assert [of_run["compute"]["sources"][name]["rows_in"] for name in ("orders", "payments")] == [3, 2]
    pages = tmp_path / "state/reports/unpaid"
    page, (report,) = (pages / "index.html").read_text(), pages.glob("runs/*.html")
    assert all(f"data_contracts/{name}.yaml" in page for name in ("orders", "payments"))
    assert "orders@1 payments@2" in page
    assert "Tables read</dt><dd><code>orders@1 payments@1<" in report.read_text()
    assert all(text in difference for text in ("orders:o3", "1 retracted", "orders@1 payments@2"))
