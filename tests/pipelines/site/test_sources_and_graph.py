"""Pages of sources and the graph: held against slow loops over rows, commits, records and pattern files. One project
for all, made without Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake
from playwright.sync_api import Browser

from tests.support.browser import DESK, browser, opened
from tests.support.site_project import make
from trendlake.jobs.terminal import workspace
from trendlake.jobs.terminal.workspace import find_place, session
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.column_statistics import statistics_of
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.report.places import Places
from trendlake.pipelines.report.words import stamp
from trendlake.pipelines.site.build import Site, build_site, refresh_patterns
from trendlake.pipelines.site.graph import has_source_page, read_graph, upstream_of

PHONE = 360
COLUMNS = "id", "at", "company", "price", "shares", "day", "open", "note"


class Tables(HTMLParser):
    """The tables of a page, by the heading before them: rows of the texts of their cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self._heading, self._row, self._open = "", list[str](), ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "h2":
            self._heading = str(dict(attrs).get("id"))
        elif tag == "tr":
            self._row = []
            self.tables.setdefault(self._heading, []).append(self._row)
        elif tag in ("td", "th"):
            self._row.append("")
            self._open = tag
        elif tag == "span" and self._open:
            self._row[-1] += "\n"

    def handle_data(self, data: str) -> None:
        if self._open:
            self._row[-1] += data.strip() if not self._row[-1] else data

    def handle_endtag(self, tag: str) -> None:
        if tag == self._open:
            self._open = ""


def tables(page: Path) -> dict[str, list[list[str]]]:
    return Tables(page.read_text(encoding="utf-8")).tables


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("graph")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TRENDLAKE_STATE", raising=False)
        make(folder)
        place = find_place(folder, None)
        with session(place, "test") as lake:
            site = workspace.site_of(place, lake)
            built = refresh_patterns(site, site.project.pattern_files())
            assert not [item.failure for item in built if item.failure]
            yield site
            assert lake.started is None  # no Spark, no Java


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


def trades(site: Site) -> list[dict[str, Any]]:
    return DeltaTable(site.lake.warehouse.source("trades")).to_pyarrow_table().to_pylist()


def slow(rows: list[dict[str, Any]], name: str) -> tuple[int, Any, Any]:
    """How many rows have NULL in the column, and the least and the greatest value that is no NaN."""
    nulls, low, high = 0, None, None
    for row in rows:
        value = row[name]
        if value is None:
            nulls += 1
        elif value == value:
            low = value if low is None or value < low else low
            high = value if high is None or value > high else high
    return nulls, low, high


def shown(value: Any) -> str:
    """As the page has it."""
    if value is None:
        return "–"
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, date):
        return f"{value.day} {value:%b} {value.year}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and len(value.encode()) > 60:
        return value.encode()[:60].decode(errors="ignore") + "…"
    return f"{value:,}" if isinstance(value, int) else str(value + 0.0 if isinstance(value, float) else value)


def test_columns_are_those_of_a_slow_loop_over_the_rows(site: Site) -> None:
    rows, page = trades(site), tables(site.places.source("trades"))
    cells = {row[0]: row for row in page["columns"][1:]}
    assert tuple(cells) == COLUMNS
    for name in COLUMNS:
        nulls, low, high = slow(rows, name)
        share = "none" if not nulls else f"{100 * nulls / len(rows):.3g} %"
        assert cells[name][2:5] == [share, shown(low), shown(high)], name
    assert cells["price"][1].startswith("double")
    assert cells["price"][5] == "What one share costs, in EUR"
    assert cells["at"][1].split("\n") == ["timestamp, required", "event_time"]
    quotes = {row[0]: row[1] for row in tables(site.places.source("quotes"))["columns"]}
    assert quotes["at"].split("\n") == ["timestamp, required", "event_time; files write iso8601 in UTC"]
    assert f"{len(rows)}" in site.places.source("trades").read_text()


def test_freshness_is_said_in_words(site: Site) -> None:
    """The newest event that counts, and the commit that changed rows last."""
    text = " ".join(re.sub(r"<[^>]+>", " ", site.places.source("trades").read_text(encoding="utf-8")).split())
    newest = max(row["at"] for row in trades(site) if row["price"] is None or row["price"] >= 0)
    assert f"Its newest event is of {stamp(newest)} UTC," in text
    log = sorted((Path(site.lake.warehouse.source("trades")) / "_delta_log").glob("*.json"))
    info = next(json.loads(line)["commitInfo"] for line in log[-1].read_text().splitlines() if "commitInfo" in line)
    at = datetime.fromtimestamp(json.loads(info["userMetadata"])["at"] // 10**6, UTC)
    assert f"The last change of its rows came on {stamp(at)} UTC," in text
    assert f"and made version {len(log) - 1}." in text
    reference = site.places.source("companies").read_text(encoding="utf-8")
    assert "newest event" not in reference
    assert "The last change of its rows came on" in reference


def test_deliveries_are_the_commits_of_the_log(site: Site) -> None:
    """Version, by whom, rows delivered, inserted, updated, deleted."""
    page = tables(site.places.source("trades"))["deliveries"][1:]
    commits = []
    for file in sorted((Path(site.lake.warehouse.source("trades")) / "_delta_log").glob("*.json"), reverse=True):
        info = next(json.loads(line)["commitInfo"] for line in file.read_text().splitlines() if "commitInfo" in line)
        if "userMetadata" in info:
            stage = json.loads(info["userMetadata"])["stage"]
            commits.append((f"Version {int(file.stem)}", {"ingest": "Delivery", "delete": "Deletion"}[stage]))
    assert [(row[0].split("\n")[1], row[1].split("\n")[0]) for row in page] == commits
    assert [row[2:] for row in page] == [["–", "0", "0", "1"], ["4", "3", "1", "0"], ["6", "6", "0", "0"]]


def test_rules_count_the_rows_that_broke_them(site: Site) -> None:
    """In each step that judged rows, as the run record has it; one row of the second delivery has a price below 0."""
    records = DeltaTable(site.lake.warehouse.runs).to_pyarrow_table().to_pylist()
    judged = []
    for record in sorted(records, key=lambda record: record["finished_at"]):
        for check in json.loads(record["checks"] or "[]"):
            if check["check"] == "set_apart" and check["data"].get("source", record["source"]) == "trades":
                judged.append(check["data"]["rules"])
    page = tables(site.places.source("trades"))["rules"]
    counts = {row[0]: row[2 : 2 + len(judged)] for row in page[1:] if row[-1] == "quarantined"}
    assert counts == {name: [str(rules.get(name, 0)) for rules in judged] for name in counts}
    assert counts["price_range"] == ["0", "0", "1", "0"]  # the run of by_sector reads the hour before
    steps = [row[0].split("\n")[0] for row in page[1:] if row[-1] != "quarantined"][1:]
    assert steps == ["4 · Run of by_sector", "3 · Delivery", "2 · Run of falling", "1 · Delivery"]


def test_statistics_are_not_known_rather_than_counted_for_minutes(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where files have too many of them. No row is read for them."""
    table = table_here(site.lake, site.lake.warehouse.source("trades"))
    monkeypatch.setattr(limits, "READ", 0)
    shares = statistics_of(table, COLUMNS)["shares"]
    assert (shares.nulls, shares.low, shares.high) == slow(trades(site), "shares")
    monkeypatch.setattr(limits, "STATISTICS", 1)
    other = replace(site, places=Places(site.places.root.parent / "few"))
    refresh_patterns(other, site.project.pattern_files()[:1])
    page = other.places.source("trades").read_text(encoding="utf-8")
    assert "not known: " in page
    assert {tuple(row[2:5]) for row in tables(other.places.source("trades"))["columns"][1:]} == {("not known",) * 3}


def edges(site: Site) -> set[tuple[str, str, str]]:
    """Pattern, how, table: read from the files by a loop."""
    pairs = set()
    for file in sorted((site.project.root / "conf" / "patterns").glob("*.yaml")):
        text = yaml.safe_load(file.read_text())
        entries = text.get("sources", {"": text.get("source")}).values()
        for entry in entries:
            table = entry["source"] if isinstance(entry, dict) else entry
            pairs.add((file.stem, "reads", table.removeprefix("results/")))
        for lookup in text.get("lookup", {}).values():
            pairs.add((file.stem, "looks up", lookup["table"]))
    return pairs


def test_the_graph_has_the_edges_of_the_project(site: Site) -> None:
    """Drawn, and in the list."""
    html = site.places.graph.read_text(encoding="utf-8")
    drawn = re.findall(r'<g class="edge(?: lookup)?"><title>(\w+) (reads|looks up) (\w+)</title>', html)
    assert len(drawn) == html.count('class="edge')
    assert set(drawn) == edges(site)
    listed = set()
    for name, _, reads, _ in tables(site.places.graph)["list"][1:]:
        for one in filter(None, reads.replace("–", "").split(",")):
            how, _, table = one.strip().rpartition(" ")
            listed.add((name.split("\n")[0], how or "reads", table))
    assert listed == edges(site)


def test_states_are_those_of_the_index(site: Site, chromium: Browser) -> None:
    """In a word, for each pattern that has a page; other nodes say why they have none."""
    with opened(chromium, site.places.index) as (page, _):
        index = {
            row.locator("th a").inner_text(): row.locator(".state").all_inner_texts()
            for row in page.locator(".cards tbody tr").all()
        }
    states = {row[0].split("\n")[0]: row[1].strip() for row in tables(site.places.graph)["list"][1:]}
    for name, words in index.items():
        assert states[name] in words, name
    assert states["falling"] == "2 versions behind"
    assert states["by_sector"] == "Up to date"
    assert states["wrong"] == "Does not compile"
    assert states["rising"] == "Never run"
    assert states["nowhere"] == "No contract"


@pytest.mark.long
def test_pages_link_one_another(site: Site, chromium: Browser) -> None:
    """The same navigation on each; a pattern's page its tables and its chain, a source's its patterns."""
    for page in sorted(site.places.root.rglob("*.html")):
        with opened(chromium, page) as (shown_page, _):
            links = shown_page.eval_on_selector_all("nav.site a", "all => all.map(one => [one.textContent, one.href])")
            root = site.places.root.as_uri()
            assert links == [
                ["Patterns", f"{root}/index.html"],
                ["Sources", f"{root}/index.html#sources"],
                ["Graph", f"{root}/graph.html"],
            ], page
            hrefs = shown_page.eval_on_selector_all("main a:not(svg a), header a", "all => all.map(one => one.href)")
            there = {href.removeprefix(f"{root}/") for href in hrefs}
            if page == site.places.pattern("oftener"):
                assert {"often/index.html", "falling/index.html", "graph.html"} <= there
            if page == site.places.pattern("by_sector"):
                assert {"source-pages/trades.html", "source-pages/companies.html"} <= there
            if page == site.places.source("companies"):
                assert "by_sector/index.html" in there
            if page == site.places.index:
                assert {f"source-pages/{name}.html" for name in ("trades", "companies", "quotes")} <= there


LUMINANCE = """el => {
  const rgb = text => text.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = c => 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
  const style = getComputedStyle(el);
  const box = el.closest('g.node, a.node, g.frame');
  const behind = box ? getComputedStyle(box.querySelector('rect')).fill
    : getComputedStyle(document.body).backgroundColor;
  const [a, b] = [light(rgb(box ? style.fill : style.color)), light(rgb(behind))].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}"""


@pytest.mark.long
def test_new_pages_fit_a_phone_and_can_be_read(site: Site, chromium: Browser) -> None:
    """Nothing wider than 360 pixels but what scrolls in its own box; texts have a contrast of 4.5 to what is behind
    them, light and dark; texts of the drawing fit their boxes."""
    for page in (site.places.graph, site.places.source("trades"), site.places.source("companies"), site.places.index):
        for width, scheme in ((PHONE, "light"), (PHONE, "dark"), (DESK, "dark")):
            with opened(chromium, page, width, scheme) as (shown_page, seen):
                assert seen.complaints == []
                assert seen.asked == []
                assert shown_page.evaluate("document.documentElement.scrollWidth") <= width, page
                texts = ".lineage text, nav.site a, .state, .none, .sub, .why, td, th"
                ratios = shown_page.eval_on_selector_all(texts, f"all => all.map({LUMINANCE})")
                assert min(ratios) >= 4.5, (page, scheme)
    with opened(chromium, site.places.graph, PHONE) as (shown_page, _):
        for node in shown_page.locator(".lineage .node").all():
            box = node.locator("rect").first.bounding_box()
            for text in node.locator("text").all():
                inside = text.bounding_box()
                assert box is not None
                assert inside is not None
                assert inside["x"] + inside["width"] <= box["x"] + box["width"] + 1, text.text_content()


def test_the_drawing_is_read_and_clicked_without_scripts(site: Site, chromium: Browser) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site.places.graph.as_uri())
    node = page.locator(".lineage a", has=page.locator("text.name", has_text=re.compile("^falling$")))
    said = node.get_attribute("aria-label") or ""
    assert said == "falling, pattern of kind trends: 2 versions behind. Reads trades. Read by often."
    node.click()
    assert page.url == site.places.pattern("falling").as_uri()
    context.close()


def test_a_source_without_a_table_or_with_a_mistake_has_a_page(site: Site, tmp_path: Path) -> None:
    """The contract's part of it; the mistake."""
    assert "No table yet" in site.places.source("quotes").read_text(encoding="utf-8")
    assert [row[0] for row in tables(site.places.source("quotes"))["columns"][1:]] == ["id", "at", "company", "bid"]
    contract = site.project.contracts / "quotes.yaml"
    text = contract.read_text()
    contract.write_text(text.replace("event_time", "event_tame"))
    try:
        other = replace(site, places=Places(tmp_path))
        built = refresh_patterns(other, [site.project.patterns / "both.yaml"])
        assert not [item.failure for item in built if item.failure]
        page = other.places.source("quotes").read_text(encoding="utf-8")
        assert "unknown event role" in page
        states = {row[0].split("\n")[0]: row[1].strip() for row in tables(other.places.graph)["list"][1:]}
        assert states["quotes"] == "The contract has a mistake"
        assert states["falling"] == "No page yet"
    finally:
        contract.write_text(text)


@pytest.mark.parametrize(
    "name", ["../conf/patterns/falling", "results/../../x", "results_trends", "nowhere", "/etc/x", ""]
)
def test_only_tables_with_a_contract_have_a_page(site: Site, name: str) -> None:
    """A pattern may name a path, which is no page's, and is not read."""
    assert not has_source_page(site.project, name)
    file = site.project.patterns / "odd_name.yaml"
    file.write_text(yaml.safe_dump({"name": "odd_name", "source": name, "pattern": "A a"}))
    try:
        before = upstream_of(site.project, site.places, file)
        assert [page for _, _, page in before.reads] == [""] * bool(name)
        graph = read_graph(site.project, site.places, [], {})
        assert [node.page for node, _ in graph.read_by("results/odd_name")] == [""] * bool(name)
    finally:
        file.unlink()


def test_a_table_of_other_programs(site: Site, tmp_path: Path) -> None:
    """Its commits are named by their operations and counted as those say it; the page of a contract that is gone is
    removed."""
    path, text = tmp_path / "ticks", (site.project.contracts / "quotes.yaml").read_text()
    row = {"id": ["a", "b", "c"], "at": [datetime(2026, 1, 5, 9, tzinfo=UTC)] * 3, "more": [["x"], None, ["y", "z"]]}
    write_deltalake(path, pa.table(row | {"bid": [1.5, 2.5, None]}))
    DeltaTable(path).delete("id = 'a'")
    DeltaTable(path).update(updates={"bid": "3.0"}, predicate="id = 'b'")
    project = Project(tmp_path / "project", tmp_path / "state")
    for folder in (project.patterns, project.contracts):
        folder.mkdir(parents=True)
    for name in ("ticks", "gone"):
        (project.contracts / f"{name}.yaml").write_text(text.replace("quotes", name))
    lake = Lake(Warehouse(str(tmp_path / "warehouse"), elsewhere={"ticks": str(path)}), no_spark, plain_paths=True)
    other = Site(lake, project, Places(tmp_path / "reports"))
    assert [item.failure for item in build_site(other, [])] == ["", "", ""]
    page = other.places.source("ticks")
    assert str(path) in page.read_text(encoding="utf-8")
    rows = tables(page)
    assert [row[1] for row in rows["deliveries"][1:]] == [
        f"Another program: {one}" for one in ("UPDATE", "DELETE", "WRITE")
    ]
    assert [row[3:] for row in rows["deliveries"][1:]] == [["0", "1", "0"], ["0", "0", "1"], ["3", "0", "0"]]
    columns = {row[0]: row[1:5] for row in rows["columns"][1:]}
    assert columns["bid"] == ["double", "50 %", "3.0", "3.0"]
    assert columns["company"] == ["string\nnot in the table", "–", "–", "–"]
    assert columns["more"] == ["array<string>\nnot in the contract", "50 %", "not known", "not known"]
    assert "source that other programs write" in other.places.graph.read_text(encoding="utf-8")
    (project.contracts / "gone.yaml").unlink()
    build_site(other, [])
    assert other.places.sources() == [page]


def no_spark() -> Any:
    raise AssertionError("Spark is started")
