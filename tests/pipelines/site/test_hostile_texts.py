"""Texts of others on pages: each is shown as it is. No script of theirs runs, and nothing is asked of the network.

Hostile are the description, owner, tags, constants, tables and batch of patterns, the columns, rules and words of
contracts, event ids, groups and values of the events, quarantined rows, the name of a run and of a feed, and the error
of one that failed."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from playwright.sync_api import Browser
from pyspark.sql import SparkSession

from tests.conftest import ROOT
from tests.support.browser import DESK, browser, opened
from tests.support.flights import all_steps
from tests.support.hostile_texts import ADDRESS, HOSTILE
from tests.support.own_source import FALLING, start
from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.yaml.source import plain, read_yaml, yaml_text
from trendlake.jobs.terminal import workspace
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.ingest.deliver import ingest
from trendlake.pipelines.ingest.readers.files import read_file
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.project.paths import find_project
from trendlake.pipelines.project.profile import Limits, Profile
from trendlake.pipelines.report.build import build_report
from trendlake.pipelines.site.build import Site, build_site, plan_of, refresh_patterns

pytestmark = pytest.mark.spark

RUN = HOSTILE[1]
"""The name of a run."""
COLUMN = "<b>|`x`[y]![z]$&quot"
"""A column; Delta takes no spaces, commas, parentheses and equals signs in one."""
MATCHES = """\
source: trades
kind: matches
pattern: SEQ(Trade a, Trade b)
where: ["[company]", a.price > b.price, "a.company != '<script>pwned()</script>'"]
return: {who: a.company, said: b.note}
select: contiguous
within: 1 minute
"""
RULE = {
    "name": "no <img> of 'x'",
    "description": HOSTILE[0],
    "type": "custom",
    "engine": "trendlake",
    "implementation": "note IS NULL OR note <> '<script>pwned()</script>'",
    "dimension": "conformity",
}
VALUES = {
    "name": "known",
    "metric": "invalidValues",
    "mustBe": 0,
    "dimension": "conformity",
    "arguments": {"validValues": ["<img> of 'x'", *HOSTILE]},
}
EXPECTED = {
    "name": "as <b>expected</b>",
    "description": HOSTILE[3],
    "type": "custom",
    "engine": "trendlake",
    "implementation": "lowest <> 99 OR window_start IS NOT NULL",
    "dimension": "conformity",
}


def visible(text: str) -> str:
    """As a browser shows it: signs that no page has are replaced, runs of white space are one."""
    return " ".join("".join(_sign(sign) for sign in text).split())


def _sign(sign: str) -> str:
    return sign if sign == "\n" or (sign >= " " and sign != "\uffff") else "\ufffd"


@pytest.fixture(scope="module")
def site(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A run of two patterns, with pages and Data Docs; a run that failed; a revision; rows in quarantine."""
    folder = tmp_path_factory.mktemp("hostile")
    start(folder, folder / "trades.csv", "id,at,company,price,note\nt1,2026-01-05T09:00:00,A,10,x\n")
    project = replace(find_project(folder), state=folder / "state")
    _hostile_contract(project.contract_path("trades"))
    results = plain(read_yaml(ROOT / "data_contracts" / "results_trends.yaml").data)
    results["description"] = {"purpose": HOSTILE[0]}
    results["schema"][0].setdefault("quality", []).append(EXPECTED)
    results["schema"][0]["properties"][0]["quality"] = [VALUES]
    (project.contracts / "results_trends.yaml").write_text(yaml_text(results))
    words = {"description": "\n".join(HOSTILE), "owner": " ".join(HOSTILE), "tags": list(HOSTILE)}
    for name, text in (("falling", FALLING), ("pairs", "name: pairs\n" + MATCHES)):
        (project.patterns / f"{name}.yaml").write_text(text + yaml_text(words))
    tables = {f"T{number}": text for number, text in enumerate(HOSTILE)}
    lookups = {f"l{number}": {"table": f"{text} lookup"} for number, text in enumerate(HOSTILE)}
    odd = {"name": "odd", "kind": HOSTILE[1], "batch": HOSTILE[2], "sources": tables, "lookup": lookups}
    (project.patterns / "odd.yaml").write_text(yaml_text(odd))
    place = Place(project, Profile(master="local[2]"))
    site = workspace.site_of(place, Lake.of(spark, place.warehouse))
    _deliver(site, place, "first.parquet", broken=True)
    for name in ("falling", "pairs"):
        all_steps(workspace.prepared(place, Lake.of(spark, place.warehouse), name, ("2026-01-05", "2026-01-06"), RUN))
        plan, _ = plan_of(project, project.patterns / f"{name}.yaml")
        build_report(site.lake, project.patterns / f"{name}.yaml", RUN, site.places.root, plan)
    small = replace(place, profile=Profile(master="local[2]", limits=Limits(shard_rows=1, driver_rows=1)))
    with pytest.raises(TrendlakeError):
        all_steps(
            workspace.prepared(
                small, Lake.of(spark, small.warehouse), "falling", ("2026-01-05", "2026-01-06"), "failed"
            )
        )
    build_report(site.lake, project.patterns / "falling.yaml", "failed", site.places.root, None)
    built = build_site(site, [project.patterns / "falling.yaml", project.patterns / "pairs.yaml"])
    built += refresh_patterns(site, [project.patterns / "odd.yaml"])
    assert not [item.failure for item in built if item.failure]
    return site


def _hostile_contract(file: Path) -> None:
    contract = plain(read_yaml(file).data)
    table = contract["schema"][0]
    table["description"] = "\n".join(HOSTILE)
    for column, text in zip(table["properties"], HOSTILE, strict=False):
        column["description"] = text
    note = next(column for column in table["properties"] if column["name"] == "note")
    note["logicalTypeOptions"] = {"pattern": "^[^\\x00]*$"}
    table["properties"].append({"name": COLUMN, "logicalType": "string", "description": HOSTILE[6]})
    table.setdefault("quality", []).append(RULE)
    custom = table.setdefault("customProperties", [])
    custom[:] = [item for item in custom if item["property"] != "quarantineTolerance"]
    custom.append({"property": "quarantineTolerance", "value": 0.5})
    file.write_text(yaml_text(contract))


def _deliver(site: Site, place: Place, name: str, *, broken: bool) -> None:
    """Two falling trades of each company, the ids, companies and notes of which are hostile; some break a rule."""
    rows = []
    for second, text in enumerate(HOSTILE):
        for turn in (0, 1):
            at = f"2026-01-05T09:{second:02}:{turn:02}Z"
            note = HOSTILE[0] if broken and second < 4 and not turn else text + str(second)
            row = {"id": f"{text}#{turn}", "at": at, "company": text, "price": 20 - turn, "note": note}
            rows.append(row | {COLUMN: text})
    file = place.project.root / name
    table = pa.Table.from_pylist(rows)
    moments = pa.array([row["at"] for row in rows]).cast(pa.timestamp("us", "UTC"))
    pyarrow.parquet.write_table(table.set_column(1, "at", moments), file)
    contract = load_contract(place.project.contract_path("trades"))
    ingest(site.lake, contract, [read_file(file, contract)], feed=" ".join(HOSTILE), run_id=RUN)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


def pages(site: Site) -> list[Path]:
    return sorted(site.places.root.rglob("*.html"))


@pytest.mark.long
def test_pages_neither_run_nor_ask_for_anything(site: Site, chromium: Browser) -> None:
    """Opened, with every detail unfolded and every label of a chart read by the pointer. Chromium complains of a script
    that the page's policy refuses, and of a function that is not there."""
    assert len(pages(site)) == 13
    for page in pages(site):
        with opened(chromium, page, DESK) as (shown, seen):
            shown.evaluate("for (const closed of document.querySelectorAll('details')) closed.open = true")
            for mark in shown.locator(".chart path[aria-label], .chart i[aria-label], .chart .bar[aria-label]").all():
                if mark.is_visible():
                    mark.hover(force=True)
            assert seen.asked == [], page
            assert seen.complaints == [], page
            strange = "iframe, object, embed, img, link, base, form, meta[http-equiv=refresh], [onload], [onerror]"
            assert shown.locator(strange).count() == 0, page
            assert shown.locator("script").count() == 1, page
            hrefs = shown.eval_on_selector_all("[href], [src]", "all => all.map(one => one.getAttribute('href'))")
            assert all(re.fullmatch(r"[\w./#-]+", str(href)) for href in hrefs), hrefs


@pytest.mark.parametrize("name", ["falling", "pairs"])
def test_each_text_is_on_the_page_as_it_is(site: Site, chromium: Browser, name: str) -> None:
    """Description, owner, source, contract, groups and values; on the page of the run and of the pattern."""
    for page in (site.places.run(name, RUN), site.places.pattern(name)):
        with opened(chromium, page, DESK) as (shown, _):
            shown.evaluate("for (const closed of document.querySelectorAll('details')) closed.open = true")
            words = visible(str(shown.evaluate("document.body.textContent")))
        assert all(visible(text) in words for text in HOSTILE), (page, [t for t in HOSTILE if visible(t) not in words])
        assert RUN in words
    assert COLUMN in words
    assert RULE["name"] in words


def test_groups_are_what_they_are(site: Site, chromium: Browser) -> None:
    """In the table of groups, in the legend, in the labels of the heat map and of the chart's marks."""
    with opened(chromium, site.places.run("falling", RUN), DESK) as (shown, _):
        listed = [visible(text) for text in shown.locator("#groups ~ .scroll th[scope=row]").all_text_contents()]
        labels = shown.eval_on_selector_all("[aria-label]", "all => all.map(one => one.getAttribute('aria-label'))")
    assert listed[:-1]
    assert set(listed[:-1]) <= {visible(text) for text in HOSTILE}
    marks = [visible(label.split("\n")[0]) for label in labels if label.count("\n") == 2]
    assert marks
    assert set(marks) <= {*map(visible, HOSTILE), "10 other groups together"}
    with opened(chromium, site.places.pattern("falling"), DESK) as (shown, _):
        rows = [visible(text) for text in shown.locator("#rows ~ .scroll th[scope=row]").all_text_contents()]
    assert set(rows) <= {visible(text) for text in HOSTILE}


def test_the_error_of_a_failed_run_is_text(site: Site, chromium: Browser) -> None:
    """It names a group."""
    with opened(chromium, site.places.run("falling", "failed"), DESK) as (shown, seen):
        reason = shown.locator("p.why.bad").text_content() or ""
    assert any(text in reason for text in HOSTILE), reason
    assert seen.complaints == []


def test_the_quarantine_shows_rows_as_they_came(site: Site, chromium: Browser) -> None:
    """Reasons and samples."""
    with opened(chromium, site.places.run("falling", RUN), DESK) as (shown, _):
        shown.evaluate("for (const closed of document.querySelectorAll('details')) closed.open = true")
        table = visible(" ".join(shown.locator("#quarantine ~ details").all_text_contents()))
    assert f"note {HOSTILE[0]}" in table
    assert COLUMN in table


def test_the_index_shows_descriptions_as_they_are(site: Site, chromium: Browser) -> None:
    """And its filter takes any text."""
    with opened(chromium, site.places.index, DESK) as (shown, _):
        words = visible(shown.locator(".cards").text_content() or "")
        shown.locator(".filter").fill(HOSTILE[0])
        left = shown.locator(".cards tbody tr:visible").count()
    assert visible(" ".join(" ".join(HOSTILE).split())) in words
    assert left == 3


def test_the_graph_shows_names_as_they_are(site: Site, chromium: Browser) -> None:
    """Drawn, also in what is said of a box, and in the list: of tables and a batch that no file should name so."""
    named = [*HOSTILE, *(f"{text} lookup" for text in HOSTILE)]
    with opened(chromium, site.places.graph, DESK) as (shown, _):
        listed = {visible(text) for text in shown.locator("#list ~ table tbody th").all_inner_texts()}
        said = [visible(one.get_attribute("aria-label") or "") for one in shown.locator(".lineage .node").all()]
        titles = [visible(text) for text in shown.locator(".lineage .edge title").all_text_contents()]
        frame = visible(shown.locator(".lineage .frame title").text_content() or "")
    assert {f"{visible(text)} source" for text in named} <= listed
    assert {f"odd {verb} {visible(text)}" for verb, text in pairs_of(named)} <= set(titles)
    assert all(any(one.startswith(f"{visible(text)}, source: No contract.") for one in said) for text in named)
    assert frame == f"Batch {visible(HOSTILE[2])}"


def pairs_of(named: list[str]) -> list[tuple[str, str]]:
    return [("looks up" if text.endswith(" lookup") else "reads", text) for text in named]


def test_a_source_s_page_shows_its_texts_as_they_are(site: Site, chromium: Browser) -> None:
    """The contract's words, columns, rules, feeds and runs; the least and the greatest id and note."""
    with opened(chromium, site.places.source("trades"), DESK) as (shown, _):
        words = visible(str(shown.evaluate("document.body.textContent")))
        ends = [visible(text) for text in shown.locator("#columns ~ .scroll td.end").all_text_contents()]
    assert all(visible(text) in words for text in HOSTILE), [text for text in HOSTILE if visible(text) not in words]
    assert COLUMN in words
    assert RULE["name"] in words
    assert visible(" ".join(HOSTILE)) in words  # the feed
    assert words.count(visible(RUN)) >= 4
    assert any(end.startswith(visible(max(HOSTILE, key=str.encode))[:20]) for end in ends)


def test_data_docs_show_rules_as_they_are(site: Site, chromium: Browser) -> None:
    """Great Expectations' pages as they are laid out here."""
    for page in (site.places.checks("falling", RUN), site.places.suite("falling")):
        with opened(chromium, page, DESK) as (shown, _):
            words = visible(shown.locator("main").text_content() or "")
        assert "as <b>expected</b>" in words, page
        assert "lowest <> 99 OR window_start IS NOT NULL" in words, page
        assert "window_not_empty: window_start < window_end" in words, page
        assert "<img> of 'x'" in words, page


def test_what_is_stored_beside_a_page_is_data(site: Site) -> None:
    """The card of a pattern; the source of its page holds no text of others but escaped."""
    card = json.loads(site.places.card("falling").read_text())
    assert card["card"]["owner"] == " ".join(" ".join(HOSTILE).split())
    source = site.places.pattern("falling").read_text(encoding="utf-8")
    assert ADDRESS in html.unescape(source)
    assert HOSTILE[0] not in source
