"""A chain tried on a file of its first events: the rows are those of each pattern tried on the rows of the one before
it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.conftest import ROOT
from tests.support.own_source import output_of, project_at
from trendlake.jobs.main import app

PAGE = (ROOT / "docs" / "how-to" / "longest-run.md").read_text()
CELSIUS = {"m1": [64, 60, 61, 63, 62, 60, 61, 62, 65, 61], "m2": [70, 71, 72, 70, 73, 72]}
MOST = """\
name: most
source: results/longest_rise
pattern: longest_rise R
return: {machines: COUNT(*), most: MAX(R.runs)}
within: 1 week
origin: 2026-01-01
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("chain")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRENDLAKE_STATE", str(folder / "state"))
        project_at(folder, patch)
        lines = [f"{m}{h},2026-01-01T{h:02}:00:00Z,{m},{c}" for m in CELSIUS for h, c in enumerate(CELSIUS[m])]
        (folder / "day.csv").write_text("\n".join(["id,at,machine,celsius", *lines, ""]))
        columns = ["--event-id", "id", "--event-time", "at", "--type", "Reading"]
        output_of("new", "source", "readings", "--from", "day.csv", *columns)
        for name in ("rise", "longest_rise"):
            text = re.search(rf"# conf/patterns/{name}.yaml\n(.*?)```", PAGE, re.DOTALL)
            assert text is not None
            (folder / "conf" / "patterns" / f"{name}.yaml").write_text(text[1])
        (folder / "conf" / "patterns" / "most.yaml").write_text(MOST)
        yield folder


def tried(name: str, *more: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(app, ["try", name, *more, "--json"])
    assert result.exit_code == 0, result.output
    rows: list[dict[str, Any]] = json.loads(result.stdout)["rows"]
    return rows


def test_a_chain_of_three(project: Path) -> None:
    """The rows of the page that defines them; and of the third pattern, which counts those."""
    rises = {(row["machine"], row["rises"]) for row in tried("rise", "--events", "day.csv")}
    assert rises == {("m1", 2), ("m1", 3), ("m2", 1)}
    rows = tried("longest_rise", "--events", "day.csv")
    assert sorted((row["machine"], row["runs"], row["longest"]) for row in rows) == [("m1", 2, 3), ("m2", 1, 1)]
    assert [(row["machines"], row["most"]) for row in tried("most", "--events", "day.csv")] == [(2, 2)]


def test_it_equals_runs(project: Path) -> None:
    """Published by runs, one after the other, the rows are the same."""
    output_of("ingest", "readings", "day.csv")
    day = ["--from", "2026-01-01", "--to", "2026-01-02"]
    for name in ("rise", "longest_rise"):
        output_of("run", name, *day)
    output_of("run", "most", "--from", "2026-01-01", "--to", "2026-01-08")
    for name in ("longest_rise", "most"):
        result = CliRunner().invoke(app, ["show", name, "--json"])
        published = json.loads(result.stdout)["rows"]
        measured = [{key: row[key] for key in published[0]} for row in tried(name, "--events", "day.csv")]
        assert sorted(measured, key=str) == sorted(published, key=str)


def test_ids_that_are_not_there_yet(project: Path) -> None:
    """Rows with a key of several columns get their ids when they are published."""
    text = MOST.replace("machines: COUNT(*)", "ids: LONGEST(*)").replace("name: most", "name: ids")
    file = project / "conf" / "patterns" / "ids.yaml"
    file.write_text(text)
    out = " ".join(output_of("try", "ids", "--events", "day.csv", code=1).split())
    assert "rows of 'results/longest_rise' get their ids when they are published" in out
    file.unlink()
