"""Two pages, one number: what two outputs of one pattern both say, they say alike. Compared are the page of a run, the
page of its pattern, the page of all patterns, and the documents of `show`, `runs` and `history`; for several kinds, for
a few days, some months and two years, with groups, and with windows that overlap."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.flights import all_steps
from tests.support.own_source import start
from trendlake.jobs.actions.history import print_history
from trendlake.jobs.actions.show import Shown, print_results, print_runs
from trendlake.jobs.terminal import workspace
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.authoring.validate import compiled
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.ingest.deliver import ingest
from trendlake.pipelines.ingest.readers.files import feed_of, read_file
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.project.paths import find_project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.report.build import build_report, read_facts
from trendlake.pipelines.report.words import interval_label
from trendlake.pipelines.results.columns import time_of
from trendlake.pipelines.site.build import Site, Together, build_site, plan_of, read_page_facts

pytestmark = [pytest.mark.spark, pytest.mark.long]

HEAD = "source: trades\nowner: desk\n"
MATCHES = (
    HEAD
    + """\
kind: matches
pattern: SEQ(Trade a, Trade b)
where: [a.price < b.price]
return: {gain: b.price - a.price}
select: contiguous
within: 6 hours
"""
)
AUTOMATON = (
    HEAD
    + """\
kind: automaton
register: {low: {type: double, init: null}}
start: q0
final: [done]
arcs:
  - {from: q0, to: down, when: "e.price < 30", set: {low: e.price}}
  - {from: down, to: done, when: "e.price > 50"}
partition_by: [company]
within: 2 days
"""
)
TRENDS = (
    HEAD
    + """\
pattern: Trade E+
where: [E.price < NEXT(E).price]
return: {rises: COUNT(*), highest: MAX(E.price), mean: AVG(E.price)}
"""
)
GROUPED = TRENDS.replace("where: [", "group_by: [company]\nwhere: ['[company]', ")
PATTERNS = {
    "some_months": (MATCHES, "2021-03-18", "2021-10-14"),
    "of_groups": (AUTOMATON, "2021-03-18", "2021-10-14"),
    "two_years": (MATCHES, "2020-01-02", "2022-01-01"),
    "few_days": (GROUPED + "within: 1 day\n", "2021-05-20", "2021-05-31"),
    "a_year": (TRENDS + "within: 1 day\n", "2021-01-01", "2022-01-01"),
    "overlapping": (GROUPED + "within: 3 days\nslide: 1 day\n", "2021-05-01", "2021-06-02"),
    "of_weeks": (TRENDS + "within: 7 days\norigin: 2021-01-04\n", "2021-01-04", "2021-12-27"),
}
"""Each with the range of its run."""
LATER = ("2021-10-14", "2021-10-29")
"""A second run of `some_months`, which begins and ends in the middle of a week."""
MINUTE, DAY, WEEK = timedelta(minutes=1), timedelta(days=1), timedelta(days=7)


def prices() -> str:
    """Trades of two years, with weeks of none, and none in the first and last days of the range of `some_months`."""
    rng = random.Random(4)
    lines, at = ["id,at,company,price"], datetime(2020, 1, 3, 7, tzinfo=UTC)
    while at < datetime(2021, 12, 30, tzinfo=UTC):
        quiet = any(a <= f"{at:%Y-%m-%d}" < b for a, b in (("2021-03-15", "2021-03-24"), ("2021-10-12", "2021-10-16")))
        if not quiet:
            lines.append(f"t{len(lines)},{at:%Y-%m-%dT%H:%M:%SZ},{rng.choice('ABC')},{rng.randrange(100)}.5")
        at += MINUTE * rng.choice([30, 45, 90, 300, 900, 2000])
    return "\n".join(lines) + "\n"


@dataclass
class Pages:
    """What was published, as a session and a place."""

    site: Site
    place: Place

    @property
    def lake(self) -> Lake:
        return self.site.lake

    def file(self, name: str) -> Path:
        return self.place.project.patterns / f"{name}.yaml"

    def run(self, name: str, since: str, until: str, run_id: str) -> None:
        """As `trendlake run`: the steps, then the run's page."""
        all_steps(workspace.prepared(self.place, self.lake, name, (since, until), run_id))
        plan, _ = plan_of(self.place.project, self.file(name))
        build_report(self.lake, self.file(name), run_id, self.site.places.root, plan)

    def rows(self, name: str, limit: int | None = None) -> dict[str, Any]:
        """`trendlake show --json`."""
        shown = print_results(self.place, self.lake, name, Shown(limit=limit or 10**6), as_json=True)
        assert shown is not None
        return shown

    def facts(self, name: str, run_id: str = "r1") -> tuple[Any, Any]:
        """What the page of the run and that of the pattern are made of."""
        plan, _ = plan_of(self.place.project, self.file(name))
        run = read_facts(self.lake, self.file(name), run_id, plan)
        return run, read_page_facts(
            self.site, self.file(name), docs=False, together=Together(self.site, [self.file(name)])
        )


@pytest.fixture(scope="module")
def pages(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Pages:
    folder = tmp_path_factory.mktemp("numbers")
    start(folder, folder / "trades.csv", prices())
    project = replace(find_project(folder), state=folder / "state")
    place = Place(project, Profile(master="local[2]"))
    pages = Pages(replace(workspace.site_of(place, Lake.of(spark, place.warehouse))), place)
    contract = load_contract(project.contract_path("trades"))
    table = read_file(folder / "trades.csv", contract)
    ingest(Lake.of(spark, place.warehouse), contract, [table], feed=feed_of(folder / "trades.csv"), run_id="i1")
    for name, (text, since, until) in PATTERNS.items():
        pages.file(name).write_text(f"name: {name}\n{text}")
        pages.run(name, since, until, "r1")
    build_site(pages.site, [pages.file(name) for name in PATTERNS])
    return pages


class Read(HTMLParser):
    """A page as read: its key figures as label -> (number, note), and its tables by the heading before."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.figures: dict[str, list[str]] = {}
        self.tables: dict[str, list[list[str]]] = {}
        self._tag, self._class, self._heading, self._label = "", "", "", ""
        self._cell: list[str] | None = None
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag, self._class = tag, str(dict(attrs).get("class"))
        if tag in ("h1", "h2", "h3"):
            self._heading = str(dict(attrs).get("id"))
        if tag == "tr":
            self.tables.setdefault(self._heading, []).append([])
        if tag in ("td", "th"):
            self._cell = []
        if tag == "dt":
            self._cell = []

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)
        elif self._tag == "dd" and data.strip() and self._label:
            self.figures[self._label].append(_plain(data))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._cell is not None:
            self.tables[self._heading][-1].append(_plain("".join(self._cell)))
            self._cell = None
        if tag == "dt" and self._cell is not None:
            self._label = _plain("".join(self._cell))
            self.figures[self._label] = []
            self._cell = None


def _plain(text: str) -> str:
    return " ".join(text.split())


def page_of_run(pages: Pages, name: str, run_id: str = "r1") -> Read:
    return Read(pages.site.places.run(name, run_id))


def page_of_pattern(pages: Pages, name: str) -> Read:
    return Read(pages.site.places.pattern(name))


def row_of_index(pages: Pages, name: str) -> str:
    index = Read(pages.site.places.index)
    return next(row[-1] for row in index.tables["None"] if row[0].startswith(name.replace("_", "_")))


def stretches(rows: list[dict[str, Any]], plan: Any, unit: timedelta) -> dict[datetime, int]:
    """Rows by the stretch of time they are in, counted here: weeks begin on Monday."""
    first = datetime(2018, 1, 1, tzinfo=UTC)  # a Monday
    return Counter(first + (row[time_of(plan)] - first) // unit * unit for row in rows)


@pytest.mark.parametrize("name", PATTERNS)
def test_the_busiest_stretch_is_one_and_the_same(pages: Pages, name: str) -> None:
    """Its number and its name, on the page of the run, on that of the pattern, and counted from the rows of `show`."""
    run, pattern = page_of_run(pages, name), page_of_pattern(pages, name)
    (_, facts), rows = pages.facts(name), pages.rows(name)["rows"]
    _, plan = compiled(pages.place.project, pages.file(name))
    label, (number, when) = next(iter(pattern.figures.items()))
    assert run.tables["windows"][1][:2] == [when, number]
    if facts.overview.unit == "window":
        counts: dict[datetime, int] = Counter()
        for row in rows:
            counts[row["window_start"]] += int(row["rises"])
        length = timedelta(microseconds=plan.windows.within)
    else:
        length = timedelta(seconds=facts.overview.step_seconds)
        counts = stretches(rows, plan, length)
    most = max(counts.values())
    begin = min(at for at, count in counts.items() if count == most)
    assert (f"{most:,}", interval_label(begin, begin + length)) == (number, when)
    assert label.split()[0] in ("rises", "Matches")


@pytest.mark.parametrize("name", PATTERNS)
def test_each_stretch_has_one_number(pages: Pages, name: str) -> None:
    """What the run's page ranks and draws is what the pattern's draws."""
    run, pattern = pages.facts(name)
    totals = {point.window: point.amount.exact for point in pattern.overview.totals}
    assert (run.results.unit, run.results.bucket_seconds) == (pattern.overview.unit, pattern.overview.bucket_seconds)
    assert run.results.version == pattern.changes.newest[0].version
    if run.results.bucket_seconds is None:
        assert {item.window: item.amount.exact for item in run.results.busiest}.items() <= totals.items()
    lines = [*list(run.results.series.values())[: run.results.drawn], run.results.others_series]
    drawn: dict[Any, int] = Counter()
    for line in lines:
        for point in line:
            drawn[point.window] += point.amount.exact
    assert {window: count for window, count in drawn.items() if count} == totals
    if run.results.additive and run.results.bucket_seconds is None:
        assert run.results.headline.exact == sum(totals.values())


@pytest.mark.parametrize("name", PATTERNS)
def test_totals_are_the_same_everywhere(pages: Pages, name: str) -> None:
    """Rows, groups, windows, rows read and quarantined, and what the run changed."""
    run, pattern, shown = page_of_run(pages, name), page_of_pattern(pages, name), pages.rows(name)
    document = print_runs(pages.place, pages.lake, name, 50, as_json=True)
    assert document is not None
    stages = {record["stage"]: record for record in document["records"]}
    total = f"{shown['rows_in_all']:,}"
    rows, when = pattern.figures["Result rows"]
    assert rows == total == f"{shown['rows_selected']:,}" == f"{len(shown['rows']):,}"
    assert (shown["stale_rows"], stages["publish"]["rows_out"]) == (0, shown["rows_in_all"])
    assert row_of_index(pages, name).startswith(total)
    assert row_of_index(pages, name).endswith(when)
    change = pattern.tables["changes"][1]
    assert change[-3:] == [f"{stages['publish'][f'rows_{what}']:,}" for what in ("inserted", "updated", "deleted")]
    ran = pattern.tables["runs"][1]
    assert ran[3] == run.figures["Rows read"][0] == f"{stages['check_source']['rows_in']:,}"
    assert ran[4] == total
    assert run.figures["Quarantined"][0] == f"{stages['check_source']['rows_quarantined']:,}" == "0"
    assert ran[5] == " / ".join(change[-3:])
    groups = {row["company"] for row in shown["rows"] if "company" in row}
    if groups:
        assert run.figures["Groups"][0] == pattern.figures["Groups"][0] == str(len(groups))
    unit = next(
        label
        for label in run.figures
        if label.endswith(("s", "stretches")) and label in ("Windows", "Days", "Weeks", "2-week stretches")
    )
    counted = run.figures[unit]
    having = counted[1].split()[0] if len(counted) > 1 else counted[0]
    assert {having if having != "all" else counted[0]} == {pattern.figures[f"{unit} with results"][0]}


@pytest.mark.parametrize("name", PATTERNS)
def test_the_range_of_rows_is_that_of_the_rows(pages: Pages, name: str) -> None:
    """Not the edges of the stretches by which they are counted, nor those of the run."""
    rows = pages.rows(name)["rows"]
    when = page_of_pattern(pages, name).figures["Result rows"][1]
    if "window_start" in rows[0]:
        first, last = min(row["window_start"] for row in rows), max(row["window_end"] for row in rows)
        assert when == interval_label(first, last)
    else:
        _, plan = compiled(pages.place.project, pages.file(name))
        first, last = (end(row[time_of(plan)] for row in rows) for end in (min, max))
        assert when == f"{first:%a} {first.day} {first:%b %Y} – {last:%a} {last.day} {last:%b %Y}"


@pytest.mark.parametrize("name", PATTERNS)
def test_the_rows_of_show_are_on_the_page(pages: Pages, name: str) -> None:
    """The pattern's own measures too, by their names; of windows, the first ones are on the page of the run as well."""
    shown = pages.rows(name, 10)["rows"]
    tables = page_of_pattern(pages, name).tables
    heading, *listed = tables["rows"] if "rises" in shown[0] else tables["newest"][: len(shown) + 1]
    measures = [name_of for name_of in ("rises", "highest", "mean", "gain", "low") if name_of in shown[0]]
    begin = heading.index(measures[0])
    assert heading[begin : begin + len(measures)] == measures
    assert heading[:begin] in ([], ["state"])
    assert len(listed) == len(shown)
    for row, cells in zip(shown, listed, strict=True):
        for name_of, cell in zip(measures, cells[begin : begin + len(measures)], strict=True):
            value = row[name_of]
            digits = 0 if isinstance(value, Decimal) else len(cell.partition(".")[2])
            assert float(cell.replace(",", "")) == pytest.approx(round(float(value), digits), abs=0.5 * 10.0**-digits)
    if "rises" in shown[0]:
        assert page_of_run(pages, name).tables["largest"][0] == heading
        counts = [cells[0] for cells in page_of_run(pages, name).tables["largest"][1:]]
        assert counts == [cells[0] for cells in listed]


@pytest.mark.parametrize("name", ["few_days", "overlapping"])
def test_history_has_the_value_of_show(pages: Pages, name: str) -> None:
    """Of the busiest row, from the version that the pages name."""
    _, plan = compiled(pages.place.project, pages.file(name))
    row = pages.rows(name, 1)["rows"][0]
    moment = (row["window_start"] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    path = pages.site.lake.warehouse.results(name)
    document = print_history(pages.lake, path, plan, {"company": row["company"]}, moment, as_json=True)
    assert document is not None
    *_, last = document["values"]
    assert {key: last["row"][key] for key in ("rises", "highest", "mean")} == {
        key: row[key] for key in ("rises", "highest", "mean")
    }
    assert last["version"] == pages.facts(name)[1].changes.newest[0].version


def test_a_week_of_two_runs_has_one_number(pages: Pages) -> None:
    """A run that begins and ends in the middle of a week: its page shows the whole weeks, as the pattern's does, and
    counts its own rows only where it says that they are its own."""
    name = "some_months"
    pages.run(name, *LATER, "r2")
    build_site(pages.site, [pages.file(item) for item in PATTERNS])
    run, pattern = pages.facts(name, "r2")
    _, plan = compiled(pages.place.project, pages.file(name))
    rows = pages.rows(name)["rows"]
    low, high = (datetime.fromisoformat(day).replace(tzinfo=UTC) for day in LATER)
    own = [row for row in rows if low <= row["end"] < high]
    assert (run.results.unit, run.results.rows, run.results.headline.exact) == ("day", len(own), len(own))
    counted = stretches(rows, plan, DAY)
    for item in run.results.busiest:
        assert item.amount.exact == counted[item.window.start]
    weeks = stretches(rows, plan, WEEK)
    assert pattern.overview.unit == "week"
    assert {point.window.start: point.amount.exact for point in pattern.overview.totals} == weeks
    assert {start.weekday() for start in weeks} == {0}


def test_rows_of_an_earlier_form_are_counted_once(pages: Pages) -> None:
    """`show`, its document and the pattern's page say the same number."""
    name, file = "few_days", pages.file("few_days")
    text = file.read_text()
    file.write_text(text.replace("E.price < NEXT(E).price", "E.price <= NEXT(E).price"))
    try:
        _, pattern = pages.facts(name)
        shown = pages.rows(name)
    finally:
        file.write_text(text)
    assert shown["stale_rows"] == pattern.overview.earlier_rows == shown["rows_in_all"] > 0
