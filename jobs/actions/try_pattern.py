"""`trendlake try`: runs a pattern on a sample of its tables, in this process, and writes nothing."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trendlake.jobs.terminal.printing import console
from trendlake.jobs.terminal.rows import table_of
from trendlake.jobs.terminal.times import interval_of, micros_of
from trendlake.jobs.terminal.workspace import Place, find_place, session
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.progress import doing
from trendlake.pipelines.results.columns import rank_of

if TYPE_CHECKING:
    from trendlake.cep_core import AnyPlan, Pattern
    from trendlake.pipelines.authoring.trial import Sample, TableSample
    from trendlake.pipelines.check import Check
    from trendlake.pipelines.contracts.sources import Sources


@dataclass(frozen=True)
class TryOptions:
    """Options of the command. `since`, `until`: both or none; `events`: files instead of the source's table, `tables`:
    of tables by name, each as NAME=FILE."""

    pattern: str
    since: str | None
    until: str | None
    events: tuple[Path, ...]
    tables: tuple[str, ...]
    most: int
    limit: int
    as_json: bool
    ids: bool = False

    @property
    def interval(self) -> tuple[str, str] | None:
        """Start and end as they are typed; None without --from and --to. Raises BadTimeError."""
        from trendlake.pipelines.errors import BadTimeError

        if self.since is None or self.until is None:
            if self.since or self.until:
                raise BadTimeError("one end of the interval is missing", hint="give --from and --to, or neither")
            return None
        for text, option in ((self.since, "--from"), (self.until, "--to")):
            micros_of(text, option)
        return self.since, self.until


def try_pattern(options: TryOptions, profile: str | None, folder: Path | None) -> dict[str, Any] | None:
    """Runs the pattern and prints its rows, or returns them as a document. Raises SampleTooLargeError, and what a run
    raises for errors of the pattern, the contract and the source."""
    from trendlake.cep_core import PatternWarning
    from trendlake.pipelines.authoring.advice import certain
    from trendlake.pipelines.authoring.validate import compiled
    from trendlake.pipelines.contracts.pattern_source import sources_of

    place, typed = find_place(folder, profile), options.interval
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)
        pattern, plan = compiled(place.project, place.project.pattern_path(options.pattern))
    interval = None if typed is None else interval_of(pattern, *typed, remark=not options.as_json)
    sources = sources_of(place.project, pattern)
    files = _files(options, pattern.name, sources)
    began = time.monotonic()
    with doing(f"trying {pattern.name}"):
        trial, where = _sample(options, place, (pattern, plan, sources), files, interval)
    notes = [
        *plan.warnings,
        *trial.notes,
        *(note for table in sources.every for note in certain(table.contract.advice)),
    ]
    if options.as_json:
        return _document(pattern, plan, trial, where) | {"notes": notes}
    _print(options, pattern, plan, trial, where, notes, time.monotonic() - began)
    return None


def _files(options: TryOptions, pattern: str, sources: Sources) -> dict[str, tuple[Path, ...]]:
    """The files of each table that has some, by the table's name. Raises ProjectError."""
    from trendlake.pipelines.authoring.trial_file import files_of
    from trendlake.pipelines.errors import ProjectError

    typed = list(options.tables)
    names = [table.contract.name for table in sources.every]
    if options.events:
        if sources.united:
            hint = " ".join(f"--table {name}=FILE" for name in sources.names)
            raise ProjectError(
                f"--events {options.events[0]}: {pattern} reads events of {', '.join(sources.names)}",
                hint=f"give {hint}",
            )
        typed[:0] = [f"{sources.contract.name}={file}" for file in options.events]
    return files_of(typed, names, pattern)


def _sample(
    options: TryOptions,
    place: Place,
    read: tuple[Pattern, AnyPlan, Sources],
    files: Mapping[str, tuple[Path, ...]],
    interval: tuple[int, int] | None,
) -> tuple[Sample, str]:
    """The sample, and where it is from."""
    from trendlake.pipelines.authoring.trial import sample
    from trendlake.pipelines.authoring.trial_chain import file_of_chain
    from trendlake.pipelines.authoring.trial_file import FileOfRows, TrialFile

    pattern, plan, sources = read
    if files and not sources.named and (options.events or not sources.contract.made_id):  # without Spark's package
        contract = sources.contract
        lateness = contract.lateness_us or 0 if pattern.consistency == "strong" else 0
        if options.events:
            file = file_of_chain(place.project, plan, contract, options.events, lateness)
        else:
            begins = (plan.interval_start,) if plan.interval_start else ()
            file = TrialFile(plan, FileOfRows(files[contract.name], contract, lateness, begins))
        return sample(plan, file, options.most, interval), file.where
    from trendlake.pipelines.authoring.trial_table import QUICK
    from trendlake.pipelines.authoring.trial_tables import TrialTables
    from trendlake.pipelines.runs.run import Run

    quick = place.profile.model_copy(update={"spark": QUICK | place.profile.spark})
    with session(Place(place.project, quick), f"trendlake try {options.pattern}") as lake:
        times = interval or (0, 1)
        run = Run(lake, place.project, quick, pattern, sources.of_plan(plan), plan, "try", *times)
        tables = TrialTables.of(run, files)
        return sample(run.plan, tables, options.most, interval), tables.where


def _print(
    options: TryOptions, pattern: Pattern, plan: AnyPlan, trial: Sample, where: str, notes: list[str], seconds: float
) -> None:
    rows = _ranked(plan, trial)
    console.print(f"{pattern.name} on {where}: tried, nothing written", soft_wrap=True)
    for head, words in _coverage_lines(plan, trial):
        console.print(f"{head:<10}{words}", soft_wrap=True)
    for note in notes:
        console.print(f"{'note':<10}{note}", soft_wrap=True)
    console.print(f"{'seconds':<10}{seconds:.1f}")
    if not rows:
        console.print("no rows: the pattern finds nothing in these events")
        return
    shown = rows[: options.limit]
    which = (
        plural(len(rows), "row")
        if len(shown) == len(rows)
        else f"{len(shown):,} of {plural(len(rows), 'row')} (--limit)"
    )
    console.print(table_of(plan, f"{pattern.name}: {which}", shown, zone=pattern.time_zone, ids=options.ids))


def _ranked(plan: AnyPlan, trial: Sample) -> list[dict[str, Any]]:
    """The rows in the order of `trendlake show`."""
    order = [(rank_of(plan), "descending"), *((name, "ascending") for name in plan.key if _sortable(plan, name))]
    rows: list[dict[str, Any]] = trial.rows.sort_by(order).to_pylist()
    return rows


def _sortable(plan: AnyPlan, name: str) -> bool:
    import pyarrow as pa

    return not pa.types.is_nested(plan.result_schema.field(name).type)


def _coverage_lines(plan: AnyPlan, trial: Sample) -> list[tuple[str, str]]:
    """Lines about the rows and windows in the sample and those left out: heading and text."""
    beyond = f"{plural(trial.outside, 'window')} outside the years 1 to 9999, which no run computes"
    outside = [("left out", beyond)] if trial.outside else []
    if not trial.windows:
        return [
            ("took", "nothing: " + ("no event has a time" if not trial.there else "no window ends there")),
            *outside,
        ]
    start, end = plan.windows.span(trial.windows)
    newest = end if trial.newest is None else min(end, trial.newest)
    span = f"up to {_at(newest)}" if plan.windows.endless else f"{_at(start)} to {_at(end)}"
    windows = plural(len(trial.windows), "window")
    if trial.groups is not None:
        some = f"{trial.groups.taken:,} of {plural(trial.groups.there, 'group')} of {', '.join(trial.groups.columns)}"
        events = f"{trial.good:,} of {plural(trial.groups.events, 'event')}"
        outside.insert(0, ("sample", f"{some}, each with all its events: {events}; --max-events takes more"))
    lines = [("took", f"{trial.taken:,} of {plural(trial.there, 'row')}, all of {windows}: {span} (UTC)")]
    older = max(0, min(trial.windows.start, trial.every.stop) - trial.every.start)
    newer = max(0, trial.every.stop - max(trial.windows.stop, trial.every.start))
    if older or newer:
        sides = [plural(count, f"{which} window") for count, which in ((older, "older"), (newer, "newer")) if count]
        lines.append(("left out", f"{' and '.join(sides)}: --from and --to, or --max-events, take them in"))
    lines += outside
    lines += [("broken", _broken_line(table, len(trial.tables) > 1)) for table in trial.tables if table.broken]
    lines += [("lookup", _missing_line(check)) for check in trial.lookups]
    if trial.open and trial.newest is not None:
        lines.append(("open", f"{plural(trial.open, 'window')} not yet over at the newest event, {_at(trial.newest)}"))
    return lines


def _broken_line(table: TableSample, named: bool) -> str:
    reasons = ", ".join(f"{name} {count:,}" for name, count in sorted(table.broken.items()))
    rows = plural(sum(table.broken.values()), "row")
    whose = f"of {table.name} that broke its contract" if named else "that broke the contract"
    return f"{rows} {whose} did not count: {reasons}"


def _missing_line(check: Check) -> str:
    """Of the check of a lookup."""
    return f"{check.observed}{f'; {check.expected} is allowed: a run publishes nothing' if check.failed else ''}"


def _document(pattern: Pattern, plan: AnyPlan, trial: Sample, where: str) -> dict[str, Any]:
    start, end = plan.windows.span(trial.windows) if trial.windows else (None, None)
    return {
        "pattern": pattern.name,
        "source": where,
        "windows": len(trial.windows),
        "from": None if start is None or plan.windows.endless else _moment(start),
        "to": None if end is None else _moment(end),
        "windows_of_source": len(trial.every),
        "windows_outside": trial.outside,
        "open_windows": trial.open,
        "rows_taken": trial.taken,
        "rows_of_source": trial.there,
        "events": trial.good,
        "groups": None if trial.groups is None else asdict(trial.groups),
        "broken": _broken(trial),
        "tables": [_table(table) for table in trial.tables],
        "lookups": [check.data for check in trial.lookups],
        "unjudged": [],
        "rows": _ranked(plan, trial),
    }


def _table(table: TableSample) -> dict[str, Any]:
    return {
        "table": table.name,
        "source": table.where,
        "reference": table.reference,
        "rows_taken": table.rows,
        "rows_of_table": table.there,
        "broken": dict(table.broken),
    }


def _broken(trial: Sample) -> dict[str, int]:
    """How many rows broke each rule first; of several tables by `table: rule`."""
    named = len(trial.tables) > 1
    counts = [(table, rule, count) for table in trial.tables for rule, count in table.broken.items()]
    return {f"{table.name}: {rule}" if named else rule: count for table, rule, count in counts}


def _moment(micros: int) -> datetime:
    from trendlake.cep_core.events.windows import moment

    return moment(micros)


def _at(micros: int) -> str:
    from trendlake.cep_core.events.windows import clock_text

    return clock_text(micros, " ").removesuffix(":00")
