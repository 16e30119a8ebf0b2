"""`trendlake revise --source`: every published pattern that a source reaches, in one session, in chains' order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.one_session import share_session
from tests.support.own_source import FALLING, output_of, start

pytestmark = pytest.mark.spark

DAY = ("--from", "2026-01-05", "--to", "2026-01-06")
ROWS = "id,at,company,price\n" + "".join(
    f"{company}{n},2026-01-05T09:00:{n:02d}Z,{company},{10 - n}\n" for company in "AB" for n in range(4)
)
CHAIN = """\
name: busy
source: results/falling
pattern: falling R+
return: {windows: COUNT(*), most: MAX(R.trends)}
within: 1 day
"""
OTHER = FALLING.replace("name: falling", "name: rising").replace(">", "<")


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`falling` and `busy`, which reads its results, are published; `rising`, of the same source, is not."""
    share_session(monkeypatch, spark)
    start(tmp_path, tmp_path / "trades.csv", ROWS)
    monkeypatch.chdir(tmp_path)
    output_of("ingest", "trades", "trades.csv")
    for name, text in (("falling", FALLING), ("busy", CHAIN), ("rising", OTHER)):
        (tmp_path / "conf" / "patterns" / f"{name}.yaml").write_text(text)
    output_of("run", "falling", *DAY)
    output_of("run", "busy", *DAY)
    return tmp_path


def revised(*arguments: str, code: int = 0) -> dict[str, Any]:
    output = output_of("revise", *arguments, "--json", code=code)
    document: dict[str, Any] = json.loads(output[output.index("{") : output.rindex("}") + 1])
    return document


def test_a_correction_reaches_the_patterns_and_those_on_their_results(project: Path) -> None:
    (project / "late.csv").write_text("id,at,company,price\nA9,2026-01-05T09:00:09Z,A,1\n")
    output_of("ingest", "trades", "late.csv")
    document = revised("--source", "trades")
    assert [(item["pattern"], item["changed"]) for item in document["patterns"]] == [
        ("falling", True),
        ("rising", False),
        ("busy", True),
    ]
    assert document["patterns"][1]["revision"] is None  # nothing of it is published
    again = revised("--source", "trades")
    assert not any(item["changed"] for item in again["patterns"])


@pytest.mark.long
def test_an_error_of_one_pattern_stops_no_other(project: Path) -> None:
    (project / "conf" / "patterns" / "rising.yaml").write_text(OTHER.replace("E.price <", "E.prize <"))
    document = revised("--source", "trades", code=1)
    by_name = {item["pattern"]: item for item in document["patterns"]}
    assert "prize" in json.dumps(by_name["rising"]["error"])
    assert "changed" in by_name["falling"]
    assert "changed" in by_name["busy"]


@pytest.mark.long
def test_a_source_that_no_pattern_reads_is_named_with_a_suggestion(project: Path) -> None:
    output = output_of("revise", "--source", "trade", code=1)
    assert "no pattern reads the source 'trade'" in output
    assert "did you mean 'trades'?" in output
    assert "give a PATTERN, or --source SOURCE" in output_of("revise", code=2)
    assert "give a PATTERN, or --source SOURCE" in output_of("revise", "falling", "--source", "trades", code=2)
