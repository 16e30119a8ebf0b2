"""`trendlake expand`: a family written out as patterns that mean the same."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from tests.conftest import ROOT
from trendlake.cep_core import load_pattern
from trendlake.jobs.main import app

FAMILY = "examples/families/volume_alarm.yaml"
AT = ("--project-dir", str(ROOT))


def test_each_member_is_a_pattern(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["expand", FAMILY, "--out", str(tmp_path / "out"), *AT])
    assert result.exit_code == 0, result.output
    files = sorted((tmp_path / "out").iterdir())
    assert [file.stem for file in files] == ["volume_alarm_c1_500", "volume_alarm_c2_800", "volume_alarm_c7_100"]
    pattern = load_pattern(files[0])
    assert pattern.batch == "volume_alarm"
    assert pattern.description.startswith("company = 'C1', least = 500: Down-trends")
    assert CliRunner().invoke(app, ["validate", *map(str, files), *AT]).exit_code == 0
    again = CliRunner().invoke(app, ["expand", FAMILY, "--out", str(tmp_path / "out"), *AT])
    assert again.exit_code == 1
    assert "exists already" in again.output


def test_printed_and_as_json() -> None:
    printed = CliRunner().invoke(app, ["expand", FAMILY, *AT])
    assert printed.output.count("name: volume_alarm_") == 3
    assert "S.company = 'C1'" in printed.output
    document = json.loads(CliRunner().invoke(app, ["expand", FAMILY, "--json", *AT]).stdout)
    assert document["members"][0]["name"] == "volume_alarm_c1_500"


def test_one_pattern_is_no_family() -> None:
    result = CliRunner().invoke(app, ["expand", "examples/greta/falling_prices.yaml", *AT])
    assert result.exit_code == 1
    assert "has no for_each" in result.output
