"""No dead end: in each state of published results, each command names what repairs it, and that works as it is typed.

Every command is given a project and a profile, from another folder; so those that it names have them too.
"""

from __future__ import annotations

import html
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.one_session import commands, typed
from tests.support.shop import CONTRACT, DAILY, FIRST, LAST, NAME, Shop, opened_shop, trades
from trendlake.pipelines.runs import code_versions

pytestmark = [pytest.mark.spark, pytest.mark.long]

STEEPER = DAILY.replace("E.price > NEXT(E).price", "E.price > NEXT(E).price + 1")
LONGER = DAILY.replace("lowest: MIN(E.price)", "lowest: MIN(E.price), highest: MAX(E.price)")
ROUNDS = 3
"""How often a command is asked that names one state at a time."""


@pytest.fixture(scope="module")
def new_shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Nothing is published."""
    with opened_shop(spark, tmp_path_factory.mktemp("new")) as shop:
        yield shop


@pytest.fixture(scope="module")
def published(new_shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """All complete days are published, and nothing is to be repaired."""
    shop = new_shop.copied(tmp_path_factory.mktemp("published") / "a shop")
    shop.publish(FIRST, LAST)
    return shop


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# States, each made of a shop in which all complete days are published.


def source_newer(shop: Shop) -> None:
    shop.deliver("late,2026-01-06T09:02:30Z,A,3")


def row_corrected(shop: Shop) -> None:
    shop.deliver("6-1,2026-01-06T09:01:00Z,A,2")


def row_deleted(shop: Shop) -> None:
    shop.type("source", "delete", "trades", "--where", "id = '6-2'", "--yes")


def time_goes_on(shop: Shop) -> None:
    shop.deliver(*trades(LAST + 1, "598")[1:], *trades(LAST + 2, "5"))


def edited(shop: Shop) -> None:
    shop.write(STEEPER)


def edited_in_part(shop: Shop) -> None:
    edited(shop)
    shop.publish(6, 6)


def gap(shop: Shop) -> None:
    shop.type("reset", NAME, "--yes")
    shop.publish(FIRST, FIRST)
    shop.publish(LAST, LAST)


def wrong_code(shop: Shop) -> None:
    shop.type("reset", NAME, "--yes")
    with pytest.MonkeyPatch.context() as before:
        before.setattr(code_versions, "CONTRACT_VERSION", 2)
        shop.publish(FIRST, LAST)


def contract_edited(shop: Shop) -> None:
    shop.edit(CONTRACT, "physicalType: bigint", "physicalType: bigint\n        logicalTypeOptions: {minimum: 0}")


def killed_before_its_record(shop: Shop) -> None:
    """A run that was killed after its commit: the run record is without its last row. Then a late event."""
    shop.type("reset", NAME, "--yes")
    shop.publish(FIRST, LAST)
    record = shop.table("trendlake_runs")
    record.restore(record.version() - 1)
    source_newer(shop)


@dataclass(frozen=True)
class State:
    """How it is made, what `show` says of it, and the days that are published after it is repaired."""

    make: Callable[[Shop], None]
    shown: tuple[str, ...]
    days: tuple[int, int] = (FIRST, LAST)


STATES: Mapping[str, State] = {
    "source newer": State(source_newer, ("behind_source",)),
    "row corrected": State(row_corrected, ("behind_source",)),
    "row deleted": State(row_deleted, ("behind_source",)),
    "complete windows": State(time_goes_on, ("behind_source", "windows_due"), (FIRST, LAST + 1)),
    "edited": State(edited, ("earlier_form",)),
    "edited, run in part": State(edited_in_part, ("earlier_form", "earlier_form")),
    "gap": State(gap, ("gap",)),
    "wrong code": State(wrong_code, ("wrong_version",)),
    "contract edited": State(contract_edited, ("behind_source",)),
    "killed before its record": State(killed_before_its_record, ("behind_source",)),
}
SILENT = {"revise": {"gap", "windows_due"}}
"""What is no matter of a revision."""
WORDS = ("revise", "run", "site")
REPEATS = {("gap", "site"), ("complete windows", "run")}
OTHERS = [
    *(("edited", word) for word in WORDS),
    *(
        pytest.param(name, word, marks=pytest.mark.repeats if (name, word) in REPEATS else pytest.mark.chaos)
        for name in STATES
        for word in WORDS
        if name != "edited"
    ),
]


def asked(shop: Shop, word: str) -> list[str]:
    """The commands that a command names; or the site, whose readers have another project and profile at hand."""
    if word != "site":
        return commands(shop.type(word, NAME, code=None))
    shop.type("site", NAME)
    page = (shop.folder / ".trendlake" / "reports" / NAME / "index.html").read_text()
    return [shlex.join([*shlex.split(command), *shop.given]) for command in commands(html.unescape(page))]


@pytest.mark.parametrize("name", STATES)
def test_show_names_what_repairs(name: str, published: Shop, tmp_path: Path) -> None:
    """Typed as printed, in that order: nothing is left to repair, and every row is what the engine says."""
    state, shop = STATES[name], published.copied(tmp_path / "my shop")
    state.make(shop)
    assert tuple(shop.states()) == state.shown
    named = asked(shop, "show")
    assert len(named) == len(state.shown)
    for command in named:
        typed(command)
    assert shop.states() == []
    assert asked(shop, "show") == []
    assert shop.rows() == shop.expected(*state.days)


@pytest.mark.parametrize(("name", "word"), OTHERS)
def test_revise_run_and_the_site_name_it_too(name: str, word: str, published: Shop, tmp_path: Path) -> None:
    """What a command repairs itself it need not name; in the end there is nothing left that it speaks of."""
    state, shop = STATES[name], published.copied(tmp_path / "my shop")
    state.make(shop)
    for _ in range(ROUNDS):
        for command in asked(shop, word):
            typed(command)
    assert {*shop.states()} <= SILENT.get(word, set())
    first, last = state.days
    expected = shop.expected(first, LAST if word == "revise" else last)
    assert shop.rows().items() <= expected.items()
    assert shop.rows() == expected or "gap" in shop.states()


def test_nothing_is_to_be_repaired(published: Shop, tmp_path: Path) -> None:
    """Results that are up to date: no command, and no page, names another."""
    shop = published.copied(tmp_path / "my shop")
    for word in ("show", "revise", "run", "site"):
        assert asked(shop, word) == []


@pytest.mark.parametrize("word", ["show", "revise", "run"])
def test_nothing_is_published(word: str, new_shop: Shop, tmp_path: Path) -> None:
    """The run that is named publishes the last complete window, and names the backfill of those before it."""
    shop = new_shop.copied(tmp_path / "my shop")
    output = shop.type(word, NAME, code=None)
    if word != "run":
        (run,) = commands(output)
        output = typed(run)
    assert shop.rows() == shop.expected(LAST, LAST)
    (backfill,) = commands(output)
    typed(backfill)
    assert shop.rows() == shop.expected(FIRST, LAST)
    assert shop.states() == []


@pytest.mark.parametrize("word", ["show", "revise"])
def test_a_column_that_no_row_has(word: str, published: Shop, tmp_path: Path) -> None:
    """Rows of the earlier form cannot be shown, nor revised: both errors name the backfill."""
    shop = published.copied(tmp_path / "my shop")
    shop.write(LONGER)
    (backfill,) = commands(shop.type(word, NAME, code=1))
    typed(backfill)
    assert shop.states() == []
    assert shop.rows() == shop.expected(FIRST, LAST)


def test_more_rows_are_broken_than_the_contract_allows(published: Shop, tmp_path: Path) -> None:
    """From the error to the rows, to a file of them, to the repaired file, to the revision."""
    shop = published.copied(tmp_path / "my shop")
    contract_edited(shop)
    shop.type("revise", NAME)
    shop.deliver("broken,2026-01-06T09:02:30Z,A,-3", "late,2026-01-06T09:00:30Z,A,8")
    error = shop.type("revise", NAME, code=1)
    assert "[TOLERANCE]" in error
    (shown,) = commands(error)
    (written,) = commands(typed(shown))
    (replayed,) = commands(typed(written))
    file = Path("FILE.csv")
    file.write_text(file.read_text().replace("-3", "3"))
    (revise,) = commands(typed(replayed))
    typed(revise)
    assert shop.states() == []
    assert shop.rows() == shop.expected(FIRST, LAST)


def test_a_type_that_has_changed(published: Shop, tmp_path: Path) -> None:
    """Results whose columns cannot hold the new form: they are removed, and the command says how they come back."""
    shop = published.copied(tmp_path / "my shop")
    shop.write(DAILY.replace("MIN(E.price)", "AVG(E.price)"))
    (reset,) = commands(shop.type("run", NAME, "--from", "2026-01-05", "--to", "2026-01-06", code=1))
    (again,) = commands(typed(reset))
    typed(again)
    assert shop.rows() == shop.expected(FIRST, LAST)
    assert shop.states() == []
