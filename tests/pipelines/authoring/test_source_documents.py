"""`new source` of XML files: the contract, the first pattern over it, and a trial on the files, all without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.own_source import output_of
from trendlake.pipelines.contracts.contract import load_contract

FEED = """<rss><channel>
<item><guid>a</guid><pubDate>5 Jan 2026 09:00 GMT</pubDate><title>t</title></item>
<item><guid>b</guid><pubDate>5 Jan 2026 10:00 GMT</pubDate><title>t</title></item>
</channel></rss>"""
PATHS = ["--event-id", "guid", "--event-time", "pubDate", "--time-format", "rfc822"]
TYPED = ["--event-id", "id", "--event-time", "at"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("TRENDLAKE_STATE", "TRENDLAKE_PROJECT", "TRENDLAKE_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    output_of("init", tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    (tmp_path / "feeds").mkdir()
    (tmp_path / "feeds" / "1.xml").write_text(FEED)
    return tmp_path / "project"


def test_a_folder_becomes_a_source(project: Path) -> None:
    folder = project.parent / "feeds"
    assert "2 documents" in output_of("new", "source", "news", "--from", folder, "--document-path", "//item", *PATHS)
    output_of("new", "pattern", "again", "--source", "news")
    assert "again.yaml" in output_of("validate")
    output = output_of("try", "again", "--events", folder, "--json")
    rows = json.loads(output[output.index("{") : output.rindex("}") + 1])["rows"]
    assert [(row["left_id"], row["right_id"], row["title"]) for row in rows] == [("a", "b", "t")]


def test_what_cannot_be_read_is_not_written(project: Path) -> None:
    """A path that selects nothing, a time in another format, a file that breaks."""
    folder = project.parent / "feeds"
    source = ("new", "source", "news", "--from", folder)
    assert "has no element //entry" in output_of(*source, "--document-path", "//entry", *PATHS, code=1)
    assert "cannot be read as iso8601" in output_of(*source, "--document-path", "//item", *PATHS[:4], code=1)
    (folder / "1.xml").write_text(FEED[:-1])
    assert "xml_not_well_formed, line 4" in output_of(*source, "--document-path", "//item", *PATHS, code=1)
    assert not (project / "data_contracts" / "news.yaml").exists()


def test_a_column_of_documents(project: Path) -> None:
    """Of a CSV file; documents have no type, and patterns of other kinds do not read them."""
    file = project.parent / "news.csv"
    file.write_text("id,at,xml\n1,2026-01-05T09:00:00Z,<a/>\n")
    source = ("new", "source", "news", "--from", file, *TYPED, "--document", "xml")
    assert "documents have no type" in output_of(*source, "--type", "News", code=1)
    output_of(*source)
    contract = load_contract(project / "data_contracts" / "news.yaml")
    assert contract.roles == {"event_id": "id", "event_time": "at", "document": "xml"}
    pattern = project / "conf" / "patterns" / "rising.yaml"
    pattern.write_text(
        "name: rising\nkind: trends\nsource: news\npattern: News E+\nreturn: {n: COUNT(*)}\nwithin: 1 day\n"
    )
    assert "[NOT_SUPPORTED] kind trends reads events with a type" in output_of("validate", pattern, code=1)
