"""`trendlake run` without an interval: the complete windows after the last published one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.one_session import commands, typed
from tests.support.shop import CONTRACT, DAILY, FIRST, LAST, NAME, Shop, opened_shop, trades

pytestmark = pytest.mark.spark

CHAIN = """\
name: busy
source: results/falling
pattern: falling R+
return: {trends: COUNT(*)}
within: 1 day
"""
PAIRS = """\
name: pairs
kind: matches
source: trades
pattern: SEQ(Trade a, Trade b)
where: ["[company]", "a.price > b.price"]
return: {first: a.price}
output: non_overlap
within: 1 hour
"""


@pytest.fixture(scope="module")
def new_shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Nothing is published."""
    with opened_shop(spark, tmp_path_factory.mktemp("new")) as shop:
        yield shop


@pytest.fixture
def shop(new_shop: Shop, tmp_path: Path) -> Shop:
    return new_shop.copied(tmp_path / "a shop")


def day(number: int) -> str:
    return f"2026-01-{number:02d}T00:00:00Z"


def interval(document: dict[str, Any]) -> tuple[str | None, str | None]:
    return document["from"], document["to"]


@pytest.mark.long
def test_the_last_complete_window_then_those_after_it(shop: Shop) -> None:
    """The first run takes one window, and names the backfill of those before; the next one all that are complete by
    then. Gaps stay."""
    first = shop.document("run", NAME)
    assert interval(first) == (day(LAST), day(LAST + 1))
    assert first["backfill"].startswith(
        "trendlake backfill falling --from 2026-01-05 --to 2026-01-08 --profile other --project-dir "
    )
    shop.publish(FIRST, FIRST)
    again = shop.document("run", NAME)
    assert interval(again) == (None, None)
    assert again["stages"] == []
    assert "ends at 2026-01-10, and 'trades' reaches to 2026-01-09T09:00" in again["nothing_to_run"]
    shop.deliver(*trades(LAST + 1, "598")[1:], *trades(LAST + 3, "5"))
    third = shop.document("run", NAME)
    assert interval(third) == (day(LAST + 1), day(LAST + 3))
    assert third["backfill"] is None
    assert shop.rows() == shop.expected(FIRST, FIRST) | shop.expected(LAST, LAST + 2)
    assert shop.states() == ["gap", "behind_source"]


def test_an_interval_is_given_in_whole_or_not_at_all(shop: Shop) -> None:
    """`--from` alone does not say what is meant; with both the document has them too."""
    from typer.testing import CliRunner

    from trendlake.jobs.main import app

    for option in ("--from", "--to"):
        result = CliRunner().invoke(app, ["run", NAME, option, "2026-01-05", *shop.given])
        assert result.exit_code == 2
        assert "both --from and --to" in result.output
    document = shop.document("run", NAME, "--from", "2026-01-05", "--to", "2026-01-06")
    assert interval(document) == (day(5), day(6))
    assert document["nothing_to_run"] is None


@pytest.mark.long
def test_a_strong_pattern_waits_for_late_events(shop: Shop) -> None:
    """The contract allows events to be a day late: the last day that is complete is the one before."""
    shop.write(DAILY + "consistency: strong\n")
    assert interval(shop.document("run", NAME)) == (day(LAST - 1), day(LAST))
    again = shop.document("run", NAME)
    assert "without the time that late events are waited for" in again["nothing_to_run"]
    shop.deliver(*trades(LAST + 2, "5"))
    assert interval(shop.document("run", NAME)) == (day(LAST), day(LAST + 1))
    assert shop.states() == ["behind_source"]  # of the days before


def test_events_of_the_far_future_and_broken_rows_complete_nothing(shop: Shop) -> None:
    """A producer's wrong clock, and a row that breaks the contract, do not make a window complete."""
    shop.edit(CONTRACT, "physicalType: bigint", "physicalType: bigint\n        logicalTypeOptions: {minimum: 0}")
    shop.edit(CONTRACT, "quarantineTolerance\n        value: 0", "quarantineTolerance\n        value: 0.5")
    shop.deliver("far,2999-01-01T00:00:00Z,A,5", "broken,2026-01-20T00:00:00Z,A,-5")
    assert interval(shop.document("run", NAME)) == (day(LAST), day(LAST + 1))
    assert "windows_due" not in shop.states()


def test_a_source_without_events(shop: Shop) -> None:
    """There is no window to run: an empty table is no error, a table that does not exist is one."""
    shop.type("source", "delete", "trades", "--where", "price >= 0", "--yes")
    document = shop.document("run", NAME)
    assert document["nothing_to_run"] == "'trades' has no event that keeps its contract"
    shop.write(DAILY.replace("falling", "other").replace("trades", "others"), "conf/patterns/other.yaml")
    text = (shop.folder / CONTRACT).read_text().replace("trades", "others")
    shop.write(text, CONTRACT.replace("trades", "others"))
    assert "[SOURCE_MISSING]" in shop.type("run", "other", code=1)


@pytest.mark.long
def test_several_patterns_each_with_windows_of_its_own(shop: Shop) -> None:
    """By a selector: what has been published decides for each; results that this run publishes decide for those who
    read them. A pattern with nothing to run is no failure."""
    shop.write(DAILY.replace("name: falling", "name: hourly").replace("1 day", "1 hour"), "conf/patterns/hourly.yaml")
    shop.write(CHAIN, "conf/patterns/busy.yaml")
    shop.publish(FIRST, FIRST + 1)
    done = {document["pattern"]: document for document in shop.documents("run", "source:trades+")}
    assert interval(done["falling"]) == (day(FIRST + 2), day(LAST + 1))
    assert interval(done["hourly"]) == ("2026-01-09T08:00:00Z", "2026-01-09T09:00:00Z")
    assert interval(done["busy"]) == (day(LAST), day(LAST + 1))
    assert [len(done[name]["stages"]) for name in ("falling", "hourly", "busy")] == [4, 4, 4]
    again = shop.documents("run", "source:trades+")
    assert {document["pattern"] for document in again if not document["stages"]} == {*done}
    assert all(document["state"] == "succeeded" and document["nothing_to_run"] for document in again)
    output = shop.type("run", "falling", "hourly")
    assert output.count("nothing to run") == 4  # a line for each, and the table


@pytest.mark.long
def test_a_pattern_that_reads_all_history(shop: Shop) -> None:
    """Its windows have no beginning; what a run publishes ends in an hour, and the backfill begins with the source."""
    shop.write(PAIRS, "conf/patterns/pairs.yaml")
    output = shop.type("run", "pairs")
    assert "pairs: --from 2026-01-09T08:00:00 --to 2026-01-09T09:00:00: 1 window, the last complete one" in output
    (backfill,) = commands(output)
    assert "--from 2026-01-05T09:00:00 --to 2026-01-09T08:00:00" in backfill
    typed(backfill)
    firsts = shop.table("results", "pairs").to_pyarrow_table()["first"].to_pylist()
    assert sorted(firsts) == sorted([9, 4] * (LAST + 1 - FIRST))
    assert shop.states("pairs") == []


def test_a_file_elsewhere_is_named_by_its_path(shop: Shop, tmp_path: Path) -> None:
    """What is printed about it works as typed too."""
    folder = tmp_path / "else where"
    folder.mkdir()
    (folder / "mine.yaml").write_text(DAILY.replace("name: falling", "name: mine"))
    (backfill,) = commands(shop.type("run", folder / "mine.yaml"))
    typed(backfill)
    assert len(shop.rows("mine")) == LAST + 1 - FIRST
