"""Kind match_recognize on the command line: from a text to published rows, revised, and read by another pattern."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trendlake.jobs.main import app

LATER = """\
id,at,symbol,price
e6,2026-01-01T00:30:00Z,u,8
e7,2026-01-01T05:30:00Z,u,2
"""
EVENTS = """\
id,at,symbol,price
e1,2026-01-01T00:00:01Z,u,5
e2,2026-01-01T00:00:02Z,u,4
e3,2026-01-01T00:00:03Z,u,3
e4,2026-01-01T00:00:04Z,u,6
e5,2026-01-01T05:00:05Z,u,7
"""
AFTER = """\
name: after
kind: match_recognize
source: results/runs
pattern: |
  FROM runs MATCH_RECOGNIZE (ORDER BY "end" MEASURES MAX(n) AS longest PATTERN (a+) DEFINE a AS n > 1)
"""
TESTS = """\
- name: two events
  events:
  - {id: e1, at: 2026-01-01T00:00:00Z}
  - {id: e2, at: 2026-01-01T00:00:10Z}
  expect:
  - {match_id: e1, n: 2}
"""
DAY = ("--from", "2026-01-01", "--to", "2026-01-02")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source `ticks` with five events, its pattern `runs` as `new pattern` writes it, and one that reads its rows."""
    folder = tmp_path_factory.mktemp("row_patterns")
    (folder / "e.csv").write_text(EVENTS)
    at = ("--project-dir", str(folder))
    roles = ("--event-id", "id", "--event-time", "at", "--type", "Tick")
    done(["init", str(folder)])
    done(["new", "source", "ticks", "--from", str(folder / "e.csv"), *roles, *at])
    done(["ingest", "ticks", str(folder / "e.csv"), *at])
    done(["new", "pattern", "runs", "--source", "ticks", "--kind", "match_recognize", *at])
    tests = folder / "conf" / "patterns" / "tests"
    tests.mkdir(parents=True, exist_ok=True)
    (tests / "runs.yaml").write_text(TESTS)
    (folder / "conf" / "patterns" / "after.yaml").write_text(AFTER)
    return folder


def done(words: list[str]) -> str:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return result.output


def at(project: Path) -> tuple[str, str]:
    return ("--project-dir", str(project))


def test_the_pattern_is_checked_explained_and_tested(project: Path) -> None:
    path = str(project / "conf" / "patterns" / "runs.yaml")
    done(["validate", path, *at(project)])
    said = done(["explain", "runs", "--svg", str(project / "runs.svg"), *at(project)])
    assert "class     local" in said
    assert "on Spark  cut by nothing, from ticks" in said
    assert "<svg" in (project / "runs.svg").read_text()
    assert "1 passed" in done(["test", "runs", *at(project)])


def test_it_is_tried_on_a_file_and_on_the_table(project: Path) -> None:
    for where in ((), ("--events", str(project / "e.csv"))):
        document = json.loads(done(["try", "runs", *where, "--json", *at(project)]))
        assert [(row["match_id"], row["n"]) for row in document["rows"]] == [("e1", 4)]
        assert (document["windows"], document["windows_of_source"]) == (1, 1)


def test_its_rows_are_published_revised_and_read(project: Path) -> None:
    """A row pattern, and one of row patterns over its results."""
    assert [(row["match_id"], row["n"]) for row in rows(project, "try", "runs", *DAY)] == [("e1", 4)]
    done(["run", "runs", *DAY, *at(project)])
    done(["run", "after", *DAY, *at(project)])
    assert [(row["match_id"], row["n"]) for row in rows(project, "show", "runs")] == [("e1", 4)]
    assert [row["longest"] for row in rows(project, "show", "after")] == [4]
    (project / "later.csv").write_text(LATER)
    done(["ingest", "ticks", str(project / "later.csv"), *at(project)])
    done(["revise", "runs", *at(project)])
    done(["revise", "after", *at(project)])
    assert [(row["match_id"], row["n"]) for row in rows(project, "show", "runs")] == [("e1", 5), ("e5", 2)]
    assert [row["longest"] for row in rows(project, "show", "after")] == [5]
    done(["backfill", "runs", *DAY, *at(project)])
    assert "e5" in done(["diff", "runs", "--from", "1", "--to", "2", *at(project)])
    assert "e1" in done(["history", "runs", "--window", "2026-01-01T00:30:00Z", *at(project)])


def rows(project: Path, *words: str) -> list[dict[str, object]]:
    """Those of the document that a command prints."""
    document = json.loads(done([*words, "--json", *at(project)]))
    return sorted(document["rows"], key=str)


def test_documents_have_no_row_patterns(project: Path) -> None:
    feeds = Path(__file__).parents[2] / "data_contracts" / "feeds.yaml"
    (project / "data_contracts" / "feeds.yaml").write_text(feeds.read_text())
    words = ["new", "pattern", "feeds_rows", "--source", "feeds", "--kind", "match_recognize"]
    result = CliRunner().invoke(app, [*words, *at(project)])
    assert result.exit_code != 0
    assert "has documents, which kind match_recognize does not read" in result.output
