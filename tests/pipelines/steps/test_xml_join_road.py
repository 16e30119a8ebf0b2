"""Kind xml_join on the road of every kind: expectations, differences, history, backfill, batches, report and site. What
is published is compared with the plain enumeration over the documents."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.pipelines.revision.test_revised_documents import DAY, HOUR, QUERY, START, document
from tests.reference.xml_join import answers
from tests.support.bare_lake import bare_lake
from tests.support.document_lake import PROFILE, DocumentLake
from tests.support.flights import all_steps, renamed
from trendlake.jobs.actions.backfill import run_backfill
from trendlake.jobs.actions.show import Shown, print_results
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.errors import ChecksFailedError
from trendlake.pipelines.lake.lake import Lake, latest_version
from trendlake.pipelines.report.build import build_report, read_facts
from trendlake.pipelines.report.places import Places
from trendlake.pipelines.results import history
from trendlake.pipelines.results.read import group_values
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.site.build import Site, Together, build_site, read_page_facts
from trendlake.pipelines.steps.batch import Member, run_batch
from trendlake.pipelines.steps.revise import revise
from trendlake.pipelines.steps.sequence import STEPS

pytestmark = [pytest.mark.spark, pytest.mark.long]

DAYS = 5
ODD = {"value": "$l", "match_id": "node($a)", "window_start": "$k", "matches_log10": "node($b)"}
"""Columns whose names are other things in the tables of other kinds."""
ASKED: dict[str, Any] = {
    **QUERY,
    "description": "For the tests.",
    "queries": {**QUERY["queries"], "followed": {**QUERY["queries"]["followed"], "return": ODD}},
    "expect": [
        {"measure": "rows", "between": [0.3, 2.5], "of_last": "2 windows"},
        {"groups": "none_vanish", "of_last": "2 windows"},
    ],
}
Documents = Mapping[str, dict[str, Any]]
Rows = set[tuple[tuple[str, Any], ...]]


@dataclass(frozen=True)
class Road:
    """Two publications: of the documents `first`, and, by a revision, of `second`."""

    lake: DocumentLake
    run: Run
    path: Path
    first: Documents
    second: Documents

    @property
    def results(self) -> str:
        return str(self.lake.warehouse.results(self.run.name))

    def place(self) -> Place:
        return Place(self.lake.project, PROFILE)


@pytest.fixture(scope="module")
def road(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Road:
    rng = random.Random("a road")
    lake = DocumentLake.of(spark, tmp_path_factory.mktemp("road") / "project")
    first = {ident: document(rng, ident) for ident in (f"d{n}" for n in range(40))}
    lake.deliver("items", first.values(), "first")
    path = lake.pattern("pairs", "items", ASKED)
    run = lake.run(str(path), START, START + DAYS * DAY, "first")
    all_steps(run)
    changed = {ident: document(rng, ident) for ident in ("d3", "d5", "d40", "d41")}
    changed["d7"] = {**first["d7"], "time": first["d7"]["time"] + HOUR}
    second = {**first, **changed}
    del second["d9"]
    lake.delete("items", ["d9", *changed])
    lake.append("items", changed.values())
    revise(renamed(run, "second"))
    return Road(lake, run, path, first, second)


def wanted(documents: Documents, query: Mapping[str, Any] = ASKED) -> Rows:
    return answers(query, list(documents.values()))


def plain(rows: Iterable[Mapping[str, Any]]) -> Rows:
    """Rows as the enumeration writes them: times in microseconds, nothing of who has computed them."""
    left_out = ("answer_id", "plan_hash", "source_version", "run_id", "computed_at")
    return {tuple(sorted((name, micros(cell)) for name, cell in row.items() if name not in left_out)) for row in rows}


def micros(cell: Any) -> Any:
    return round(cell.timestamp() * 1_000_000) if isinstance(cell, datetime) else cell


def of_query(rows: Rows, name: str) -> Rows:
    return {row for row in rows if dict(row)["query"] == name}


def days(rows: Rows) -> Counter[int]:
    return Counter((dict(row)["end"] - START) // DAY for row in rows)


def test_differences_are_those_of_the_documents(road: Road) -> None:
    """Rows of equal `answer_id` whose times have moved are changed, the others come and go."""
    before, after = wanted(road.first), wanted(road.second)
    counts, rows = history.between(road.lake.lake, road.results, road.run.plan, 1, 2)
    assert plain(row.before for row in rows if row.before) == before - after
    assert plain(row.after for row in rows if row.after) == after - before
    assert counts["changed"] > 0
    assert counts["added"] > 0
    assert counts["retracted"] > 0
    moved = {"start", "end"}
    for row in (one for one in rows if one.before is not None and one.after is not None):
        assert {name for name, cell in row.after.items() if cell != row.before[name]} & set(row.after) >= moved & {
            name for name in moved if row.before[name] != row.after[name]
        }
        assert row.before["answer_id"] == row.after["answer_id"]


def test_a_query_has_a_history_and_a_page_of_its_own_rows(road: Road, capsys: pytest.CaptureFixture[str]) -> None:
    """`history` and `show` choose rows by query; each row of its windows comes and goes as documents do."""
    plan, spark = road.run.plan, road.lake.spark
    chosen = group_values(plan, {"query": "followed"}, "--group")
    states: dict[str, Any] = {}
    for day in range(DAYS):
        for value in history.values(bare_lake(spark), road.results, plan, chosen, START + day * DAY + HOUR):
            states.setdefault(str(value.commit.version), []).append(value.row)
    before, after = (of_query(wanted(documents), "followed") for documents in (road.first, road.second))
    assert plain(states["1"]) == before
    assert plain(row for row in states["2"] if row is not None) == after - before
    assert sum(row is None for row in states["2"]) > 0
    print_results(
        road.place(), Lake.of(spark, road.place().warehouse), str(road.path), Shown(3, groups=["query=beside"])
    )
    printed = capsys.readouterr().out
    assert f"the latest of {len(of_query(wanted(road.second), 'beside'))} rows" in printed
    assert "followed" not in printed


def test_a_backfill_is_one_run(road: Road) -> None:
    """In chunks of two days, newest first; a second time nothing is left to do."""
    path = road.lake.pattern("pairs_again", "items", ASKED)
    asked = (str(path), iso(START), iso(START + DAYS * DAY), 2 * DAY, True, False)
    *chunks, total = run_backfill(road.place(), road.lake.lake, *asked)
    assert (len(chunks), total["computed"], total["done_before"]) == (3, 3, 0)
    again = road.lake.run(str(path), START, START + DAYS * DAY, "again")
    assert plain(road.lake.rows(again)) == wanted(road.second) == plain(road.lake.rows(road.run))
    *_, total = run_backfill(road.place(), road.lake.lake, *asked)
    assert (total["computed"], total["done_before"]) == (0, 3)


def iso(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000_000, UTC).isoformat()


def test_expectations_count_the_rows_of_each_query(road: Road) -> None:
    """By window and query; one that is broken and fails keeps what is published as it was."""
    checks = {check.name: check for check in road.run.records["check_results"].checks}
    facts = checks["rows_between_0.3_and_2.5_of_last_2"]
    of_days = {name: days(of_query(wanted(road.first), name)) for name in QUERY["queries"]}
    broken, judged = set(), 0
    for name, counts in of_days.items():
        for day in range(2, DAYS):
            usual = (counts[day - 1] + counts[day - 2]) / 2
            if usual:
                judged += 1
                if not 0.3 * usual <= counts[day] <= 2.5 * usual:
                    broken.add((name, day))
    assert judged > len(broken) > 0
    assert facts.success is False
    assert f"{len(broken)} of {judged} groups in windows break it" in str(facts.observed)
    assert all(f"query={name}, end from {iso(START + day * DAY)[:10]}" in str(facts.observed) for name, day in broken)
    version = latest_version(road.lake.lake, road.results)
    strict = {**ASKED, "expect": [{**ASKED["expect"][0], "on_break": "fail"}]}
    run = road.lake.run(str(road.lake.pattern("pairs", "items", strict)), START, START + DAYS * DAY, "strict")
    for step in ("check_source", "compute"):
        STEPS[step](run)
    with pytest.raises(ChecksFailedError, match="query="):
        STEPS["check_results"](run)
    assert latest_version(road.lake.lake, road.results) == version
    assert run.plan.hash == road.run.plan.hash
    road.lake.pattern("pairs", "items", ASKED)


def test_a_batch_is_each_of_its_members(road: Road) -> None:
    """Two files of queries over one source in one batch, beside one whose answers are too many."""
    queries = {name: {key: cell for key, cell in ASKED.items() if key != "expect"} for name in ("batch_a", "batch_b")}
    queries["batch_b"]["queries"] = {"only": {**QUERY["queries"]["beside"], "within": "5 hours"}}
    queries["batch_few"] = {**queries["batch_a"], "limit_per_document": 1}
    members = []
    for name, query in queries.items():
        path = road.lake.pattern(name, "items", query)
        members.append(Member(name, road.lake.run(str(path), START, START + DAYS * DAY, "batch")))
    list(run_batch(road.lake.lake, members))
    assert [member.state for member in members] == ["succeeded", "succeeded", "failed"]
    assert "TOO_MANY_ANSWERS" in str(members[2].error)
    for member in members[:2]:
        assert member.run is not None
        assert plain(road.lake.rows(member.run)) == wanted(road.second, queries[member.name])
        assert len(road.lake.rows(member.run)) > 10


def test_the_report_tells_answers_by_query(road: Road, tmp_path: Path) -> None:
    """Of the run that it is of: the queries with most answers, and how many each had from day to day."""
    facts = read_facts(road.lake.lake, road.path, "first", road.run.plan)
    results, rows = facts.results, wanted(road.first)
    assert results is not None
    assert (results.group_columns, results.rows, results.unit, results.older_rows) == (("query",), len(rows), "day", 0)
    counts = Counter(dict(row)["query"] for row in rows)
    assert [(group.key, group.amount.exact) for group in results.top_groups] == [
        ((name,), count) for name, count in counts.most_common()
    ]
    for name in counts:
        drawn = Counter[int]()
        for point in results.series[(name,)]:
            drawn[(micros(point.window.start) - START) // DAY] += int(point.amount.exact or 0)
        assert +drawn == days(of_query(rows, name))
    assert {"match_id", "window_start", "matches_log10"} < set(results.measures)
    paths = build_report(road.lake.lake, road.path, "first", tmp_path, road.run.plan)
    page = paths.html.read_text()
    most, least = counts.most_common()
    assert f"{most[0]} leads with {most[1]} answers" in page
    assert least[0] in page
    assert "Longest answers" in page
    assert paths.png.stat().st_size > 1_000


def test_the_site_tells_answers_by_query(road: Road, tmp_path: Path) -> None:
    """Of what is published now: over time, and the queries by their busiest day."""
    site = Site(road.lake.lake, road.lake.project, Places(tmp_path))
    facts = read_page_facts(site, road.path, docs=False, together=Together(site, [road.path]))
    rows = wanted(road.second)
    assert facts.mistake == ""
    overview = facts.overview
    assert overview is not None
    assert (overview.group_columns, overview.rows, overview.group_count) == (("query",), len(rows), 2)
    assert overview.earlier_rows == 0
    assert sum(int(point.amount.exact or 0) for point in overview.totals) == len(rows)
    for group in overview.groups:
        assert sum(int(point.amount.exact or 0) for point in group.points) == len(of_query(rows, str(group.key[0])))
    assert sum(change.rewrites for change in facts.changes.newest) == 1
    built = build_site(site, [road.path])
    assert [(item.name, item.failure) for item in built] == [("pairs", ""), ("items", ""), ("", "")]
    page = site.places.pattern("pairs").read_text()
    assert "answers" in page
    assert all(name in page for name in QUERY["queries"])
