"""docs/how-to/reference-data.md: its commands are run as typed, and show the rows of the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.conftest import ROOT
from tests.support.typed_pages import follow, output_of
from trendlake.jobs.main import app

PAGE = (ROOT / "docs" / "how-to" / "reference-data.md").read_text()


@pytest.mark.filterwarnings("ignore::trendlake.cep_core.errors.PatternWarning")
def test_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert follow(PAGE.split("\n## An example over generated tables")[0], tmp_path, monkeypatch) == 2
    records = json.loads(CliRunner().invoke(app, ["runs", "--json"]).stdout)["records"]
    (revision,) = [record for record in records if record["stage"] == "revise"]
    said = {check["check"]: check["observed"] for check in revision["checks"]}
    assert said["lookup_changes"] == "2 events looked up otherwise: customers (3 rows came or went)"
    assert revision["windows"] == 2
    (compute,) = [record for record in records if record["stage"] == "compute"]
    said = {check["check"]: check["observed"] for check in compute["checks"]}
    assert said["lookup_missing"] == "customer: 1 of 5 events have no row: cid (1)"
    assert "customers 1 -> 2, orders 1 (same)" in output_of(["diff", "by_segment", "--from", "1", "--to", "2"])
    assert "customers@2 orders@1" in (tmp_path / "state/reports/by_segment/index.html").read_text()
