"""`trendlake explain` of a pattern in a batch: what it shares with whom."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.own_source import output_of, start
from trendlake.jobs.main import app

COUNTED = """\
name: {name}
source: trades
batch: daily
pattern: Trade E+
where: ["[company]", "E.price > NEXT(E).price", {where}]
return: {{trends: COUNT(*){more}}}
group_by: [company]
within: 1 minute
"""
FILES = {
    "above_10": ("E.price > 10", ""),
    "above_20": ("E.price > 20", ""),
    "below_30": ("E.price < 30", ""),
    "same_as_above_10": ("E.price > 10", ""),
    "lowest_10": ("E.price > 10", ", lowest: MIN(E.price)"),
    "lowest_20": ("E.price > 20", ", lowest: MIN(E.price)"),
    "sums": ("E.price + 1 > 2", ""),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A batch of patterns over one source, and one that is broken."""
    folder = tmp_path_factory.mktemp("batch")
    start(
        folder, folder / "trades.csv", "id,at,company,price\n1,2026-01-05T09:00:00,A,60\n2,2026-01-05T09:00:01,A,59\n"
    )
    patterns = folder / "conf" / "patterns"
    for name, (where, more) in FILES.items():
        (patterns / f"{name}.yaml").write_text(COUNTED.format(name=name, where=f'"{where}"', more=more))
    (patterns / "broken.yaml").write_text(COUNTED.format(name="broken", where='"E.prize > 1"', more=""))
    whole = (
        COUNTED.format(name="by_time", where='"E.price > 10"', more="")
        .replace('"[company]", ', "")
        .replace("group_by: [company]\n", "")
    )
    (patterns / "by_time.yaml").write_text(whole)
    return folder


def shared(project: Path, name: str) -> dict[str, object]:
    result = CliRunner().invoke(app, ["explain", name, "--json", "--project-dir", str(project)])
    assert result.exit_code == 0, result.output
    document: dict[str, object] = json.loads(result.stdout)["shared"]
    return document


def test_patterns_that_differ_in_constants(project: Path) -> None:
    about = shared(project, "above_10")
    assert about["pass"] == "lanes"
    assert about["one_pass_with"] == ["above_20", "below_30", "same_as_above_10"]
    assert about["shuffled_by"] == ["company"]
    assert set(about["shuffled_with"]) == FILES.keys() - {"above_10"}  # type: ignore[call-overload]
    assert about["invalid"] == ["broken"]
    assert (about["shuffles"], about["passes"]) == (2, 4)


@pytest.mark.parametrize(
    ("name", "way", "others"), [("lowest_10", "members", ["lowest_20"]), ("sums", "all", []), ("by_time", "own", [])]
)
def test_each_pass(project: Path, name: str, way: str, others: list[str]) -> None:
    about = shared(project, name)
    assert (about["pass"], about["one_pass_with"]) == (way, others)


def test_in_words(project: Path) -> None:
    text = output_of("explain", "lowest_20", "--project-dir", project)
    assert "batch daily: 8 patterns" in text
    assert "once      Spark, the version and the check of the source, the reading of its events" in text
    assert "one pass with lowest_10, where each wants few events" in text
    assert "in all    8 patterns, 1 reading, 2 shuffles, 4 passes of the kernels" in text
    assert "not counted, as they have mistakes: broken" in text


def test_a_pattern_without_a_batch(project: Path) -> None:
    alone = project / "conf" / "patterns" / "single.yaml"
    alone.write_text(COUNTED.format(name="single", where='"E.price > 1"', more="").replace("batch: daily\n", ""))
    assert shared(project, "single") is None
    alone.unlink()
