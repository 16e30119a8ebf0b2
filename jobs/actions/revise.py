"""`trendlake revise`: updates published results to the newest version of their source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trendlake.jobs.actions.revise_together import (
    by_source,
    document_of,
    not_published,
    page_of_present,
    pages_of,
    prepared,
    print_outcome,
    print_record,
    revise_group,
)
from trendlake.jobs.airflow.notify import notify_of_results
from trendlake.jobs.airflow.progress import Failure, end_with_task, write_members, write_step
from trendlake.jobs.terminal.hints import command
from trendlake.jobs.terminal.json_output import FAULT, of_record
from trendlake.jobs.terminal.lines import say
from trendlake.jobs.terminal.times import manual_run_id
from trendlake.jobs.terminal.verdict import Verdict
from trendlake.jobs.terminal.workspace import Place, has_new_results, refresh_if_possible, session
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import PASSING

if TYPE_CHECKING:
    from trendlake.pipelines.lake.lake import Lake


def revise_pattern(
    place: Place, pattern: str, run_id: str | None, *, if_published: bool, unlimited: bool
) -> dict[str, Any]:
    """Revises a pattern. Spark starts if there is something to revise. `unlimited`: as of `Run`."""
    from trendlake.pipelines.authoring.validate import check_pattern

    name = check_pattern(place.project, place.project.pattern_path(pattern)).name
    with session(place, f"trendlake revise {name}", writes=True) as lake:
        run_id = run_id or manual_run_id("revise")
        document = revise_in_session(place, lake, pattern, run_id, if_published=if_published, unlimited=unlimited)
    if document["changed"]:
        notify_of_results(place.project, name)
    return document


REPEATABLE = (FAULT, *PASSING)
"""Codes of errors after which another attempt may succeed."""
REVISE_ALL = "revise-all"
"""The step that is done when each pattern has been revised, or could not be. No pattern has such a name."""


def revise_several(
    place: Place, words: Sequence[str], run_id: str | None, progress: Path | None, *, if_published: bool
) -> Verdict:
    """Revises the patterns that `words` (names, files, selectors) mean, in one Spark session; notes in `progress` who
    failed and who has new results. An error in one pattern is printed, and the others go on; the verdict is then not
    good."""
    from trendlake.jobs.actions.run import last_states
    from trendlake.pipelines.project.selection import Patterns

    if progress is not None:
        end_with_task(progress)
    names = Patterns(place.project, place.profile.batches).select(words, lambda: last_states(place))
    documents = _revise_each(place, names, run_id, if_published=if_published)
    if progress is not None:
        failures = [
            Failure(document["pattern"], name, "revise", _reason(error), mistake=error["code"] not in REPEATABLE)
            for name, document in zip(names, documents, strict=True)
            if (error := document.get("error"))
        ]
        write_members(progress, failures, [item["pattern"] for item in documents if item.get("changed")])
        write_step(progress, REVISE_ALL, f"{len(documents) - len(failures)} of {plural(len(documents), 'pattern')}")
    return verdict_of({"patterns": documents})


def _reason(error: dict[str, Any]) -> str:
    """One line of an error's document: of several parts the first, with its place."""
    first = error.get("errors", [error])[0]
    place = first["place"] and f"{Path(first['place']['file']).name}:{first['place']['line']}: "
    return f"{place or ''}[{first['code']}] {first['message']}"


def revise_source(place: Place, source: str, run_id: str | None) -> Verdict:
    """Revises all published patterns that read a source, then those that read their results, in one Spark session. An
    error in one pattern is printed, and the others go on; the verdict is then not good. Raises ProjectError where no
    pattern reads the source."""
    documents = _revise_each(place, readers_of(place, source), run_id, if_published=True)
    return verdict_of({"source": source, "patterns": documents})


def readers_of(place: Place, source: str) -> list[str]:
    """As `patterns_below`. Raises ProjectError where there is none."""
    from trendlake.cep_core.errors import did_you_mean
    from trendlake.pipelines.errors import ProjectError

    names = patterns_below(place, source)
    if not names:
        hint = did_you_mean(source, sorted({table for read in _sources(place).values() for table in read}))
        raise ProjectError(f"no pattern reads the source '{source}'", hint=hint)
    return names


def verdict_of(document: dict[str, Any]) -> Verdict:
    codes = [item["error"]["code"] for item in document["patterns"] if "error" in item]
    return Verdict(document, good=not codes, fault=FAULT in codes)


def _revise_each(place: Place, names: Sequence[str], run_id: str | None, *, if_published: bool) -> list[dict[str, Any]]:
    """A document for each pattern, with its `error` if it failed. Those of one source are revised together."""
    run_id = run_id or manual_run_id("revise")
    with session(place, f"trendlake revise of {plural(len(names), 'pattern')}", writes=True) as lake:
        every = [prepared(place, lake, name, run_id) for name in names]
        for patterns in by_source(every):
            revise_group(patterns, if_published=if_published)
            for pattern in patterns:
                print_outcome(pattern)
        pages = pages_of(place, lake, every)
        documents = [document_of(pattern, run_id, pages.get(pattern.name)) for pattern in every]
    for document in documents:
        if document.get("changed"):
            notify_of_results(place.project, document["pattern"])
    return documents


def patterns_of(place: Place, source: str) -> list[str]:
    """The patterns that read a source."""
    return [name for name, read in _sources(place).items() if source in read]


def patterns_below(place: Place, source: str) -> list[str]:
    """The patterns that read a source, or results of such patterns: each after those whose results it reads."""
    from trendlake.pipelines.project.paths import PUBLISHED

    sources, readers = _sources(place), dict[str, list[str]]()
    for name, read in sources.items():
        for table in read:
            readers.setdefault(table, []).append(name)
    names = list(readers.get(source, ()))
    for name in names:  # it grows
        names += [other for other in readers.get(f"{PUBLISHED}{name}", ()) if other not in names]
    ordered: dict[str, None] = {}

    def place_after_its_sources(name: str, readers_of_it: tuple[str, ...]) -> None:
        for table in sources[name]:
            above = table.removeprefix(PUBLISHED)
            if above != table and above in names and above not in (*ordered, *readers_of_it, name):
                place_after_its_sources(above, (*readers_of_it, name))
        ordered.setdefault(name)

    for name in names:
        place_after_its_sources(name, ())
    return list(ordered)


def next_revision(source: str, patterns: list[str]) -> list[str]:
    """The command to type after rows of a source have changed; none if no pattern reads it."""
    if not patterns:
        return []
    return [f"next: {command(f'revise {patterns[0]}' if len(patterns) == 1 else f'revise --source {source}')}"]


def _sources(place: Place) -> dict[str, tuple[str, ...]]:
    """The tables of each pattern of the project that can be read, by the pattern's name."""
    from trendlake.cep_core.load import read_pattern

    read = ((path.stem, read_pattern(path)[0]) for path in place.project.pattern_files())
    return {name: pattern.tables_read for name, pattern in read if pattern is not None}


def revise_in_session(
    place: Place, lake: Lake, pattern: str, run_id: str, *, if_published: bool, unlimited: bool
) -> dict[str, Any]:
    """Updates a pattern's published windows to its source's newest version, prints the changes and updates the site.
    With `if_published`, a pattern without published results is no error."""
    from trendlake.pipelines.runs.run import prepare
    from trendlake.pipelines.steps.revise import Shared, revise

    run = replace(prepare(lake, place.project, place.profile, pattern, run_id, 0, 1), unlimited=unlimited)
    shared = Shared([run])
    if if_published and not shared.has_published(run):
        say(not_published(run, shared))
        return {"pattern": run.name, "run_id": run_id, "changed": False, "revision": None, "site": None}
    record = revise(run, shared)
    print_record(record)
    # Also where nothing has changed, unless the page shows that already: an attempt before this one may have published
    # and not come to the site.
    page = page_of_present(place, run, record) or refresh_if_possible(place, lake, place.project.pattern_path(pattern))
    about = {"pattern": run.name, "run_id": run_id, "changed": has_new_results(run, record)}
    return {**about, "revision": of_record(record), "site": page}
