"""`trendlake revise --dry-run`: prints what a revision of each pattern would do, and writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trendlake.cep_core.errors import TrendlakeError
from trendlake.jobs.actions.revise import readers_of, verdict_of
from trendlake.jobs.actions.revise_together import Revised, by_source, not_published, prepared, print_outcome
from trendlake.jobs.terminal.hints import as_typed
from trendlake.jobs.terminal.json_output import of_any_error
from trendlake.jobs.terminal.lines import say
from trendlake.jobs.terminal.verdict import Verdict
from trendlake.jobs.terminal.workspace import Place, find_place, session
from trendlake.pipelines.error_text import plural

if TYPE_CHECKING:
    from trendlake.pipelines.steps.dry_run import DryRun, TableChange

RUN_ID = "dry run"
_WORDS = {"insert": "inserted", "update": "updated", "delete": "deleted"}
"""Of the counts of a difference."""


def dry_run_pattern(
    pattern: str, profile: str | None, folder: Path | None, *, if_published: bool, unlimited: bool
) -> dict[str, Any]:
    """Of one pattern. `unlimited`: as of `Run`. Raises what its revision raises before it writes."""
    from trendlake.pipelines.authoring.validate import check_pattern

    place = find_place(folder, profile)
    check_pattern(place.project, place.project.pattern_path(pattern))
    ((one, document),) = _each(place, [pattern], if_published=if_published, unlimited=unlimited)
    if one.error is not None:
        raise one.error
    return document


def dry_run_several(words: Sequence[str], profile: str | None, folder: Path | None, *, if_published: bool) -> Verdict:
    """Of the patterns that `words` (names, files, selectors) mean. An error in one is printed, and the others go on;
    the verdict is then not good."""
    from trendlake.jobs.actions.run import last_states
    from trendlake.pipelines.project.selection import Patterns

    place = find_place(folder, profile)
    names = Patterns(place.project, place.profile.batches).select(words, lambda: last_states(place))
    return verdict_of({"patterns": _documents(place, names, if_published=if_published)})


def dry_run_source(source: str, profile: str | None, folder: Path | None) -> Verdict:
    """Of all published patterns that a revision of a source revises. Raises ProjectError where no pattern reads it."""
    place = find_place(folder, profile)
    documents = _documents(place, readers_of(place, source), if_published=True)
    return verdict_of({"source": source, "patterns": documents})


def _documents(place: Place, names: Sequence[str], *, if_published: bool) -> list[dict[str, Any]]:
    """Of each pattern what is printed of it."""
    documents = []
    for one, document in _each(place, names, if_published=if_published, unlimited=False):
        if one.error is not None:
            print_outcome(one)
        documents.append(document)
    return documents


def _each(
    place: Place, names: Sequence[str], *, if_published: bool, unlimited: bool
) -> Iterator[tuple[Revised, dict[str, Any]]]:
    """Each pattern with its document, after its lines are printed. Those on one source share what is read."""
    from trendlake.pipelines.project.paths import PUBLISHED
    from trendlake.pipelines.steps.dry_run import dry_run
    from trendlake.pipelines.steps.revise import Shared

    changing: set[str] = set()
    with session(place, f"trendlake revise --dry-run of {plural(len(names), 'pattern')}") as lake:
        for group in by_source([prepared(place, lake, name, RUN_ID) for name in names]):
            runs = [one.run for one in group if one.run is not None]
            shared = Shared(runs) if runs else None
            for one in group:
                if one.run is None or shared is None:
                    yield one, _failed(one)
                    continue
                try:
                    if if_published and not shared.has_published(one.run):
                        say(f"{'pattern':<14} {one.name}")
                        say(not_published(one.run, shared))
                        yield one, {"pattern": one.name, "dry_run": True, "published": False}
                        continue
                    dry = dry_run(replace(one.run, unlimited=unlimited), shared)
                except TrendlakeError as error:
                    one.error = error
                    yield one, _failed(one)
                    continue
                above = sorted(changing & {table.contract.name for table in one.run.sources.every})
                if dry.windows or above:
                    changing.add(f"{PUBLISHED}{one.name}")
                _print(dry, above)
                yield one, _document(dry, above)
            if shared is not None:
                shared.changes.close()


def _failed(one: Revised) -> dict[str, Any]:
    return {"pattern": one.name, "dry_run": True, "error": of_any_error(one.error or RuntimeError())}


def _line(head: str, text: str) -> None:
    say(f"{head:<14} {text}")


def _print(dry: DryRun, above: Sequence[str]) -> None:
    from trendlake.pipelines.steps.dry_run import road_of

    _line("pattern", f"{dry.run.name}: nothing is written")
    _line("tables", ", ".join(_versions(table, dry.settled) for table in dry.tables))
    for check in dry.record.checks:
        if check.name in ("stale_rows", "stale_versions"):
            _line(check.name.replace("_", " "), as_typed(check.observed))
    for table in dry.tables:
        if table.rows is not None:
            _line("changed", _change(table))
    if dry.looked_up:
        _line("looked up", f"{plural(dry.looked_up, 'event')} otherwise, in {plural(dry.by_lookups, 'window')}")
    for name in above:
        _line("before", f"{name} is revised first: what that changes is not known yet, and comes on top")
    _line("windows", _windows(dry))
    if dry.reason:
        _line("", f"all of them: {dry.reason}")
    if dry.due:
        _line("", f"{plural(dry.due, 'window')} of them held back before")
    if dry.counts is not None:
        words = [f"{dry.counts[name]:,} {word}" for name, word in _WORDS.items()]
        _line("rows", ", ".join(words).replace("deleted", "retracted"))
    if dry.refused is not None:
        _line("refused", str(dry.refused).replace("\n", "\n" + " " * 11))
    if dry.windows:
        _line("road", road_of(dry))
    if dry.last is not None:
        _line("last time", f"{plural(dry.last.windows, 'window')} in {dry.last.seconds:.1f} s (run {dry.last.run_id})")


def _versions(table: TableChange, settled: bool) -> str:
    """`orders 11 -> 12`."""
    if table.shown == table.newest and not table.another:
        return f"{table.name} {table.newest} (same)"
    oldest = "" if settled else " (the oldest shown)"
    return f"{table.name} {table.shown}{oldest} -> {table.newest}{' of another table' if table.another else ''}"


def _change(table: TableChange) -> str:
    rows = f"{table.name}: {plural(table.rows or 0, 'row')} came or went"
    rows += f", of {plural(table.keys, 'key')}" if table.keys else ""
    return rows + (f"; {plural(table.broken, 'row')} for the quarantine" if table.broken else "")


def _windows(dry: DryRun) -> str:
    if dry.interval is None:
        revision = [check for check in dry.record.checks if check.name == "revision"]
        return f"none: {revision[0].observed}" if revision and not dry.record.road else "none"
    start, end = dry.interval
    span = f"up to {_at(end)}" if start is None else f"{_at(start)} to {_at(end)}"
    return f"{dry.count:,} of {plural(dry.published, 'published window')}, {span} (UTC)"


def _at(micros: int) -> str:
    from trendlake.cep_core.events.windows import clock_text

    return clock_text(micros, " ").removesuffix(":00")


def _document(dry: DryRun, above: Sequence[str]) -> dict[str, Any]:
    from trendlake.cep_core.events.windows import moment

    start, end = dry.interval or (None, None)
    return {
        "pattern": dry.run.name,
        "dry_run": True,
        "published": True,
        "tables": [
            {
                "table": table.name,
                "reference": table.reference,
                "from_version": table.shown,
                "to_version": table.newest,
                "another_table": table.another,
                "rows": table.rows,
                "keys": table.keys,
                "broken": table.broken,
            }
            for table in dry.tables
        ],
        "revised_before": list(above),
        "windows": dry.count,
        "windows_published": dry.published,
        "windows_held_back": dry.due,
        "windows_by_lookups": dry.by_lookups,
        "from": None if start is None else moment(start),
        "to": None if end is None else moment(end),
        "events_looked_up": dry.looked_up,
        "reason": dry.reason,
        **{f"rows_{word}": None if dry.counts is None else dry.counts[name] for name, word in _WORDS.items()},
        "refused": None if dry.refused is None else of_any_error(dry.refused),
        "road": dry.record.road,
        "road_reason": dry.record.road_reason,
        "last": None
        if dry.last is None
        else {
            "run_id": dry.last.run_id,
            "windows": dry.last.windows,
            "seconds": dry.last.seconds,
            "finished_at": moment(dry.last.finished_at),
        },
    }
