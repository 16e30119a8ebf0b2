"""A source's page is of its newest version after commands that delete and repair its rows, and after `site`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.own_source import FALLING, output_of, start

ROWS = "id,at,company,price\n1,2026-01-05T09:00:00Z,A,5\n2,2026-01-05T09:00:10Z,A,4\n3,2026-01-05T09:00:20Z,A,-1\n"


def test_each_command_that_changes_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.setenv("TRENDLAKE_STATE", str(folder / ".trendlake"))
    start(folder, file := tmp_path / "trades.csv", ROWS)
    contract = folder / "data_contracts" / "trades.yaml"
    rule = r"\1        logicalTypeOptions: {minimum: 0}\n"
    contract.write_text(re.sub(r"(physicalType: bigint\n)(?=slaProperties)", rule, contract.read_text()))
    contract.write_text(re.sub(r"(quarantineTolerance\n +value: )[0-9.]+", r"\g<1>1", contract.read_text()))
    (folder / "conf" / "patterns" / "falling.yaml").write_text(FALLING)
    page = folder / ".trendlake" / "reports" / "source-pages" / "trades.html"
    at = ("--project-dir", folder)

    def version() -> str:
        (number,) = set(re.findall(r"made version (\d+)", page.read_text()))
        return str(number)

    output_of("ingest", "trades", file, *at)
    assert not page.exists()
    output_of("site", *at)
    assert version() == "1"
    file.write_text(ROWS.replace("2,2026", "4,2026"))
    output_of("ingest", "trades", file, *at)
    output_of("site", *at)
    assert version() == "2"
    output_of("source", "delete", "trades", "--where", "id = '4'", "--yes", *at)
    assert version() == "3"
    output_of("run", "falling", "--from", "2026-01-05T09:00", "--to", "2026-01-05T09:01", *at)
    output_of("quarantine", "show", "trades", "--out", out := tmp_path / "open.csv", *at)
    out.write_text(out.read_text().replace("-1", "3"))
    output_of("quarantine", "replay", "trades", out, *at)
    assert version() == "4"
