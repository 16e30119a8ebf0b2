"""The work and the output of a revision of several patterns: those of one source together, their pages at the end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trendlake.cep_core.errors import TrendlakeError
from trendlake.jobs.terminal.hints import as_typed, command
from trendlake.jobs.terminal.json_output import of_any_error, of_record
from trendlake.jobs.terminal.lines import print_error, say
from trendlake.jobs.terminal.workspace import Place, changed, has_new_results, site_of
from trendlake.pipelines.error_text import in_words, plural
from trendlake.pipelines.redaction import redacted

if TYPE_CHECKING:
    from trendlake.pipelines.lake.lake import Lake
    from trendlake.pipelines.runs.run import Run
    from trendlake.pipelines.runs.stage import Record
    from trendlake.pipelines.steps.revise import Shared


@dataclass
class Revised:
    """A pattern, the `file` that names it, while it is revised: its run until an error ends it; its `record`, None
    where it has published nothing."""

    file: str
    name: str
    run: Run | None = None
    error: Exception | None = None
    record: Record | None = None
    unpublished: str = ""
    """The line that is printed where there is no record, as nothing is published."""


def prepared(place: Place, lake: Lake, file: str, run_id: str) -> Revised:
    from trendlake.pipelines.runs.run import prepare

    try:
        run = prepare(lake, place.project, place.profile, file, run_id, 0, 1)
    except TrendlakeError as error:
        return Revised(file, place.project.pattern_path(file).stem, error=error)
    return Revised(file, run.name, run)


def by_source(patterns: Sequence[Revised]) -> list[list[Revised]]:
    """Groups in the order of `patterns`: each pattern comes after the one whose results it reads, and so do the groups.
    Those that cannot be read come first."""
    groups: dict[str | None, list[Revised]] = {None: []}
    for pattern in patterns:
        groups.setdefault(pattern.run.sources.name if pattern.run else None, []).append(pattern)
    return list(groups.values())


def revise_group(patterns: Sequence[Revised], *, if_published: bool) -> None:
    from trendlake.pipelines.steps.revise import Shared, revise_together

    runs = [pattern.run for pattern in patterns if pattern.run is not None]
    if not runs:
        return
    shared = Shared(runs)
    due = []
    for pattern in patterns:
        try:
            if pattern.run is None:
                continue
            if not if_published or shared.has_published(pattern.run):
                due.append((pattern, pattern.run))
            else:
                pattern.unpublished = not_published(pattern.run, shared)
        except TrendlakeError as error:
            pattern.error = error
    if not due:
        return
    for (pattern, _), attempt in zip(due, revise_together([run for _, run in due], shared), strict=True):
        pattern.record, pattern.error = attempt.record, attempt.error


def not_published(run: Run, shared: Shared) -> str:
    """The line about a pattern that has published nothing in its present form, with what does."""
    from trendlake.pipelines.revision.scope import to_publish

    line = f"nothing is published that could be revised: {to_publish(run, shared.ledger(run))}"
    return f"{'revise':<14} {as_typed(line)}"


def print_outcome(pattern: Revised) -> None:
    say(f"{'pattern':<14} {pattern.name}")
    if pattern.error is not None:
        message = str(pattern.error) if isinstance(pattern.error, TrendlakeError) else in_words(pattern.error)
        print_error(f"{pattern.name}: {redacted(message)}")
    elif pattern.record is None:
        say(pattern.unpublished)
    else:
        print_record(pattern.record)


def pages_of(place: Place, lake: Lake, patterns: Sequence[Revised]) -> dict[str, Path]:
    """The page of each pattern that was revised, by name. Those that show what is there now are left as they are."""
    from trendlake.pipelines.site.build import refresh_patterns

    began = time.monotonic()
    pages: dict[str, Path] = {}
    files = []
    for pattern in patterns:
        if pattern.error is None and pattern.run is not None and pattern.record is not None:
            page = page_of_present(place, pattern.run, pattern.record)
            if page is None:
                files.append(place.project.pattern_path(pattern.file))
            else:
                pages[pattern.name] = page
    if files:
        site = site_of(place, lake)
        for built in refresh_patterns(site, files):
            if built.failure:
                print_error(f"{built.name}: its page could not be written: {built.failure}")
            else:
                pages[built.name] = built.page
        done = f"{plural(len(files), 'page')}: {site.places.index}"
        say(f"{'site':<14} {done:<70} {time.monotonic() - began:6.1f} s")
    return pages


def document_of(pattern: Revised, run_id: str, page: Path | None) -> dict[str, Any]:
    if pattern.error is not None:
        return {"pattern": pattern.name, "error": of_any_error(pattern.error)}
    about: dict[str, Any] = {"pattern": pattern.name, "run_id": run_id, "changed": False, "revision": None}
    if pattern.run is not None and pattern.record is not None:
        about |= {"changed": has_new_results(pattern.run, pattern.record), "revision": of_record(pattern.record)}
    return about | {"site": page}


def print_record(record: Record) -> None:
    for check in record.checks:
        if check.name in ("revision", "lookup_changes", "stale_rows", "stale_versions"):
            say(f"{check.name.replace('_', ' '):<14} {as_typed(check.observed)}")
        elif check.name == "set_apart":
            if check.failed:
                see = command(f"quarantine show {(check.data or {}).get('source') or record.source}")
                say(f"{'quarantined':<14} {check.observed}: `{see}`")
        elif check.failed:
            say(f"{'':<14} {check.name}: {check.observed}")
    changes = f"{record.rows_inserted:,} inserted, {record.rows_updated:,} updated, {record.rows_deleted:,} retracted"
    done = (
        f"version {record.results_version}: {changes}"
        if changed(record)
        else f"nothing to change, version {record.results_version} stays"
    )
    say(f"{'revise':<14} {done:<70} {record.seconds or 0.0:6.1f} s")


def page_of_present(place: Place, run: Run, record: Record) -> Path | None:
    """The pattern's page if nothing was to be revised and the page shows what is there now: it is then left as it is,
    since pictures take longer than to find that there is nothing to do."""
    from trendlake.cep_core.events.windows import moment
    from trendlake.pipelines.lake.versions import commit_time
    from trendlake.pipelines.report.places import Places
    from trendlake.pipelines.site.cards import shows

    places = Places(place.project.state / "reports")
    if record.note is not None or record.basis is None or record.source_version is None:
        return None
    published = commit_time(run.lake, run.warehouse.results(run.name), int(record.results_version or 0))
    if published is None:
        return None
    edited = int(Path(run.pattern.document.name).stat().st_mtime * 1e6)
    since = moment(max(published, edited))
    table = None if record.basis.sources is None else record.basis.sources.table_id
    return places.pattern(run.name) if shows(places, run.name, record.source_version, table, since) else None
