"""From a folder of feeds to answers, by the command: ingested, run, shown, corrected, revised (docs/how-to/xml.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.one_session import share_session
from tests.support.own_source import output_of

pytestmark = [pytest.mark.spark, pytest.mark.repeats]

PATTERN = """\
name: again
kind: xml_join
source: news
queries:
  same_link:
    left: {first: /item, link: $first/link}
    right: {second: /item, same: $second/link}
    operator: followed_by
    where: [$link = $same]
    within: 2 days
    return: {value: $same}
  same_title:
    left: {first: /item, title: $first/title}
    right: {second: /item, same: $second/title}
    operator: followed_by
    where: [$title = $same]
    within: 1 hour
    return: {value: $same}
expect:
  - measure: rows
    between: [0, 100]
    of_last: 1 windows
"""
TESTS = """\
- name: the same link an hour later
  events:
    - {document_id: a, document_time: 2026-01-05T09:00:00Z, document: "<item><link>x</link></item>"}
    - {document_id: b, document_time: 2026-01-05T10:00:00Z, document: "<item><link>x</link></item>"}
  expect:
    - {query: same_link, left_id: a, right_id: b, value: x}
"""
WEEK = ("--from", "2026-01-05", "--to", "2026-01-12")


def item(ident: str, at: str, link: str, title: str = "") -> str:
    head = f"<item><guid>{ident}</guid><pubDate>{at} GMT</pubDate><link>{link}</link>"
    return f"{head}{f'<title>{title}</title>' if title else ''}</item>"


def feed(*items: str) -> str:
    return f"<?xml version='1.0'?><rss><channel>{''.join(items)}</channel></rss>"


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    share_session(monkeypatch, spark)
    folder = tmp_path / "project"
    output_of("init", folder)
    monkeypatch.chdir(folder)
    feeds = tmp_path / "feeds"
    feeds.mkdir()
    monday = [item("a", "5 Jan 2026 09:00", "x", "t"), item("b", "5 Jan 2026 09:30", "y", "t")]
    (feeds / "1.xml").write_text(feed(*monday))
    (feeds / "2.xml").write_text(feed(*monday, item("c", "6 Jan 2026 23:00", "x"), item("d", "7 Jan 2026 09:01", "x")))
    return folder


def document(*arguments: str | Path, code: int = 0) -> Any:
    output = output_of(*arguments, "--json", code=code)
    return json.loads(output[output.index("{") : output.rindex("}") + 1])


def shown() -> set[tuple[str, ...]]:
    rows = document("show", "again", "--limit", "100")["rows"]
    return {tuple(row[name] for name in ("query", "left_id", "right_id", "value")) for row in rows}


def test_from_a_folder_to_answers(project: Path) -> None:
    feeds = project.parent / "feeds"
    paths = ["--document-path", "//item", "--event-id", "guid", "--event-time", "pubDate", "--time-format", "rfc822"]
    output_of("new", "source", "news", "--from", feeds, *paths)
    output_of("new", "pattern", "first", "--source", "news")
    (project / "conf" / "patterns" / "again.yaml").write_text(PATTERN)
    (project / "conf" / "patterns" / "tests").mkdir(exist_ok=True)
    (project / "conf" / "patterns" / "tests" / "again.yaml").write_text(TESTS)
    assert "ok" in output_of("validate")
    output_of("test")
    tried = document("try", "again", "--events", feeds)
    assert {(row["query"], row["left_id"], row["right_id"]) for row in tried["rows"]} == {
        ("same_link", "a", "c"),
        ("same_link", "c", "d"),
        ("same_title", "a", "b"),
    }
    (feeds / "3.xml").write_text(feed(item("e", "7 Jan 2026 10:00", "y")) + "</rss>")
    said = output_of("ingest", "news", feeds, code=1)
    assert "2 files  6 rows: 4 new, 2 there already" in said
    assert "3.xml: xml_not_well_formed, line 1" in said
    (feeds / "3.xml").unlink()
    output_of("run", "again", *WEEK)
    first = {("same_link", "a", "c", "x"), ("same_link", "c", "d", "x"), ("same_title", "a", "b", "t")}
    assert shown() == first
    assert "4 / 0 / -" in output_of("runs", "--limit", "20")  # of the delivery
    page = (project / ".trendlake" / "reports" / "again" / "index.html").read_text()
    assert "same_link" in page
    assert "same_title" in page
    # d moves to a minute before: exactly two days after a, and is one answer more; b says another title, e is late
    monday = [item("b", "5 Jan 2026 09:30", "y", "u"), item("e", "5 Jan 2026 08:59", "y")]
    (feeds / "4.xml").write_text(feed(*monday, item("d", "7 Jan 2026 09:00", "x")))
    output_of("ingest", "news", feeds)
    output_of("revise", "again")
    second = {
        ("same_link", "a", "c", "x"),
        ("same_link", "c", "d", "x"),
        ("same_link", "a", "d", "x"),
        ("same_link", "e", "b", "y"),
    }
    assert shown() == second
    changes = output_of("diff", "again", "--from", "1", "--to", "2")
    assert "same_title" in changes or "retracted" in changes
    output_of("backfill", "again", *WEEK)
    assert shown() == second
