"""Patterns that are renamed or deleted: `renamed_from` keeps the results; `ls --orphans`, `show` and `reset` know those
that no file speaks of."""

from __future__ import annotations

import html
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.bare_lake import bare_lake
from tests.support.one_session import commands, typed
from tests.support.own_source import output_of
from tests.support.shop import DAILY, FILE, FIRST, LAST, NAME, Shop, opened_shop, trades
from trendlake.pipelines.lake.commits import known_commits

pytestmark = pytest.mark.spark

NEW = "conf/patterns/sinking.yaml"
CHAIN = """\
name: busy
source: results/sinking
pattern: sinking R+
return: {trends: COUNT(*)}
within: 1 day
"""


@pytest.fixture(scope="module")
def published(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """All complete days of `falling` are published."""
    with opened_shop(spark, tmp_path_factory.mktemp("new")) as shop:
        shop.publish(FIRST, LAST)
        yield shop


@pytest.fixture
def shop(published: Shop, tmp_path: Path) -> Shop:
    return published.copied(tmp_path / "a shop")


def rename(shop: Shop, new: str = "sinking", old: str = NAME, renamed_from: str | None = NAME) -> str:
    """As a person does: the file is moved and its name changed. Returns the new file."""
    file = f"conf/patterns/{new}.yaml"
    shutil.move(shop.folder / f"conf/patterns/{old}.yaml", shop.folder / file)
    shop.edit(file, f"name: {old}\n", f"name: {new}\n" + (f"renamed_from: {renamed_from}\n" if renamed_from else ""))
    return file


def orphans(shop: Shop) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = shop.document("ls", "--orphans")["orphans"]
    return listed


def test_a_renamed_pattern_keeps_its_results(shop: Shop) -> None:
    """The table stays where it is, with its history. Everything goes on as if nothing had happened, under the new name:
    `show`, a revision without and with changes, a run, the site, a past version, the results as a source."""
    before = shop.rows()
    rename(shop)
    shown = shop.document("show", "sinking")
    assert shown["table"].endswith("/results/falling")
    assert (shown["rows_in_all"], shown["stale_rows"], shown["states"]) == (LAST + 1 - FIRST, 0, [])
    quiet = shop.document("revise", "sinking")
    assert (quiet["changed"], quiet["revision"]["checks"][-1]["observed"]) == (False, "nothing new since version 1")
    assert [check["check"] for check in quiet["revision"]["checks"]] == ["revision"]
    shop.deliver(*trades(LAST + 1, "598")[1:], *trades(LAST + 2, "5"), "late,2026-01-06T09:00:30Z,A,8")
    revised = shop.document("revise", "sinking")
    assert (revised["changed"], revised["revision"]["pattern"]) == (True, "sinking")
    run = shop.document("run", "sinking")
    assert run["from"] == f"2026-01-{LAST + 1:02d}T00:00:00Z"
    assert shop.rows() == shop.expected(FIRST, LAST + 1, NEW)
    assert shop.states("sinking") == []
    old = shop.document("show", "sinking", "--as-of", "1")["rows"]
    assert {int(row["window_start"][8:10]): row["trends"] for row in old} == before
    assert shop.document("diff", "sinking", "--from", "1", "--to", "3")["counts"]["added"] == 1
    assert not (shop.folder / ".trendlake" / "warehouse" / "results" / "sinking").exists()
    assert orphans(shop) == []
    shop.write(CHAIN, "conf/patterns/busy.yaml")
    shop.publish(FIRST + 1, LAST + 2, "busy")  # results are events of the day after
    assert len(shop.rows("busy")) == LAST + 2 - FIRST
    page = (shop.folder / ".trendlake" / "reports" / "index.html").read_text()
    assert ">sinking<" in page
    assert ">falling<" not in page


@pytest.mark.long
def test_the_form_is_the_same_and_commits_say_whose_they_are(shop: Shop, spark: SparkSession) -> None:
    """`renamed_from` is no part of the plan hash, which rows have; a publication notes the new name."""
    rename(shop)
    shop.publish(LAST, LAST + 1, "sinking")
    table = shop.table("results", NAME)
    assert len(set(table.to_pyarrow_table()["plan_hash"].to_pylist())) == 1
    notes = [
        commit.note
        for commit in known_commits(bare_lake(spark), str(shop.folder / ".trendlake" / "warehouse" / "results" / NAME))
        if "number" in commit.note
    ]
    assert [note.get("pattern") for note in notes] == ["sinking", None]
    assert [note["number"] for note in notes] == [notes[1]["number"] + 1, notes[1]["number"]]


@pytest.mark.long
def test_renamed_twice(shop: Shop) -> None:
    """The table has the first name still. The last name in its place is an error that says so; so is the first name in
    two files."""
    rename(shop)
    shop.deliver("late,2026-01-06T09:00:30Z,A,8")
    shop.type("revise", "sinking")
    file = rename(shop, "diving", "sinking", None)
    shop.edit(file, "renamed_from: falling", "renamed_from: sinking")
    for words in (["show", "diving"], ["run", "diving"], ["revise", "diving"]):
        assert "write `renamed_from: falling` in diving.yaml" in shop.type(*words, code=1)
    shop.edit(file, "renamed_from: sinking", "renamed_from: falling")
    shop.deliver("later,2026-01-06T09:00:40Z,A,8")
    record = shop.document("revise", "diving")["revision"]
    assert "unrecorded_publication" not in [check["check"] for check in record["checks"]]
    assert shop.rows() == shop.expected(FIRST, LAST, file)
    shop.write((shop.folder / file).read_text().replace("name: diving", "name: sinking"), NEW)
    assert "'diving' is renamed from 'falling' too" in shop.type("run", "sinking", code=1)
    assert "'sinking' is renamed from 'falling' too" in output_of(
        "validate", shop.folder / file, *shop.given[:2], code=1
    )


def test_the_old_name_has_a_file_still(shop: Shop) -> None:
    """A copy is no new name: both would publish to one table."""
    text = DAILY.replace("name: falling\n", "name: sinking\nrenamed_from: falling\n")
    shop.write(text, NEW)
    for words in (["run", "sinking"], ["show", "sinking"], ["revise", "sinking"]):
        output = shop.type(*words, code=1)
        assert "[BAD_VALUE] renamed_from: 'falling' has a file still" in output
        assert "sinking.yaml:2" in output
    assert shop.states() == []


@pytest.mark.long
def test_the_old_name_is_given_again(shop: Shop) -> None:
    """A new pattern of the old name does not replace the rows of the renamed one, which goes on."""
    rename(shop)
    shop.publish(LAST, LAST, "sinking")
    shop.deliver("late,2026-01-06T09:00:30Z,A,8")
    shop.type("revise", "sinking")
    rows = shop.rows()
    shop.edit(NEW, "renamed_from: falling\n", "")
    shop.write(DAILY.replace("1 day", "2 days"), FILE)
    for words in (["run", NAME, "--from", "2026-01-05", "--to", "2026-01-07"], ["revise", NAME], ["show", NAME]):
        assert "results/falling holds the results of 'sinking'" in shop.type(*words, code=1)
    assert shop.rows() == rows


def test_a_new_pattern_of_the_old_name(shop: Shop) -> None:
    """It is refused before there is a file, and is no pattern while a folder has the name."""
    rename(shop)
    written = output_of("new", "pattern", NAME, "--like", "sessions", *shop.given[:2], code=1)
    assert "the results of 'sinking' are called 'falling'" in written
    (shop.folder / FILE).mkdir()
    assert shop.states("sinking") == []


def test_both_names_have_rows(shop: Shop) -> None:
    """The new name was run before its file said `renamed_from`: a person decides whose rows stay."""
    rename(shop, renamed_from=None)
    shop.publish(LAST, LAST, "sinking")
    assert [orphan["table"] for orphan in orphans(shop)] == ["results/falling"]
    shop.edit(NEW, "name: sinking\n", "name: sinking\nrenamed_from: falling\n")
    error = shop.type("run", "sinking", code=1)
    assert "there are rows in results/falling and in results/sinking" in error
    (reset,) = commands(error)
    typed(reset)
    assert shop.states("sinking") == []
    assert shop.rows() == shop.expected(FIRST, LAST, NEW)


@pytest.mark.long
def test_the_line_is_taken_out_again(shop: Shop) -> None:
    """The results have the old name still, and `show` says so."""
    rename(shop)
    shop.publish(LAST, LAST, "sinking")
    shop.deliver("late,2026-01-06T09:00:30Z,A,8")
    shop.type("revise", "sinking")
    shop.edit(NEW, "renamed_from: falling\n", "")
    assert "write `renamed_from: falling` in sinking.yaml" in shop.type("show", "sinking", code=1)
    assert [(one["table"], one["pattern"]) for one in orphans(shop)] == [("results/falling", "sinking")]


@pytest.mark.long
def test_who_reads_the_results_is_told_the_new_name(shop: Shop) -> None:
    shop.write(CHAIN.replace("sinking", "falling"), "conf/patterns/busy.yaml")
    shop.publish(FIRST, LAST, "busy")
    rename(shop)
    error = shop.type("run", "busy", code=1)
    assert "it is called 'sinking' now" in error
    shop.write(CHAIN, "conf/patterns/busy.yaml")
    for command in commands(shop.type("show", "busy")):
        typed(command)
    assert shop.states("busy") == []


def test_renamed_in_an_empty_warehouse(shop: Shop) -> None:
    """Another profile's warehouse has no results: the table has the same name there."""
    shop.type("reset", NAME, "--yes")
    rename(shop)
    shop.publish(FIRST, LAST, "sinking")
    assert shop.rows(NAME) == shop.expected(FIRST, LAST, NEW)


def test_a_file_elsewhere_cannot_be_renamed(shop: Shop, tmp_path: Path) -> None:
    """The key would have no effect, so it is refused; so are a pattern's own name, and what is no name."""
    file = tmp_path / "sinking.yaml"
    file.write_text(DAILY.replace("name: falling\n", "name: sinking\nrenamed_from: falling\n"))
    (shop.folder / FILE).unlink()
    assert "only files in" in shop.type("run", file, code=1)
    shop.write(DAILY.replace("name: falling\n", "name: falling\nrenamed_from: falling\n"))
    assert "is the pattern's own name" in shop.type("run", NAME, code=1)
    shop.write(DAILY.replace("name: falling\n", "name: falling\nrenamed_from: ../../x\n"))
    assert "renamed_from" in shop.type("run", NAME, code=1)


def test_the_results_of_a_deleted_pattern(shop: Shop) -> None:
    """They are listed, shown and removed by their name; the site says what becomes of them."""
    rows = shop.rows()
    (shop.folder / FILE).unlink()
    (orphan,) = orphans(shop)
    assert (orphan["table"], orphan["pattern"], orphan["rows"]) == ("results/falling", NAME, len(rows))
    shown = shop.document("show", NAME, "--limit", "2", "--columns", "trends,window_start")
    assert (shown["pattern"], shown["rows_in_all"], len(shown["rows"])) == (None, len(rows), 2)
    assert list(shown["rows"][0]) == ["trends", "window_start"]
    shop.type("show", NAME, "--out", shop.folder / "rows.csv")
    assert len((shop.folder / "rows.csv").read_text().splitlines()) == 1 + len(rows)
    assert "no file says what the columns" in shop.type("show", NAME, "--group", "company=A", code=1)
    shop.type("site")
    page = html.unescape((shop.folder / ".trendlake" / "reports" / "index.html").read_text())
    assert commands(page) == ["trendlake reset results/falling"]
    for output in (shop.type("show", NAME), shop.type("ls", "--orphans")):
        assert len(commands(output.replace("\n", ""))) == 1
    dry = shop.document("reset", NAME, "--dry-run")
    assert (dry["rows"], dry["removed"]) == (len(rows), False)
    assert shop.rows() == rows
    (reset,) = commands(shop.type("show", NAME))
    typed(reset)
    assert orphans(shop) == []
    assert ">falling<" not in (shop.folder / ".trendlake" / "reports" / "index.html").read_text()
    assert "there is no pattern 'falling'" in shop.type("show", NAME, code=1)


@pytest.mark.long
def test_the_quarantine_of_a_deleted_contract(shop: Shop) -> None:
    """It is listed and removed; that of a source that has a contract is not removed."""
    shop.edit("data_contracts/trades.yaml", "bigint", "bigint\n        logicalTypeOptions: {minimum: 0}")
    tolerance = "quarantineTolerance\n        value: "
    shop.edit("data_contracts/trades.yaml", f"{tolerance}0", f"{tolerance}0.5")
    shop.deliver("broken,2026-01-06T09:02:30Z,A,-3")
    shop.publish(FIRST, LAST)
    name = "sources/trades_quarantine"
    assert "is the quarantine of the source 'trades'" in shop.type("reset", name, "--yes", code=1)
    (shop.folder / "data_contracts" / "trades.yaml").unlink()
    assert [orphan["table"] for orphan in orphans(shop)] == [name]
    contract = shop.folder / "data_contracts" / "trades_quarantine.yaml"
    contract.write_text("name: trades_quarantine\n")
    assert orphans(shop) == []  # it is a source by that name
    assert "is a source with a contract" in shop.type("reset", name, "--yes", code=1)
    contract.unlink()
    assert shop.document("reset", name, "--yes")["removed"]
    assert orphans(shop) == []
