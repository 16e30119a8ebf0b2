"""`trendlake try`: a pattern over a slice of its source, in this process, written nowhere."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.terminal.printing import console, rank_of, table_of
from jobs.terminal.times import micros_of
from jobs.terminal.workspace import Place, find_place, session
from pipelines.error_text import plural

if TYPE_CHECKING:
    from cep_core import AnyPlan, Pattern
    from pipelines.authoring.trial import Sample
    from pipelines.contracts.contract import Contract


@dataclass(frozen=True)
class Asked:
    """What the command was told. `since`, `until`: both or none; `events`: a file in place of the source's table."""

    pattern: str
    since: str | None
    until: str | None
    events: Path | None
    most: int
    limit: int
    as_json: bool

    @property
    def interval(self) -> tuple[int, int] | None:
        """Microseconds. Raises BadTimeError."""
        from pipelines.errors import BadTimeError

        if self.since is None or self.until is None:
            if self.since or self.until:
                raise BadTimeError("one end of the interval is missing", hint="give --from and --to, or neither")
            return None
        start, end = micros_of(self.since, "--from"), micros_of(self.until, "--to")
        if start >= end:
            raise BadTimeError("the interval is empty: --from must be before --to")
        return start, end


def try_pattern(asked: Asked, profile: str | None, folder: Path | None) -> dict[str, Any] | None:
    """Raises what a run raises for mistakes of pattern, contract and source; SampleTooLargeError."""
    from cep_core import PatternWarning
    from pipelines.authoring.validate import compiled
    from pipelines.contracts.pattern_source import source_contract

    place, interval = find_place(folder, profile), asked.interval
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)
        pattern, plan = compiled(place.project, place.project.pattern_path(asked.pattern))
    contract = source_contract(place.project, str(pattern.source), (pattern.name,))
    began = time.monotonic()
    if asked.events is not None:
        found, where = _of_file(asked.events, asked.most, pattern, plan, contract, interval), f"{asked.events}"
    else:
        found, where = _of_table(asked, place, interval)
    if asked.as_json:
        return _document(pattern, plan, found, where)
    _print(asked, pattern, plan, found, where, time.monotonic() - began)
    return None


def _of_file(
    file: Path, most: int, pattern: Pattern, plan: AnyPlan, contract: Contract, interval: tuple[int, int] | None
) -> Sample:
    from pipelines.authoring.trial import sample
    from pipelines.authoring.trial_file import FileOfEvents

    late = contract.lateness_us or 0 if pattern.consistency == "strong" else 0
    return sample(plan, FileOfEvents(file, contract, plan, late), most, interval)


def _of_table(asked: Asked, place: Place, interval: tuple[int, int] | None) -> tuple[Sample, str]:
    from pipelines.authoring.trial import sample
    from pipelines.authoring.trial_table import QUICK, TableOfEvents
    from pipelines.runs.run import prepare

    quick = place.profile.model_copy(update={"spark": QUICK | place.profile.spark})
    with session(Place(place.project, quick), f"trendlake try {asked.pattern}") as spark:
        run = prepare(spark, place.project, quick, asked.pattern, "try", *(interval or (0, 1)))
        source = TableOfEvents(run)
        return sample(run.plan, source, asked.most, interval), f"{run.contract.name} at version {source.version}"


def _print(asked: Asked, pattern: Pattern, plan: AnyPlan, found: Sample, where: str, seconds: float) -> None:
    rows = _ranked(plan, found)
    console.print(f"{pattern.name} on {where}: tried here, written nowhere", soft_wrap=True)
    for head, words in _words(plan, found):
        console.print(f"{head:<10}{words}", soft_wrap=True)
    for warning in plan.warnings:
        console.print(f"{'note':<10}{warning}", soft_wrap=True)
    console.print(f"{'seconds':<10}{seconds:.1f}")
    if not rows:
        console.print("no rows: the pattern finds nothing in these events")
        return
    shown = rows[: asked.limit]
    which = (
        plural(len(rows), "row")
        if len(shown) == len(rows)
        else f"{len(shown):,} of {plural(len(rows), 'row')} (--limit)"
    )
    console.print(table_of(plan, f"{pattern.name}: {which}", shown))


def _ranked(plan: AnyPlan, found: Sample) -> list[dict[str, Any]]:
    """As `trendlake show` orders them."""
    order = [(rank_of(plan), "descending"), *((name, "ascending") for name in plan.key if _sortable(plan, name))]
    rows: list[dict[str, Any]] = found.rows.sort_by(order).to_pylist()
    return rows


def _sortable(plan: AnyPlan, name: str) -> bool:
    import pyarrow as pa

    return not pa.types.is_nested(plan.result_schema.field(name).type)


def _words(plan: AnyPlan, found: Sample) -> list[tuple[str, str]]:
    """What was taken and what was left out, a line each."""
    if not found.windows:
        return [("took", "nothing: " + ("no event has a time" if not found.there else "no window ends there"))]
    start, end = plan.windows.span(found.windows)
    span = f"up to {_at(end)}" if plan.windows.endless else f"{_at(start)} to {_at(end)}"
    windows = plural(len(found.windows), "window")
    told = [("took", f"{found.taken:,} of {plural(found.there, 'row')}, all of {windows}: {span} (UTC)")]
    older = max(0, min(found.windows.start, found.every.stop) - found.every.start)
    newer = max(0, found.every.stop - max(found.windows.stop, found.every.start))
    if older or newer:
        sides = [plural(count, f"{which} window") for count, which in ((older, "older"), (newer, "newer")) if count]
        told.append(("left out", f"{' and '.join(sides)}: --from and --to, or --max-events, take them in"))
    if found.broken:
        reasons = ", ".join(f"{name} {count:,}" for name, count in sorted(found.broken.items()))
        told.append(
            ("broken", f"{plural(sum(found.broken.values()), 'row')} that broke the contract did not count: {reasons}")
        )
    if found.unjudged:
        told.append(("unjudged", f"rules that only a run judges: {', '.join(found.unjudged)}"))
    if found.open and found.newest is not None:
        told.append(("open", f"{plural(found.open, 'window')} not yet over at the newest event, {_at(found.newest)}"))
    return told


def _document(pattern: Pattern, plan: AnyPlan, found: Sample, where: str) -> dict[str, Any]:
    start, end = plan.windows.span(found.windows) if found.windows else (None, None)
    return {
        "pattern": pattern.name, "source": where, "windows": len(found.windows),
        "from": None if start is None or plan.windows.endless else _moment(start),
        "to": None if end is None else _moment(end),
        "windows_of_source": len(found.every), "open_windows": found.open, "rows_taken": found.taken,
        "rows_of_source": found.there, "events": found.good, "broken": dict(found.broken),
        "unjudged": list(found.unjudged), "rows": _ranked(plan, found),
    }  # fmt: skip


def _moment(micros: int) -> datetime:
    from cep_core.events.windows import moment

    return moment(micros)


def _at(micros: int) -> str:
    return f"{_moment(micros):%Y-%m-%d %H:%M:%S}".removesuffix(":00")
