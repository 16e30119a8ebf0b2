"""`trendlake run` of several patterns, and `trendlake ls`: selectors, a state for each pattern, one exit code."""

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
RISING = FALLING.replace("name: falling", "name: rising").replace(">", "<") + "batch: b\ntags: [up]\n"


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`falling` and `rising` of one source, in the batch `b`, and `busy`, which reads the results of `falling`."""
    share_session(monkeypatch, spark)
    start(tmp_path, tmp_path / "trades.csv", ROWS)
    monkeypatch.chdir(tmp_path)
    output_of("ingest", "trades", "trades.csv")
    for name, text in (("falling", FALLING + "batch: b\n"), ("busy", CHAIN), ("rising", RISING)):
        (tmp_path / "conf" / "patterns" / f"{name}.yaml").write_text(text)
    return tmp_path


def documents(*arguments: str, code: int = 0) -> list[dict[str, Any]]:
    output = output_of(*arguments, "--json", code=code)
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def listed(*selectors: str) -> list[str]:
    output = output_of("ls", *selectors, "--json")
    return [row["pattern"] for row in json.loads(output[output.index("{") : output.rindex("}") + 1])["patterns"]]


def test_a_run_of_several_and_one_that_fails(project: Path) -> None:
    """One line of JSON for each pattern; the others are published, with their pages; selectors know who failed."""
    broken = project / "conf" / "patterns" / "rising.yaml"
    broken.write_text(RISING.replace("E.price <", "E.prize <"))
    output = output_of("run", "source:trades+", *DAY, code=1)
    assert "rising" in output
    assert "failed" in output
    assert "prize" in output
    assert "busy" in output
    for name in ("falling", "busy"):
        assert (project / ".trendlake" / "reports" / name / "index.html").is_file()
    assert "rising" not in listed("result:succeeded")
    broken.write_text(RISING)
    rows = documents("run", "--batch", "b", *DAY)
    assert [(row["pattern"], row["state"]) for row in rows] == [("falling", "succeeded"), ("rising", "succeeded")]
    assert [stage["stage"] for stage in rows[1]["stages"]] == ["check_source", "compute", "check_results", "publish"]
    assert rows[1]["stages"][3]["rows_inserted"] > 0
    assert rows[0]["stages"][3]["rows_inserted"] == 0
    assert len({row["run_id"] for row in rows}) == 1
    assert Path(rows[1]["report"]).is_file()
    assert sorted(listed("result:succeeded")) == ["busy", "falling", "rising"]


def test_a_file_outside_of_the_project_s_patterns(project: Path) -> None:
    """It runs as it would alone; of two files of one name it is not clear whose the results are."""
    (project / "steep.yaml").write_text(FALLING.replace("name: falling", "name: steep"))
    rows = documents("run", "steep.yaml", "rising", *DAY)
    assert [(row["pattern"], row["state"]) for row in rows] == [("steep", "succeeded"), ("rising", "succeeded")]
    assert Path(rows[0]["site"]).is_file()
    for _ in range(2):  # its page shows what is there
        assert "nothing to change" in output_of("revise", "steep.yaml")
    (project / "falling.yaml").write_text(FALLING)
    assert "patterns of one name" in output_of("run", "falling.yaml", "falling", *DAY, code=1)


def test_patterns_are_listed(project: Path) -> None:
    assert listed() == ["falling", "busy", "rising"]
    assert listed("tag:up") == ["rising"]
    assert listed("batch:b") == ["falling", "rising"]
    assert "did you mean 'up'?" in output_of("ls", "tag:upp", code=1)
    assert "give a PATTERN, or --batch NAME" in output_of("run", *DAY, code=2)
    assert "did you mean 'b'?" in output_of("run", "--batch", "bb", *DAY, code=1)
