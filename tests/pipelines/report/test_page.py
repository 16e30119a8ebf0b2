"""The page: whatever the data says, one file, no request, no script but its own, and nothing left unsaid."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest

from trendlake.cep_core import EventSchema, compile_query, draw
from trendlake.pipelines.report.amounts import Amount
from trendlake.pipelines.report.build import write_report
from trendlake.pipelines.report.facts import (
    CheckFacts,
    GroupKey,
    Measure,
    PatternFacts,
    QuarantineFacts,
    ReasonFacts,
    ReportFacts,
    ResultFacts,
    RunFacts,
    SampleFacts,
    StageFacts,
    Window,
)
from trendlake.pipelines.report.palette import DARK, LIGHT
from trendlake.pipelines.report.read_pattern import read_pattern
from trendlake.pipelines.report.render import render
from trendlake.pipelines.report.summary import Columns, result_row, summarise
from trendlake.pipelines.report.verdict import outcome
from trendlake.pipelines.report.view import page
from trendlake.pipelines.report.yaml_lines import yaml_lines

DAY = datetime(2013, 2, 3, tzinfo=UTC)
MOODS = {"accent", "good", "warn", "bad"}
EVIL = (
    "<script>alert(1)</script>",
    "</title><img src=x onerror=alert(2)>",
    '" onmouseover="alert(3)',
    "</svg><script>alert(4)</script>",
    "{{ 7 * 7 }}",
    "'+alert(5)+'",
    "&lt;b&gt;",
    "   ",
    "\u202eabc",
)


class Markup(HTMLParser):
    """Every element with its attributes, and all text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def pattern(**fields: object) -> PatternFacts:
    known = PatternFacts(
        name="delay_snowball",
        kind="trends",
        description="Delays that snowball",
        owner="ops",
        source="flights",
        pattern="Flight F+",
        where=("F.dep_delay > 0",),
        returns={"trends": "COUNT(*)", "mean": "AVG(F.dep_delay)"},
        group_by=("carrier",),
        within="1 day",
        slide=None,
        yaml="name: delay_snowball  # <b>\n",
    )
    return replace(known, **fields)  # type: ignore[arg-type]


def stage(name: str, status: str = "succeeded", **fields: object) -> StageFacts:
    known = StageFacts(name, status, 2.0, DAY, None, 900, None, None, 1, 3, 0, 0, 1)
    return replace(known, **fields)  # type: ignore[arg-type]


def run(*stages: StageFacts, checks: tuple[CheckFacts, ...] = (), version: int | None = 4) -> RunFacts:
    done = stages or tuple(stage(name) for name in ("check_source", "compute", "check_results", "publish"))
    return RunFacts(
        "r1",
        "delay_snowball",
        DAY,
        DAY + timedelta(days=1),
        "9f3ac1d2",
        "flights",
        41,
        0,
        version,
        DAY,
        DAY,
        done,
        checks,
    )


def results(counts: dict[GroupKey, Sequence[Amount]]) -> ResultFacts:
    """A series of days up to the run's own for each group."""
    rows = []
    for key, amounts in counts.items():
        for back, amount in enumerate(reversed(amounts)):
            start = DAY - timedelta(days=back)
            values: tuple[tuple[str, Amount | str], ...] = (("trends", amount), ("mean", Amount(12.5)))
            rows.append(result_row(key, Window(start, start + timedelta(days=1)), amount, values, DAY))
    return summarise(rows, Columns(("carrier",), ("trends", "mean"), Measure("trends", True)))


def report(**fields: object) -> ReportFacts:
    known = ReportFacts(
        pattern=pattern(),
        run=run(),
        quarantine=QuarantineFacts(0),
        results=results({("UA",): [Amount.of_count(n) for n in (3, 4, 5)], ("EV",): [Amount.of_count(2)]}),
        made_at=DAY,
    )
    return replace(known, **fields)  # type: ignore[arg-type]


def test_no_text_from_the_data_becomes_markup() -> None:
    """Groups, rules, rows, checks, errors, the pattern's own words: all are text."""
    plain = Markup(render(page(report())))
    many = report(
        pattern=pattern(description=EVIL[0], owner=EVIL[1], pattern=EVIL[3], where=EVIL, yaml="\n".join(EVIL)),
        run=run(
            stage("check_source", "failed", error=EVIL[3]),
            checks=tuple(CheckFacts("check_source", e, e, False, e, e) for e in EVIL),
        ),
        quarantine=QuarantineFacts(
            9, 9, tuple(ReasonFacts(e, e, 1) for e in EVIL), 0, 0, tuple(SampleFacts(e, e, ((e, e),)) for e in EVIL)
        ),
        results=results({(e,): [Amount.of_count(9 - i)] * 4 for i, e in enumerate(EVIL)}),
    )
    html = render(page(many))
    markup = Markup(html)
    assert {tag for tag, _ in markup.elements} - {tag for tag, _ in plain.elements} <= {"br", "details", "summary"}
    assert sum(tag == "script" for tag, _ in markup.elements) == 1
    assert not any(name.startswith("on") or name == "src" for _, attrs in markup.elements for name in attrs)
    links = {"../../index.html", "../../index.html#sources", "../../graph.html", "../index.html"}
    assert {attrs["href"] for _, attrs in markup.elements if "href" in attrs} == links
    assert all(evil in markup.text for evil in EVIL if evil.strip())


def test_the_page_asks_nothing_of_the_network_and_forbids_it() -> None:
    """No address is followed, and the policy allows the page's own script only, by its hash."""
    html = render(page(report()))
    markup = Markup(html)
    assert not re.search(r"(?:src|url|@import)\s*[=(]", html)
    assert "://" not in "".join(str(attrs.get("href")) for _, attrs in markup.elements)
    policy = next(a["content"] for t, a in markup.elements if t == "meta" and a.get("http-equiv"))
    script = re.search(r"<script>(.*?)</script>", html, re.S)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert f"script-src 'sha256-{digest}'" in policy


def test_pictures_have_no_colour_of_their_own() -> None:
    """Every colour is a variable, so that light, dark and print each have theirs; both schemes name the same roles."""
    html = render(page(report()))
    assert not re.search(r'(?:fill|stroke)="#', html)
    assert set(re.findall(r"var\(--([a-z0-9]+)\)", html)) - set("chnow") - MOODS <= set(LIGHT)
    assert set(LIGHT) == set(DARK)


def test_pictures_and_tables_can_be_read_without_eyes() -> None:
    """Each picture is one image with words for it; each table has headers with a scope."""
    markup = Markup(render(page(report())))
    images = [attrs for _, attrs in markup.elements if attrs.get("role") == "img"]
    assert [str(image["aria-label"])[:34] for image in images] == ["UA leads with 5 trends, 71 % of al"] * 2
    assert all(attrs.get("scope") in ("col", "row") for tag, attrs in markup.elements if tag == "th")
    assert next(attrs for tag, attrs in markup.elements if tag == "html")["lang"] == "en"


def test_the_automaton_is_a_picture_of_the_page(tmp_path: Path) -> None:
    """In the page's colours, named, with the plan in words; none where there is none. What it says is text."""
    schema = EventSchema(
        {"event_id": "string", "event_time": "timestamp", "event_type": "string", "x": "string"},
        "event_id",
        "event_time",
        "event_type",
        types=None,
    )
    asked = {"pattern": "F+", "where": ["F.x != '<script>alert(1)</script>'"], "return": {"n": "COUNT(*)"}}
    drawn = draw(compile_query({"kind": "trends", "within": "1 day", **asked}, schema), "evil", style=False)
    html = render(page(report(automaton=drawn)))
    markup = Markup(html)
    picture = [attrs for tag, attrs in markup.elements if tag == "svg" and attrs.get("class") == "automaton"]
    assert len(picture) == 1
    assert picture[0]["role"] == "img"
    assert "<script>alert(1)</script>" in markup.text
    assert sum(tag == "script" for tag, _ in markup.elements) == 1
    assert not re.search(r'(?:fill|stroke)="#', html)
    assert html.count(".automaton .state{") == 1
    assert "automaton .state" not in render(page(report()))


def test_counts_of_thousands_of_digits() -> None:
    """Shown as powers of ten on a logarithmic axis; exact ones keep their digits."""
    facts = results({("A",): [Amount(None, 3000.5)] * 3, ("B",): [Amount.of_count(10**37 + 1)] * 3})
    text = Markup(render(page(report(results=facts)))).text
    assert "A leads with ≈ 3.16 × 10³⁰⁰⁰ trends, > 99.9 % of all" in text
    assert "10,000,000,000,000,000,000,000,000,000,000,000,001" in text
    assert "Logarithmic axis." in text
    assert "< 0.1 %" in text


def test_an_empty_result_is_said() -> None:
    """Zero is an answer."""
    text = Markup(render(page(report(results=results({}))))).text
    assert "No trends in this interval" in text
    assert "Nothing in this interval matched the pattern." in text


def test_a_run_that_failed_says_where_and_why(tmp_path: Path) -> None:
    """Also when there has never been a result."""
    failed = run(stage("check_source"), stage("compute", "failed", error="[X] no memory"), version=None)
    facts = report(run=failed, results=None)
    text = Markup(render(page(facts))).text
    assert "Failed: compute" in text
    assert "[X] no memory" in text
    assert "No results have been published yet" in text
    assert "not published" in text
    assert write_report(facts, tmp_path).png.read_bytes().startswith(b"\x89PNG")


def test_results_that_an_earlier_run_left_are_not_claimed() -> None:
    """A run that has published nothing says that the rows shown existed before."""
    text = Markup(render(page(report(run=run(stage("check_source"), version=None))))).text
    assert "Not finished" in text
    assert "Still to run: compute, check results, publish." in text
    assert "This run has published nothing: the rows shown existed before." in text


def test_rows_set_aside_are_no_failure_of_the_run() -> None:
    """Red is for stages that stopped, amber for rules that rows break, and the words differ as the colours do."""
    broken = CheckFacts("check_source", "delay_range", "dep_delay", False, "18 of 900 rows break it", "in [-30, 1440]")
    warned = replace(broken, stage="check_results")
    fine = run(checks=(broken, replace(broken, success=True)))
    assert outcome(broken, fine) == ("warn", "Rows break it")
    assert outcome(warned, fine) == ("warn", "Warning")
    assert outcome(broken, run(stage("check_source", "failed"))) == ("bad", "Failed")
    said = page(report(run=fine, quarantine=QuarantineFacts(18, 18))).verdict
    assert (said.state, said.word) == ("good", "Published")
    assert said.reason == (
        "1 of 2 checks passed; some rows of the source break the other. "
        "18 rows went to quarantine, within the contract's tolerance."
    )
    assert page(report(run=run(checks=(warned,)))).verdict.word == "Published with warnings"


def test_what_could_not_be_judged_has_not_passed() -> None:
    """Nor is it a warning: it has words and a mark of its own, and is counted."""
    unjudged = CheckFacts("check_results", "none_vanish_of_last_7", "carrier", None, "not judged: why", "a row")
    passed = replace(unjudged, check="other", success=True)
    fine = run(checks=(unjudged, passed))
    assert outcome(unjudged, fine) == ("none", "Not judged")
    said = page(report(run=fine)).verdict
    assert (said.state, said.word) == ("good", "Published")
    assert said.reason == "No check failed. 1 check could not be judged."
    text = Markup(render(page(report(run=fine)))).text
    assert "1 check passed, none failed, 1 could not be judged" in text
    assert "not judged: why" in text


def test_what_a_limit_leaves_out_is_counted() -> None:
    """Groups, reasons and rows of another state of the pattern."""
    facts = replace(results({(f"G{i}",): [Amount.of_count(1)] for i in range(14)}), older_rows=3)
    quarantine = QuarantineFacts(30, 30, (ReasonFacts("rule", "why", 20),), 4, 10)
    text = Markup(render(page(report(results=facts, quarantine=quarantine)))).text
    assert "The 10 largest of 14 groups of this interval" in text
    assert "4 other groups" in text
    assert "4 other reasons" in text
    assert "Left out: 3 rows computed by another state of this pattern." in text


def test_a_second_attempt_is_mentioned() -> None:
    """The last one counts."""
    text = Markup(render(page(report(run=run(stage("compute", attempts=3)))))).text
    assert "3 attempts" in text


def test_files_are_named_after_pattern_and_run(tmp_path: Path) -> None:
    """An Airflow run id holds characters that no file name should; nothing half-written stays."""
    facts = report(run=replace(run(), run_id="scheduled__2013-01-01T00:00:00+00:00/../x"))
    paths = write_report(facts, tmp_path)
    there = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(there) == sorted([paths.html, paths.png])
    assert re.fullmatch(r"delay_snowball/runs/[\w.-]+\.html", str(paths.html.relative_to(tmp_path)))
    assert paths.png.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("text", ["a: 1\n", "", "- x: '# no'\n# c\nkey: v # why\n", "\tbad: [", "a:b\n\n  - z\n"])
def test_the_pattern_file_is_shown_as_it_is(tmp_path: Path, text: str) -> None:
    """Colours cut lines into words and lose none; a file that is no YAML is still shown."""
    lines = ["".join((line.lead, line.key, line.rest, line.comment)) for line in yaml_lines(text)]
    assert lines == text.rstrip("\n").split("\n")
    file = tmp_path / "some_pattern.yaml"
    file.write_text(text)
    assert (read_pattern(file).name, read_pattern(file).yaml) == ("some_pattern", text)
