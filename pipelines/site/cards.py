"""A pattern in one row of the page of all: made when its own page is, kept next to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from trendlake.pipelines.error_text import plural
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.report.places import Places
from trendlake.pipelines.report.verdict import State
from trendlake.pipelines.report.words import duration, extent_label, interval_label, stamp
from trendlake.pipelines.site.facts import Card, FreshFacts, OverviewFacts, PatternPageFacts, SourceFacts


def card_of(facts: PatternPageFacts) -> Card:
    """The row of the pattern."""
    pattern, overview = facts.pattern, facts.overview
    last = facts.runs.runs[0] if facts.runs.runs else None
    verdict = facts.verdicts[last.run_id] if last else None
    state, word = (verdict.state, verdict.word) if verdict else ("none", "Never run")
    if facts.mistake:
        state, word = "bad", "Does not compile"
    fresh_state, fresh, fresh_note = freshness_words(facts.fresh)
    return Card(
        name=pattern.name,
        file=facts.file,
        title=pattern.description.partition(". ")[0].rstrip("."),
        kind=pattern.kind,
        owner=pattern.owner or "",
        schedule=pattern.schedule or "",
        source=pattern.source,
        state=state,
        word=word,
        reason=facts.mistake.strip().splitlines()[0] if facts.mistake else verdict.reason if verdict else "",
        run_id=last.run_id if last else "",
        run_at=stamp(last.finished_at.replace(microsecond=0)) if last and last.finished_at else "",
        run_page=last is not None and last.run_id in facts.pages,
        fresh_state=fresh_state,
        fresh=fresh,
        fresh_note=fresh_note,
        rows=overview.rows if overview else None,
        groups=f"{plural(overview.group_count, 'group')} by {', '.join(overview.group_columns)}"
        if overview and overview.group_columns
        else "",
        span=range_label(overview) if overview else "",
        checks=facts.docs.there,
        made_at=f"{facts.made_at:%Y-%m-%dT%H:%M:%S}",
        apart=last.apart if last else "",
        batch=pattern.batch or "",
    )


def range_label(overview: OverviewFacts) -> str:
    """The time of the rows: from the first to the last, never the ends of the stretches by which they are counted."""
    if overview.extent is not None:
        return extent_label(*overview.extent)
    return interval_label(overview.first, overview.last)


def freshness_words(fresh: FreshFacts) -> tuple[State | str, str, str]:
    """State, a few words, and the rest of it. By version: whether all windows show the source's newest; by event time:
    how far windows reach, compared with the newest event."""
    source = fresh.source
    if fresh.present:
        return _of_several(fresh)
    if source.version is None:
        return "none", "No source yet", f"There is no table of {source.name}."
    has = f"{source.name} is at version {source.version}"
    if source.newest_event:
        has += f", its newest event is of {stamp(source.newest_event.replace(microsecond=0))}"
    if fresh.newest is None or fresh.oldest is None or fresh.until is None:
        return "none", "Nothing published", f"{has}.{_command(fresh, 'run', 'publishes its last complete window')}"
    shown = f"version {fresh.newest}" if fresh.oldest == fresh.newest else f"versions {fresh.oldest} to {fresh.newest}"
    note = f"Published windows show {shown} of {source.name} and reach to {stamp(fresh.until)}; {has}."
    if fresh.held_back:
        note += " Some windows are held back until late events can no longer come."
    if fresh.other_form:
        due = _commands(fresh.backfills) or "a backfill is due"
        return "warn", "Pattern changed", f"{note} Some were computed by another form of the pattern: {due}."
    revision = _command(fresh, "revise", "brings them up to date")
    if fresh.other_table and fresh.revised:
        why = "were computed from another table than the present one, or changed by other programs."
        return "warn", "Source or results replaced", f"{note} Some {why}{revision}"
    if fresh.oldest < source.version and fresh.revised:
        return "warn", f"{plural(source.version - fresh.oldest, 'version')} behind", note + revision
    if fresh.gaps:
        return "warn", "Windows left out", f"{note} Some before are not published: {_commands(fresh.gaps)}."
    waited = timedelta(seconds=fresh.lateness_seconds)
    if source.newest_event and fresh.due and source.newest_event - waited >= fresh.due:
        behind = duration((source.newest_event - fresh.until).total_seconds())
        return "warn", f"{behind} of events not published", note + _command(fresh, "run", "publishes what is complete")
    return "good", "Up to date", note


def _of_several(fresh: FreshFacts) -> tuple[State | str, str, str]:
    """As `freshness_words`, of a pattern with `sources`: by the versions of its tables alone."""
    has = f"The tables are at {fresh.present}"
    if not fresh.several or fresh.until is None:
        return "none", "Nothing published", f"{has}.{_command(fresh, 'run', 'publishes its last complete window')}"
    note = f"Published windows show {', '.join(fresh.several)} and reach to {stamp(fresh.until)}. {has}."
    if fresh.other_form:
        due = _commands(fresh.backfills) or "a backfill is due"
        return "warn", "Pattern changed", f"{note} Some were computed by another form of the pattern: {due}."
    if fresh.several != (fresh.present,) and fresh.revised:
        return "warn", "Behind", note + _command(fresh, "revise", "brings them up to date")
    if fresh.gaps:
        return "warn", "Windows left out", f"{note} Some before are not published: {_commands(fresh.gaps)}."
    return "good", "Up to date", note


def _commands(commands: Sequence[str]) -> str:
    return ", ".join(f"`trendlake {command}`" for command in commands)


def _command(fresh: FreshFacts, word: str, does: str) -> str:
    """A sentence that names a command; none in a card that was stored without the pattern's name."""
    return f" `trendlake {word} {fresh.typed}` {does}." if fresh.typed else ""


@dataclass(frozen=True)
class StoredCard:
    """The file that is kept next to a pattern's page: its row, and the facts of its freshness."""

    card: Card
    fresh: FreshFacts


_FORM = TypeAdapter(StoredCard)


def card_text(card: Card, fresh: FreshFacts) -> bytes:
    """The stored form of a card, JSON."""
    return _FORM.dump_json(StoredCard(card, fresh), indent=1)


def read_cards(places: Places, project: Project | None = None) -> list[Card]:
    """Those of all patterns, by name. Each pattern's freshness is compared with the newest version of its source that
    any card knows: a run or revision of one pattern reports the source of all. A card that another version of Trendlake
    has written is ignored until its pattern's next run. With the `project`, a pattern that it renamed is left out; the
    card of one whose file is gone reports that."""
    stored = _stored(places)
    newest = _newest_sources(stored)
    cards = []
    for item in stored:
        if project is None or item.fresh.typed != item.card.name or project.table_of(item.card.name) is not None:
            cards.append(_with_source(item, newest[item.card.source]))
        elif project.renamed(item.fresh.table) is None:
            cards.append(_without_file(item))
    return cards


def read_sources(places: Places) -> dict[str, SourceFacts]:
    """The tables of events of single sources, by name, as the cards of patterns know them."""
    return _newest_sources(_stored(places))


def _stored(places: Places) -> list[StoredCard]:
    return [card for path in places.cards() if (card := _read_card(path)) is not None]


def _newest_sources(stored: Sequence[StoredCard]) -> dict[str, SourceFacts]:
    return {item.card.source: item.fresh.source for item in sorted(stored, key=lambda item: item.card.made_at)}


def _without_file(stored: StoredCard) -> Card:
    table = f"results/{stored.fresh.table}"
    note = (
        f"{stored.card.file} does not exist. `trendlake reset {table}` removes the results; "
        f"`renamed_from: {stored.fresh.table}` in another pattern's file keeps them."
    )
    return replace(stored.card, fresh_state="warn", fresh="No pattern file", fresh_note=note)


def shows(places: Places, name: str, version: int, table: str | None, since: datetime) -> bool:
    """Whether the page of a pattern was written after `since` and says that all its results show this version, the
    newest, of this table of the source."""
    path = places.card(name)
    stored = _read_card(path) if path.is_file() and places.pattern(name).is_file() else None
    if stored is None or datetime.fromisoformat(f"{stored.card.made_at}+00:00") <= since:
        return False
    fresh = stored.fresh
    settled = not (fresh.held_back or fresh.other_form or fresh.other_table)
    return settled and (fresh.source.version, fresh.source.table_id, fresh.oldest) == (version, table, version)


def _with_source(stored: StoredCard, source: SourceFacts) -> Card:
    state, words, note = freshness_words(replace(stored.fresh, source=source))
    return replace(stored.card, fresh_state=state, fresh=words, fresh_note=note)


def _read_card(path: Path) -> StoredCard | None:
    try:
        return _FORM.validate_json(path.read_bytes(), strict=False)
    except ValidationError:
        return None
