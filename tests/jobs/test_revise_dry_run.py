"""`trendlake revise --dry-run` as it is typed: lines and documents, of one pattern and of all below a source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.test_revise_source import CHAIN, DAY, OTHER, ROWS
from tests.support.own_source import FALLING, output_of, start


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`falling` and `busy`, which reads its results, are published; `rising` is not. One row is late."""
    for name in ("TRENDLAKE_STATE", "TRENDLAKE_PROJECT", "TRENDLAKE_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    start(tmp_path, tmp_path / "trades.csv", ROWS)
    monkeypatch.chdir(tmp_path)
    output_of("ingest", "trades", "trades.csv")
    for name, text in (("falling", FALLING), ("busy", CHAIN), ("rising", OTHER)):
        (tmp_path / "conf" / "patterns" / f"{name}.yaml").write_text(text)
    output_of("run", "falling", *DAY)
    output_of("run", "busy", *DAY)
    (tmp_path / "late.csv").write_text("id,at,company,price\nA9,2026-01-05T09:00:09Z,A,1\n")
    output_of("ingest", "trades", "late.csv")
    return tmp_path


def document(*arguments: str) -> Any:
    output = output_of("revise", *arguments, "--json")
    return json.loads(output[output.index("{") : output.rindex("}") + 1])


def files_of(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_a_chain(project: Path) -> None:
    """A pattern on results that are revised before it may have more to do; nothing is written, no page either."""
    before = files_of(project)
    text = output_of("revise", "--source", "trades", "--dry-run")
    assert "falling: nothing is written" in text
    assert "trades 1 -> 2" in text
    assert "changed        trades: 1 row came or went" in text
    assert "windows        1 of 1,440 published windows, 2026-01-05 09:00 to 2026-01-05 09:01 (UTC)" in text
    assert "rows           0 inserted, 1 updated, 0 retracted" in text
    assert "before         results/falling is revised first" in text
    assert "nothing is published that could be revised" in text
    patterns = {item["pattern"]: item for item in document("--source", "trades", "--dry-run")["patterns"]}
    assert files_of(project) == before
    assert patterns["rising"] == {"pattern": "rising", "dry_run": True, "published": False}
    assert (patterns["falling"]["windows"], patterns["falling"]["rows_updated"]) == (1, 1)
    assert patterns["falling"]["revised_before"] == []
    assert (patterns["busy"]["windows"], patterns["busy"]["revised_before"]) == (0, ["results/falling"])
    revised = document("falling")["revision"]
    assert (revised["windows"], revised["rows_updated"], revised["rows_inserted"]) == (1, 1, 0)
    again = document("falling", "--dry-run")
    assert (again["windows"], again["from"], again["road"], again["rows_updated"]) == (0, None, None, None)
    assert again["tables"][0]["from_version"] == again["tables"][0]["to_version"] == 2


def test_mistakes(project: Path) -> None:
    """An error of one pattern stops no other; of one pattern alone it is the error of the command."""
    assert "has published nothing" in output_of("revise", "rising", "--dry-run", code=1)
    assert "no pattern reads the source 'trade'" in output_of("revise", "--source", "trade", "--dry-run", code=1)
    (project / "conf" / "patterns" / "rising.yaml").write_text(OTHER.replace("E.price <", "E.prize <"))
    text = output_of("revise", "falling", "rising", "--dry-run", code=1)
    assert "prize" in text
    assert "1 updated" in text
