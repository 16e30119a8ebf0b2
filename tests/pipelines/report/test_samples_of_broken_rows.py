"""The page of a run shows rows that broke the contract, whether Spark has started or not."""

from __future__ import annotations

from pathlib import Path

from tests.support.own_source import FALLING, output_of, start

ROWS = """\
id,at,company,price
1,2026-01-05T09:00:00Z,A,3.5
2,2026-01-05T09:00:10Z,A,2.5
,2026-01-05T09:00:20Z,A,77.25
"""


def test_a_number_of_a_broken_row(tmp_path: Path) -> None:
    start(tmp_path, tmp_path / "trades.csv", ROWS)
    contract = tmp_path / "data_contracts" / "trades.yaml"
    contract.write_text(contract.read_text().replace("value: 0 ", "value: 0.9 "))
    (tmp_path / "conf" / "patterns" / "falling.yaml").write_text(FALLING)
    at = ("--project-dir", tmp_path)
    output_of("ingest", "trades", tmp_path / "trades.csv", *at)
    printed = output_of("run", "falling", "--from", "2026-01-05", "--to", "2026-01-06", *at)
    assert "could not be written" not in printed, printed
    (page,) = [path for path in tmp_path.rglob("*.html") if path.parent.name == "runs"]
    assert "77.25" in page.read_text()
