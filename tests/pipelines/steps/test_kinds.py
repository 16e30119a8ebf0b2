"""Kinds matches, automaton and algebra through every step: computed, checked, published, made again, taken back."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import functions as sf

from tests.support.flights import Flights, all_steps, flight, renamed
from tests.support.kinds import GROUNDED, LATER, LEGS, PAIRS, RISES, facts_of, pattern_file, published
from trendlake.cep_core import run_plan
from trendlake.cep_core.errors import TrendlakeError
from trendlake.jobs.actions.backfill import run_backfill
from trendlake.jobs.actions.show import Shown, print_results
from trendlake.jobs.terminal.times import micros_of
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.errors import ChecksFailedError, ShardTooLargeError
from trendlake.pipelines.lake.lake import latest_version
from trendlake.pipelines.results.history import between, values
from trendlake.pipelines.results.staging import read_staged
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.batch import Member, run_batch
from trendlake.pipelines.steps.check_results import check_results
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.compute import compute, reached
from trendlake.pipelines.steps.publish import publish
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

DAYS = ("2013-03-01", "2013-03-03")
DAY = 86_400_000_000


def leg(number: int, at: str, tail: str | None, delay: float) -> dict[str, object]:
    return flight(number, f"2013-03-{at}", tailnum=tail, dep_delay=delay)


def changes(record: Record) -> tuple[int | None, int | None, int | None]:
    return record.rows_inserted, record.rows_updated, record.rows_deleted


def forget(lake: Flights, condition: str) -> None:
    lake.spark.sql(f"DELETE FROM delta.`{lake.warehouse.source('flights')}` WHERE {condition}")


def test_matches_are_published_once_and_taken_back(
    lake: Flights, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows with lists and measures; the same run again is quiet; a flight that goes takes its matches with it."""
    delays = {1: 10.0, 2: 20.0, 3: 30.0, 4: 25.0, 5: 40.0}
    lake.deliver(leg(n, f"01T{7 + n:02d}:00:00", "N10", delay) for n, delay in delays.items())
    run = lake.run(pattern_file(lake, LATER), *DAYS, "r1")
    assert changes(all_steps(run)) == (9, 0, 0)
    rows = published(lake, run)
    actual = {(*row["a"], *row["b"], *row["c"]): (row["gain"], row["legs"]) for row in rows}
    named = {(1, 2, 3), (1, 2, 4), (1, 2, 5), (1, 3, 5), (1, 4, 5), (2, 3, 5), (2, 4, 5)}
    longer = {(1, 2, 3, 5), (1, 2, 4, 5)}
    wanted = {
        tuple(f"UA-{n}" for n in legs): (delays[legs[-1]] - delays[legs[0]], len(legs) - 2) for legs in named | longer
    }
    assert actual == wanted
    assert {(row["start"], row["end"]) for row in rows if row["gain"] == 30.0} == {
        (datetime(2013, 3, 1, 8, tzinfo=UTC), datetime(2013, 3, 1, 12, tzinfo=UTC))
    }
    assert changes(publish(run)) == changes(all_steps(renamed(run, "r2"))) == (0, 0, 0)
    results = facts_of(lake, run, tmp_path).results
    assert results is not None
    assert (results.rows, results.headline.exact, results.unit, results.units) == (9, 9, "day", 2)
    assert sum(int(window.amount.exact or 0) for window in results.busiest) == 9
    assert (results.measures, results.ids) == (("gain", "legs", "a", "b", "c"), ("a", "b", "c"))
    assert [dict(row.values)["c"] for row in results.largest] == 7 * ["UA-5"] + ["UA-4", "UA-3"]
    print_results(Place(lake.project, lake.profile), lake.lake, pattern_file(lake, LATER), Shown(2))
    printed = capsys.readouterr().out
    assert "three_legs_later: the latest of 9 rows" in printed
    assert printed.count("UA-5") == 2
    forget(lake, "event_id = 'UA-4'")
    assert changes(all_steps(renamed(run, "r3"))) == (0, 0, 4)
    assert published(lake, run) == [row for row in rows if "UA-4" not in (*row["a"], *row["b"], *row["c"])]


def test_events_of_the_algebra_are_published_and_taken_back(
    lake: Flights, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows told apart by all that they say, with names that other kinds have for other things; a flight that goes
    takes its rows with it, and lets others come."""
    delays = {1: 10.0, 2: 20.0, 3: 30.0, 4: 25.0, 5: 40.0}
    lake.deliver(leg(n, f"01T{7 + n:02d}:00:00", "N10", delay) for n, delay in delays.items())
    run = lake.run(pattern_file(lake, LEGS), *DAYS, "r1")
    assert changes(all_steps(run)) == (4, 0, 0)
    assert pairs_of(lake, run) == {(1, 2): (10.0, 2), (1, 3): (20.0, 3), (2, 3): (10.0, 2), (4, 5): (15.0, 2)}
    assert changes(publish(run)) == changes(all_steps(renamed(run, "r2"))) == (0, 0, 0)
    results = facts_of(lake, run, tmp_path).results
    assert results is not None
    assert (results.group_columns, results.rows, results.unit, results.older_rows) == (("tailnum",), 4, "day", 0)
    assert results.measures == ("window_start", "match_id", "gain", "legs")
    assert dict(results.largest[0].values)["match_id"] == "UA-3"  # of the longest
    print_results(Place(lake.project, lake.profile), lake.lake, pattern_file(lake, LEGS), Shown(2))
    printed = capsys.readouterr().out
    assert "later_legs: the latest of 4 rows" in printed
    assert "UA-5" in printed
    path = lake.warehouse.results(run.name)
    before = latest_version(lake.lake, path)
    forget(lake, "event_id = 'UA-4'")
    record = revise(renamed(run, "r3"))
    assert changes(record) == (3, 0, 1)
    assert set(pairs_of(lake, run)) == {(1, 2), (1, 3), (1, 5), (2, 3), (2, 5), (3, 5)}
    numbers, differences = between(lake.lake, path, run.plan, before, before + 1)
    assert numbers == {"added": 3, "changed": 0, "retracted": 1}
    assert [one.before["match_id"] for one in differences if one.before is not None] == ["UA-5"]
    had = values(lake.lake, path, run.plan, {"tailnum": ["N10"]}, micros_of("2013-03-01T12:00", ""))
    assert Counter(value.row is None for value in had) == {False: 4, True: 1}  # (4, 5), which goes, and three that come
    again = pattern_file(lake, LEGS.replace("later_legs", "backfilled_legs"))
    *chunks, total = run_backfill(Place(lake.project, lake.profile), lake.lake, again, *DAYS, DAY, True, False)
    assert (len(chunks), total["computed"]) == (2, 2)
    assert published(lake, lake.run(again, *DAYS, "backfilled")) == published(lake, run)
    assert changes(all_steps(renamed(run, "r4"))) == (0, 0, 0)
    limited = lake.run(pattern_file(lake, LEGS + "limit_per_partition: 3\n"), *DAYS, "r5")
    check_source(limited)
    with pytest.raises(TrendlakeError, match=r"tailnum = 'N10': limit_per_partition, 3 rows") as error:
        compute(limited)
    assert error.value.code == "TOO_MANY_MATCHES"


def test_row_patterns_are_published_and_taken_back(
    lake: Flights, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One row for each match: its id is its first row's. A flight that goes lets other matches come. Pages, histories,
    a batch, a backfill and expectations."""
    delays = {1: 10.0, 2: 20.0, 3: 30.0, 4: 25.0, 5: 40.0}
    legs = [leg(n, f"01T{7 + n:02d}:00:00", "N10", delay) for n, delay in delays.items()]
    lake.deliver([*legs, leg(9, "02T09:00:00", "N11", 5.0), leg(10, "02T10:00:00", "N11", 6.0)])
    run = lake.run(pattern_file(lake, RISES), *DAYS, "r1")
    members = [Member("rises", run), Member("pairs", lake.run(pattern_file(lake, PAIRS), *DAYS, "r1"))]
    assert len(list(run_batch(lake.lake, members))) == 8
    assert [member.state for member in members] == ["succeeded"] * 2
    assert changes(members[0].records[-1]) == (3, 0, 0)
    assert rises(lake, run) == {("N10", "UA-1"): (3, 20.0), ("N10", "UA-4"): (2, 15.0), ("N11", "UA-9"): (2, 1.0)}
    assert changes(publish(run)) == changes(all_steps(renamed(run, "r2"))) == (0, 0, 0)
    results = facts_of(lake, run, tmp_path).results
    assert results is not None
    assert (results.group_columns, results.rows, results.unit, results.units) == (("tailnum",), 3, "day", 2)
    assert results.measures == ("legs", "gain")
    print_results(Place(lake.project, lake.profile), lake.lake, pattern_file(lake, RISES), Shown(2))
    assert "rises: the latest of 3 rows" in capsys.readouterr().out
    path = lake.warehouse.results(run.name)
    before = latest_version(lake.lake, path)
    forget(lake, "event_id = 'UA-4'")
    assert changes(revise(renamed(run, "r3"))) == (0, 1, 1)
    assert rises(lake, run) == {("N10", "UA-1"): (4, 30.0), ("N11", "UA-9"): (2, 1.0)}
    numbers, differences = between(lake.lake, path, run.plan, before, before + 1)
    assert numbers == {"added": 0, "changed": 1, "retracted": 1}
    assert [one.before["match_id"] for one in differences if one.before is not None] == ["UA-1", "UA-4"]
    had = values(lake.lake, path, run.plan, {"tailnum": ["N10"]}, micros_of("2013-03-01T12:00", ""))
    assert {value.row["match_id"] for value in had if value.row is not None} == {"UA-1", "UA-4"}
    again = pattern_file(lake, RISES.replace("name: rises", "name: backfilled_rises"))
    *chunks, total = run_backfill(Place(lake.project, lake.profile), lake.lake, again, *DAYS, DAY, True, False)
    assert (len(chunks), total["computed"]) == (2, 2)
    assert published(lake, lake.run(again, *DAYS, "backfilled")) == published(lake, run)
    expecting = RISES + "expect:\n  - {groups: none_vanish, of_last: 1 window, on_break: fail}\n"
    with pytest.raises(ChecksFailedError, match="=N10, end from 2013-03-02"):
        all_steps(lake.run(pattern_file(lake, expecting), "2013-03-02", "2013-03-03", "r4"))


def rises(lake: Flights, run: Run) -> dict[tuple[str | None, str], tuple[int, float]]:
    """The rows of `RISES`."""
    return {(row["tailnum"], row["match_id"]): (row["legs"], row["gain"]) for row in published(lake, run)}


def pairs_of(lake: Flights, run: Run) -> dict[tuple[int, int], tuple[float, int]]:
    """The rows of `LEGS`: by the numbers of the first leg and the last, the gain and how many legs."""
    rows = published(lake, run)
    pairs = {(int(row["window_start"][3:]), int(row["match_id"][3:])): (row["gain"], row["legs"]) for row in rows}
    assert len(pairs) == len(rows)
    return pairs


@pytest.mark.chaos
def test_absence_waits_until_time_has_come(lake: Flights, tmp_path: Path) -> None:
    """A row that says that nothing came is there once the data has reached the end of its window, whichever run comes
    by then; a flight that does come later takes it back. Registers that are NULL are equal."""
    lake.deliver(
        [
            leg(1, "01T12:00:00", "N10", 90.0),
            leg(2, "01T13:00:00", "N20", 70.0),
            leg(3, "01T15:00:00", "N20", 0.0),
            leg(4, "01T17:00:00", "N30", 80.0),
            leg(5, "01T19:00:00", "N40", 0.0),
        ],
        feed="first",
    )
    path = pattern_file(lake, GROUNDED)
    first = lake.run(path, "2013-03-01", "2013-03-02", "r1")
    assert changes(all_steps(first)) == (1, 0, 0)
    (row,) = published(lake, first)
    assert (row["tailnum"], row["first"], row["last"]) == ("N10", "UA-1", "UA-1")
    assert (row["worst"], row["never"]) == (90.0, None)
    assert changes(all_steps(renamed(first, "r2"))) == (0, 0, 0)
    lake.deliver([leg(6, "02T20:00:00", "N40", 0.0)], feed="second")
    later = lake.run(path, "2013-03-02", "2013-03-03", "r3")
    assert changes(all_steps(later)) == (1, 0, 0)
    assert [row["first"] for row in published(lake, later)] == ["UA-1", "UA-4"]
    results = facts_of(lake, later, tmp_path).results
    assert results is not None
    assert (results.group_columns, results.rows, results.span_windows) == (("tailnum",), 0, 1)
    lake.deliver([leg(7, "01T17:59:59", "N10", 1.0)], feed="late")
    assert changes(all_steps(renamed(first, "r4"))) == (0, 0, 1)
    assert [row["first"] for row in published(lake, later)] == ["UA-4"]
    strict = pattern_file(lake, GROUNDED.replace("kind:", "consistency: strong\nkind:"))
    strong = lake.run(strict, *DAYS, "r5")
    pinned = check_source(strong).source_version
    assert reached(strong, Versions.one(int(pinned or 0))) == datetime(2013, 2, 16, 20, tzinfo=UTC).timestamp() * 1e6
    assert compute(strong).rows_out == 0


def test_registers_that_are_no_number_are_equal(lake: Flights) -> None:
    """NaN in a register is a value like any other: published twice it is one row. Staged twice it is an error."""
    lake.deliver([leg(1, "01T12:00:00", "N10", 90.0), leg(2, "02T19:00:00", "N20", 0.0)])
    run = lake.run(pattern_file(lake, GROUNDED), *DAYS, "r1")
    check_source(run)
    compute(run)
    path = lake.warehouse.staging(run.name, run.run_id)
    rows = read_staged(run, int(run.records["compute"].staged_version or 0)).withColumn("never", sf.lit(float("nan")))
    rows = rows.withColumn("tailnum", sf.lit(None).cast("string"))
    for number, staged in enumerate((rows, rows.union(rows)), start=1):
        staged.write.parquet(f"{path}/{number}")
    run.records["compute"].staged_version = 1
    assert check_results(run).rows_out == 1
    assert [changes(publish(run)), changes(publish(run))] == [(1, 0, 0), (0, 0, 0)]
    run.records["compute"].staged_version = run.records["compute"].rows_out = 2
    with pytest.raises(ChecksFailedError, match="primary_key_unique"):
        check_results(run)


def test_matches_that_must_not_overlap_know_all_that_came_before(lake: Flights) -> None:
    """Which legs make a pair is decided by the first leg of all: a run of the last day reads them all, or says that
    they are too many."""
    times = ["01T06:00:00", "01T18:00:00", "02T05:00:00", "02T16:00:00", "03T03:00:00", "03T14:00:00", "04T01:00:00"]
    lake.deliver(leg(n, at, "N10", 1.0) for n, at in enumerate(times, start=1))
    path = pattern_file(lake, PAIRS)
    run = lake.run(path, "2013-03-03", "2013-03-04", "r1")
    assert changes(all_steps(run)) == (1, 0, 0)
    assert [(row["a"], row["b"]) for row in published(lake, run)] == [(["UA-5"], ["UA-6"])]
    small = lake.run(path, "2013-03-03", "2013-03-04", "r2", limit=3)
    check_source(small)
    with pytest.raises(ShardTooLargeError, match="tailnum = 'N10': 6 events before 2013-03-04T00:00:00"):
        compute(small)
    limited = pattern_file(lake, PAIRS.replace("non_overlap", "all\nlimit_per_partition: 2"))
    many = lake.run(limited, "2013-03-01", "2013-03-04", "r3")
    check_source(many)
    with pytest.raises(TrendlakeError, match=r"tailnum = 'N10': .* 2 matches, is reached in \[2013-03-0") as error:
        compute(many)
    assert error.value.code == "TOO_MANY_MATCHES"


def test_graphs_are_published(lake: Flights) -> None:
    """`output: compressed`: lists of structs are kept, compared and checked like any column."""
    lake.deliver(leg(n, f"01T{7 + n:02d}:00:00", "N10", 10.0 * n) for n in range(1, 6))
    text = LATER.replace("select:", "output: compressed\nselect:")
    text = "\n".join(line for line in text.split("\n") if not line.startswith("return"))
    run = lake.run(pattern_file(lake, text), *DAYS, "r1")
    assert changes(all_steps(run)) == (3, 0, 0)
    assert sorted(int(row["matches"]) for row in published(lake, run)) == [1, 4, 11]
    assert changes(all_steps(renamed(run, "r2"))) == (0, 0, 0)
    forget(lake, "event_id = 'UA-1'")
    assert changes(all_steps(renamed(run, "r3"))) == (0, 2, 1)


@pytest.mark.chaos
def test_a_changed_arc_touches_the_windows_of_its_lifetime(lake: Flights) -> None:
    """From the second day on the pattern asks for less: what the first day has is neither computed nor written again,
    and all rows together are those that the pattern of today gives."""
    late = {1: "01T02:00:00", 2: "01T09:00:00", 3: "02T03:00:00", 4: "02T09:00:00", 5: "02T14:00:00"}
    lake.deliver(leg(n, at, f"N{n}0", 90.0 if n % 2 else 50.0) for n, at in late.items())
    text = GROUNDED.replace("at: window_end", "epsilon: true")
    run = lake.run(pattern_file(lake, text), *DAYS, "r1")
    assert changes(all_steps(run)) == (3, 0, 0)
    old = '  - {from: q0, to: late, when: "e.dep_delay >= 60", set: {worst: e.dep_delay}}'
    before, after = old[:-1] + ", valid_to: 2013-03-02}", old[:-1] + ", valid_from: 2013-03-02}"
    path = pattern_file(lake, text.replace(old, f"{before}\n{after.replace('60', '40')}"))
    today = lake.run(path, *DAYS, "r2")
    assert today.plan.hash != run.plan.hash
    record = all_steps(today)
    assert changes(record) == (1, 2, 0)
    computed = today.records["compute"]
    assert (len(today.windows), computed.windows) == (8, 4)
    rows = lake.results(today).select("first", "run_id").orderBy("first").collect()
    assert [tuple(row) for row in rows] == [("UA-1", "r1"), ("UA-3", "r2"), ("UA-4", "r2"), ("UA-5", "r2")]
    source = lake.spark.read.format("delta").load(lake.warehouse.source("flights"))
    whole = run_plan(today.plan, source.toArrow(), today.windows)
    assert {row["first"] for row in published(lake, today)} == set(whole["first"].to_pylist())
    again = all_steps(renamed(today, "r3"))
    assert changes(again) == (0, 0, 0)
