"""What the site says of a pattern's freshness, and of a revision, from facts alone."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.one_session import commands
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.report.facts import CheckFacts, RunFacts, StageFacts
from trendlake.pipelines.report.places import Places
from trendlake.pipelines.report.verdict import Verdict
from trendlake.pipelines.site.cards import card_text, freshness_words, read_cards
from trendlake.pipelines.site.facts import Card, FreshFacts, SourceFacts
from trendlake.pipelines.site.read_runs import verdict_of

NIGHT = datetime(2013, 3, 3, tzinfo=UTC)
SOURCE = SourceFacts("flights", 7, NIGHT + timedelta(hours=5))
FRESH = FreshFacts(SOURCE, oldest=7, newest=7, until=NIGHT, due=NIGHT + timedelta(days=1))


@pytest.mark.parametrize(
    ("fresh", "state", "said"),
    [
        (FRESH, "good", "Up to date"),
        (replace(FRESH, held_back=True), "good", "Up to date"),
        (replace(FRESH, oldest=5), "warn", "2 versions behind"),
        (replace(FRESH, source=replace(SOURCE, version=8)), "warn", "1 version behind"),
        (
            replace(FRESH, source=replace(SOURCE, newest_event=NIGHT + timedelta(days=3))),
            "warn",
            "3 days of events not published",
        ),
        (
            replace(FRESH, source=replace(SOURCE, newest_event=NIGHT + timedelta(hours=30))),
            "warn",
            "30 h of events not published",
        ),
        (replace(FRESH, other_form=True, oldest=5), "warn", "Pattern changed"),
        (replace(FRESH, source_tables=(None,)), "warn", "Source or results replaced"),
        (FreshFacts(SOURCE), "none", "Nothing published"),
        (FreshFacts(SourceFacts("flights")), "none", "No source yet"),
    ],
)
def test_freshness_in_a_few_words(fresh: FreshFacts, state: str, said: str) -> None:
    """An open window is no delay; a window that is over and not published is one, and so is an older version."""
    shown = freshness_words(fresh)
    assert shown[:2] == (state, said)
    assert "flights" in shown[2]


def test_freshness_in_full() -> None:
    """Both clocks: versions, and the time of events."""
    note = freshness_words(replace(FRESH, oldest=5, held_back=True))[2]
    assert note == (
        "Published windows show versions 5 to 7 of flights and reach to 3 Mar 2013, 00:00; flights is at version 7, "
        "its newest event is of 3 Mar 2013, 05:00. Some windows are held back until late events can no longer come."
    )


@pytest.mark.parametrize(
    ("fresh", "command"),
    [
        (replace(FRESH, other_form=True, backfills=("backfill p --from A --to B",)), "backfill p --from A --to B"),
        (replace(FRESH, gaps=("backfill p --from A --to B",)), "backfill p --from A --to B"),
        (replace(FRESH, source_tables=(None,)), "revise p"),
        (replace(FRESH, oldest=5), "revise p"),
        (replace(FRESH, source=replace(SOURCE, newest_event=NIGHT + timedelta(days=3))), "run p"),
        (FreshFacts(SOURCE), "run p"),
        (FRESH, None),
        (replace(FRESH, oldest=5, revised=False), None),
        (
            replace(FRESH, lateness_seconds=86_400.0, source=replace(SOURCE, newest_event=NIGHT + timedelta(days=1))),
            None,
        ),
    ],
)
def test_the_command_that_brings_results_up_to_date(fresh: FreshFacts, command: str | None) -> None:
    """One for each state; none for a pattern that is never corrected, or that waits for late events."""
    note = freshness_words(replace(fresh, typed="p"))[2]
    assert commands(note) == ([] if command is None else [f"trendlake {command}"])


def test_patterns_whose_file_is_gone(tmp_path: Path) -> None:
    """A deleted pattern stays on the page of all, with what removes its results; a renamed one leaves it to its new
    name."""
    places, project = Places(tmp_path / "reports"), Project(tmp_path, tmp_path / "state")
    project.patterns.mkdir(parents=True)
    for name, table in (("a", "a"), ("b", "b"), ("c", "older")):
        places.card(name).parent.mkdir(parents=True)
        places.card(name).write_bytes(
            card_text(card(name, "2013-03-03T01:00:00"), replace(FRESH, typed=name, table=table))
        )
    (project.patterns / "new.yaml").write_text("name: new\nrenamed_from: b\n")
    (project.patterns / "c.yaml").write_text("name: c\nrenamed_from: older\n")
    shown = {item.name: item for item in read_cards(places, project)}
    assert sorted(shown) == ["a", "c"]
    assert (shown["a"].fresh, commands(shown["a"].fresh_note)) == ("No pattern file", ["trendlake reset results/a"])
    assert shown["c"].fresh == "Up to date"


def test_a_revision_that_broke_an_expectation() -> None:
    """It is a warning, as of a run; windows of an earlier form of the pattern are told elsewhere."""
    stage = StageFacts("revise", "succeeded", 1.0, NIGHT, None, None, None, None, None, 1, 0, 0, 1)
    good = CheckFacts("revise", "revision", None, True, "7 rows changed", "change feed")
    broken = replace(good, check="none_vanish_of_last_7", success=False)
    checks = (good, replace(broken, check="stale_rows"))
    run = RunFacts("r", "p", None, None, None, "flights", 1, None, 1, NIGHT, NIGHT, (stage,), checks)
    assert verdict_of(run) == Verdict("good", "Revised", "7 rows changed")
    warned = verdict_of(replace(run, checks=(good, broken)))
    assert warned == Verdict("warn", "Revised with warnings", "1 check gave a warning. 7 rows changed")


def test_a_run_of_one_pattern_tells_of_the_source_of_all(tmp_path: Path) -> None:
    """Cards stand beside the newest source that any of them has seen; one of another version is passed over."""
    places = Places(tmp_path)
    changed = replace(SOURCE, version=9)
    for name, hour, fresh in (("a", 1, FRESH), ("b", 2, replace(FRESH, source=changed, oldest=9, newest=9))):
        path = places.card(name)
        path.parent.mkdir()
        path.write_bytes(card_text(card(name, f"2013-03-03T{hour:02d}:00:00"), fresh))
    (tmp_path / "old").mkdir()
    places.card("old").write_text('{"name": "old"}')
    cards = read_cards(places)
    assert [(item.name, item.fresh) for item in cards] == [("a", "2 versions behind"), ("b", "Up to date")]
    assert "flights is at version 9" in cards[0].fresh_note


def card(name: str, made_at: str) -> Card:
    """A card as it is before its freshness is told."""
    texts = {field.name: "" for field in fields(Card)}
    known = {"name": name, "source": "flights", "made_at": made_at, "rows": None, "run_page": False, "checks": False}
    return Card(**(texts | known))  # type: ignore[arg-type]
