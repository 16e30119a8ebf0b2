"""The site of reports: what its pages say of real runs, and that a real browser shows them whole, also on a phone."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from csv import DictReader
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pyarrow as pa
import pytest
from playwright.sync_api import Browser
from pyarrow.parquet import read_table
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from tests.support.bare_lake import bare_lake
from tests.support.browser import DESK, PHONE, browser, opened
from tests.support.flights import Flights, flight, snowball
from trendlake.jobs.actions.revise import revise_in_session
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.report.amounts import Amount
from trendlake.pipelines.report.build import build_report
from trendlake.pipelines.report.database import HALF, Database, summed
from trendlake.pipelines.report.facts import PatternFacts
from trendlake.pipelines.report.places import Places
from trendlake.pipelines.report.read_pattern import read_pattern
from trendlake.pipelines.report.tally import Tally
from trendlake.pipelines.site.build import Site, Together, build_site, read_page_facts, refresh_pattern
from trendlake.pipelines.site.facts import OverviewFacts, PatternPageFacts
from trendlake.pipelines.site.pages import pattern_page
from trendlake.pipelines.site.read_overview import GROUPS_SHOWN, HEAT_COLUMNS, read_overview

pytestmark = [pytest.mark.spark, pytest.mark.long]

NEVER_RUN = """\
name: never_run
kind: trends
description: Waits for its first run
source: flights
pattern: Flight F+
return: {n: COUNT(*)}
within: 1 day
"""
WRONG = NEVER_RUN.replace("never_run", "wrong_file").replace("Flight F+", "Fligt F+")


class Links(HTMLParser):
    """Where a page points to, its own places, and its words."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.text = ""
        self.feed(html)
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.links += [value for name in ("href", "src") if (value := attributes.get(name)) is not None]
        if attributes.get("id"):
            self.ids.add(str(attributes["id"]))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("dd", "dt", "div", "h1", "h2", "li", "p", "td", "th", "tr"):
            self.text += " "


def words(page: Path) -> str:
    return Links(page.read_text(encoding="utf-8")).text


@pytest.fixture(scope="module")
def story(story: Flights, tmp_path_factory: pytest.TempPathFactory) -> Flights:
    """A copy, to which more happens: other files look at the one that is left as it was."""
    state = tmp_path_factory.mktemp("site") / "state"
    shutil.copytree(story.project.state, state)
    return replace(story, project=replace(story.project, state=state))


@pytest.fixture(scope="module")
def site(story: Flights, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Of three runs, two with a page, and a revision that changes a row and adds one; of a pattern that has never run
    and one that does not compile."""
    root = tmp_path_factory.mktemp("reports")
    late = flight(998, "2013-03-01T20:00:00", tailnum="N1UA", dep_delay=90.0)
    story.deliver([late, *snowball(1, 2, "YV")], feed="later")
    revise_in_session(
        Place(story.project, story.profile), story.lake, story.pattern(), "mended", if_published=True, unlimited=False
    )
    pattern = Path(story.pattern())
    for name, text in (("never_run", NEVER_RUN), ("wrong_file", WRONG)):
        (pattern.parent / f"{name}.yaml").write_text(text)
    site = Site(story.lake, story.project, Places(root))
    for run_id in ("two", "late"):
        build_report(story.lake, pattern, run_id, root)
    built = build_site(site, [pattern, pattern.parent / "never_run.yaml", pattern.parent / "wrong_file.yaml"])
    assert [item.name for item in built if not item.of_source] == ["test_pattern", "never_run", "wrong_file", ""]
    assert [item.name for item in built if item.of_source] == [path.stem for path in story.project.source_contracts()]
    assert not [item.failure for item in built if item.failure]
    return site


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


def test_every_link_of_every_page_is_alive_and_relative(site: Site) -> None:
    """To a file of the site, and to a place that the file has."""
    root = site.places.root
    pages = {page: Links(page.read_text(encoding="utf-8")) for page in root.rglob("*.html")}
    sources = len(site.project.source_contracts())
    assert len(pages) == 9 + sources  # all, the graph, three patterns, two runs, two of Great Expectations
    followed, rows = set(), {file for file in root.rglob("rows.*") if file.suffix in (".csv", ".parquet")}
    for page, said in pages.items():
        for link in said.links:
            path, place = urldefrag(unquote(link))
            assert not Path(path).is_absolute()
            assert "://" not in path
            target = (page.parent / path).resolve() if path else page
            if target in rows:
                followed.add(target)
                continue
            assert target in pages, (page, link)
            assert not place or place in pages[target].ids, (page, link)
            followed.add(target)
    assert followed == {*pages, *rows}
    assert len(rows) == 2  # of the one pattern that has published any
    assert not [path for path in root.rglob("*") if path.name.endswith(".partial")]


def test_pages_in_a_real_browser(site: Site, chromium: Browser, tmp_path: Path) -> None:
    """Nothing in the console, nothing asked of any network, nothing wider than a phone; light and dark differ."""
    others = {site.places.source(path.stem) for path in site.project.source_contracts() if path.stem != "flights"}
    for page in sorted({*site.places.root.rglob("*.html")} - others):
        papers = set()
        for width, scheme in ((DESK, "light"), (PHONE, "dark")):
            with opened(chromium, page, width, scheme) as (shown, seen):
                assert seen.complaints == [], page
                assert seen.asked == [], page
                assert shown.evaluate("document.documentElement.scrollWidth") <= width, page
                papers.add(shown.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert len(papers) == 2, page


def test_charts_are_drawn(site: Site, chromium: Browser) -> None:
    """Marks that have a size, on the desk and on a phone; what a mark says comes up under the pointer."""
    page = site.places.pattern("test_pattern")
    for width in (DESK, PHONE):
        with opened(chromium, page, width) as (shown, _):
            lines = ".wide" if width == DESK else ".narrow"
            shown.evaluate("for (const closed of document.querySelectorAll('details')) closed.open = true")
            least_marks = {
                f".chart {lines} path[aria-label]": 2,
                ".heat i[aria-label]": 5,
                ".cost .bar i": 13,
                "svg.automaton text": 3,
                ".matrix i.dot": 20,
            }
            for marks, least in least_marks.items():
                boxes = [mark.bounding_box() for mark in shown.locator(marks).all()]
                sized = [box for box in boxes if box and box["width"] > 0.5 and box["height"] > 0.5]
                assert len(sized) >= least, marks
            shown.locator(".heat i[aria-label*=UA]").first.hover()
            assert shown.locator("#tip").inner_text().split("\n")[:2] == ["UA", "63"]


def test_each_measure_has_a_chart_to_choose(site: Site, chromium: Browser) -> None:
    """Under the names of the pattern's author; one is seen at a time."""
    with opened(chromium, site.places.pattern("test_pattern"), PHONE) as (shown, _):
        assert shown.locator(".choice label").all_inner_texts() == ["snowballs", "legs", "worst", "mean"]
        for number, name in enumerate(("snowballs", "legs", "worst", "mean"), 1):
            shown.locator(f"label[for=measure-{number}]").click()
            (title,) = [one.inner_text() for one in shown.locator(".panel h2").all() if one.is_visible()]
            assert title.startswith(f"{name} over time: at most")
            boxes = [one.bounding_box() for one in shown.locator(".panel .narrow path[aria-label]").all()]
            assert sum(1 for box in boxes if box and box["width"] > 0.5) >= 2


def test_the_newest_rows_can_be_sorted_filtered_and_taken_along(site: Site, chromium: Browser) -> None:
    page = site.places.pattern("test_pattern")
    comma, parquet = site.places.rows("test_pattern")
    rows = read_table(parquet).to_pylist()
    with comma.open(newline="") as file:
        assert [one["carrier"] for one in DictReader(file)] == [row["carrier"] for row in rows]
    times = [row["window_start"] for row in rows]
    assert times == sorted(times, reverse=True)
    with opened(chromium, page) as (shown, _):

        def column(number: int) -> list[str]:
            cells = shown.locator(f"#newest-rows tbody tr td:nth-child({number})").all()
            return [cell.inner_text() for cell in cells if cell.is_visible()]

        first = column(1)
        assert first == [f"{int(row['snowballs']):,}" for row in rows]
        counts = sorted((int(text.replace(",", "")) for text in first), reverse=True)
        head = shown.locator("#newest-rows th button", has_text="snowballs")
        for order in (counts, counts[::-1], counts):
            head.click()
            assert [int(text.replace(",", "")) for text in column(1)] == order
        shown.locator(".order").select_option(label="carrier")
        carriers = [cell.inner_text() for cell in shown.locator("#newest-rows tbody th").all()]
        assert carriers == sorted(carriers)
        shown.locator(".tools .filter").fill("yv")
        assert len(column(1)) == carriers.count("YV") > 0
    with opened(chromium, page, 360) as (shown, _):
        assert shown.evaluate("document.documentElement.scrollWidth") <= 360
        labels = shown.locator("#newest-rows tbody tr").first.locator("[data-label]").all()
        assert [one.get_attribute("data-label") for one in labels][:2] == ["snowballs", "legs"]
        assert all((box := one.bounding_box()) and box["x"] + box["width"] <= 360 for one in labels)
        shown.locator(".tools .filter").fill("yv")
        assert sum(row.is_visible() for row in shown.locator("#newest-rows tbody tr").all()) == carriers.count("YV")


def test_the_page_of_all_says_where_to_look(site: Site, chromium: Browser) -> None:
    """What is wrong comes first; each row has its state, its freshness and its rows; a filter finds by any word."""
    with opened(chromium, site.places.index) as (shown, _):
        rows = shown.locator(".cards tbody tr")
        assert [row.split("\n")[0] for row in rows.all_inner_texts()] == ["wrong_file", "test_pattern", "never_run"]
        wrong, good, new = rows.all_inner_texts()
        assert "Does not compile" in wrong
        assert "Fligt" in wrong
        assert "Revised" in good
        assert "Up to date" in good
        assert "Published windows show version 3 of flights and reach to 3 Mar 2013, 00:00" in good
        assert "Never run" in new
        shown.locator(".filter").fill("never NOTHING")
        assert [row.inner_text().split("\n")[0] for row in rows.all() if row.is_visible()] == ["never_run"]


def test_a_pattern_s_page_tells_its_story(site: Site) -> None:
    """Results, what a revision changed and by which version, verdicts, cost, runs, contract, the file."""
    page = words(site.places.pattern("test_pattern"))
    for said in (
        "snowballs in the busiest window",
        "All 4 groups",
        "Revision to version 4: 2 of 2 changed rows",
        "snowballs 31 → 63",
        "4 publications in all",
        "flights, version 3",
        "Check source",
        "4 runs in all",
        "data_contracts/flights.yaml",
        "F.dep_delay < NEXT(F).dep_delay",
    ):
        assert said.lower() in page.lower(), said
    assert "its page" not in page  # the last was a revision, which has none
    assert "mended" in page


def test_data_docs_come_of_a_real_validation(site: Site) -> None:
    """Of the newest run that has checked its results, rule by rule; nothing else is there to be linked."""
    checks, suite = site.places.checks("test_pattern", "late"), site.places.suite("test_pattern")
    assert "Run late: its staged rows, judged by the suite" in words(checks)
    assert "snowballs_at_least_one: `snowballs` IS NULL OR `snowballs` >= 1" in words(checks)
    assert "Success Percent 100%" in words(checks)
    assert "snowballs_at_least_one: `snowballs` IS NULL OR `snowballs` >= 1" in words(suite)
    assert "No Data Docs of Great Expectations: no run of the pattern has checked results yet" in words(
        site.places.pattern("never_run")
    )


def test_a_run_brings_its_pattern_s_page_up_to_date(site: Site, story: Flights) -> None:
    """Its page and its row among all; what is there of others, and the Data Docs, stay."""
    for page in (site.places.pattern("test_pattern"), site.places.index):
        page.unlink()
    page = refresh_pattern(site, Path(story.pattern()))
    assert "Data Docs of Great Expectations: what was found" in words(page)
    index = words(site.places.index)
    assert all(name in index for name in ("test_pattern", "never_run", "wrong_file"))


def test_a_revision_brings_its_pattern_s_page_up_to_date(site: Site, story: Flights) -> None:
    """As `trendlake revise` leaves it, before anybody asks for the site."""
    places = Places(story.project.state / "reports")
    page, index = words(places.pattern("test_pattern")), words(places.index)
    assert "snowballs 31 → 63" in page
    assert "mended" in page
    assert "Published windows show version 3 of flights" in index
    assert "never_run" not in index  # it had no page yet


def test_results_of_any_size_make_a_page_of_the_same_size(
    spark: SparkSession, site: Site, story: Flights, tmp_path: Path
) -> None:
    """500 groups over three years of days: what is left out is counted, totals are exact, the page stays small."""
    days, groups, each = 1000, 500, 4
    rows = (
        spark.range(days * each)
        .select((sf.col("id") / each).cast("int").alias("day"), sf.col("id"))
        .select(
            sf.concat(sf.lit("G"), ((sf.col("id") * 7919) % groups).cast("string")).alias("carrier"),
            sf.timestamp_micros(sf.col("day").cast("bigint") * 86_400_000_000).alias("window_start"),
            sf.timestamp_micros((sf.col("day").cast("bigint") + 1) * 86_400_000_000).alias("window_end"),
            (sf.col("day") + sf.col("id") % each).cast("decimal(38,0)").alias("snowballs"),
            sf.lit(None).cast("double").alias("snowballs_log10"),
            sf.lit("now").alias("plan_hash"),
        )
    )
    path = str(tmp_path / "results")
    rows.coalesce(1).write.format("delta").save(path)
    overview = read_overview(bare_lake(spark), path, _pattern(story), None)
    assert overview is not None
    assert (overview.rows, overview.windows, overview.group_count, len(overview.groups)) == (
        days * each,
        days,
        groups,
        GROUPS_SHOWN,
    )
    assert overview.bucket_seconds is not None
    assert len(overview.totals) <= 200
    assert overview.totals[-1].amount.exact == sum(days - 1 + i for i in range(each))
    assert max(group.peak.exact or 0 for group in overview.groups) == days - 1 + each - 1
    assert all(len(group.points) <= HEAT_COLUMNS + 1 for group in overview.groups)
    html = pattern_page(_with(site, story, overview))
    said = Links(html).text
    assert len(html) < 600_000
    assert "The 24 groups with the largest windows, of 500; 476 groups left out" in said
    assert "1,000 windows: each point is the largest of" in said


def test_sums_of_counts_of_any_size() -> None:
    """As `Tally` has them, which adds one by one: exact where every part is, else in magnitude."""
    big = 10**38 - 1
    cases: dict[str, list[tuple[int | None, float | None]]] = {
        "small": [(3, None), (0, None), (10**20, None)],
        "noughts": [(0, None), (0, None)],
        "overflows": [(big, None), (big, None)],
        "beyond": [(None, 3000.5), (None, 2999.9), (5, None)],
        "edge of a hundred": [(None, 300.0), (None, 299.9), (None, 299.999)],
    }
    rows = [
        {
            "k": name,
            "x": None if x is None else Decimal(x),
            "l": log10 if log10 is not None else math.log10(x) if x else None,
        }
        for name, parts in cases.items()
        for x, log10 in parts
    ]
    kinds = pa.schema([("k", pa.string()), ("x", pa.decimal128(38, 0)), ("l", pa.float64())])
    with Database() as database:
        database.fill(pa.Table.from_pylist(rows, kinds).to_batches())
        sums = {
            key: (None if unknown else high * HALF + low, log10, n)
            for n, unknown, high, low, log10, key in database.all(summed("k", "rows"))
        }
    for name, parts in cases.items():
        tally = Tally()
        for x, log10 in parts:
            tally.add(Amount.of_count(x, log10), ())
        wanted, (x, log10, n) = tally.total(), sums[name]
        assert x == wanted.exact, name
        assert n == len(parts)
        assert (log10 is None) == (wanted.log10 is None), name
        assert log10 is None or math.isclose(log10, wanted.log10 or 0.0, rel_tol=1e-12), name


def _pattern(story: Flights) -> PatternFacts:
    return read_pattern(Path(story.pattern()))


def _with(site: Site, story: Flights, overview: OverviewFacts) -> PatternPageFacts:
    file = Path(story.pattern())
    facts = read_page_facts(site, file, docs=False, together=Together(site, [file]))
    return replace(facts, overview=overview)
