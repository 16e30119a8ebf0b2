"""Prints result rows, plans and the outcome of validation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.console import Console

from trendlake.cep_core.errors import PatternErrors, TrendlakeError
from trendlake.cep_core.events.zones import zone as zone_of
from trendlake.jobs.terminal.json_output import of_error
from trendlake.jobs.terminal.verdict import Verdict
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.project.paths import Project, printable

LISTED = 6
"""How many values of a list are shown."""
ID_WIDTH = 20
"""How many characters of an event id are shown where there is no room for more."""
NARROW = 150
"""Characters of a line where stdout is no terminal, so that tables in a log are not wrapped."""

console = Console(highlight=False, markup=False)
if not console.is_terminal:
    console.width = NARROW


def print_validation(project: Project, files: list[Path]) -> Verdict:
    """Prints one line for each valid file, and every error of the others; one that several files have, as the readers
    of a pattern's results do, once."""
    from trendlake.pipelines.authoring.validate import check_files

    documents, shown = [], set[object]()
    for path, error, warnings in check_files(project, files):
        file = printable(path)
        if error is None:
            console.print(f"ok    {file}")
        else:
            console.print(f"wrong {file}")
            errors = {_identity(one): one for one in (error.errors if isinstance(error, PatternErrors) else [error])}
            for identity, one in errors.items():
                if identity not in shown:
                    console.print(str(one), soft_wrap=True)
            if repeated := len(errors.keys() & shown):
                console.print(f"      {plural(repeated, 'error')} shown above")
            shown.update(errors)
        for warning in warnings:
            console.print(f"note  {warning}", soft_wrap=True)
        mistake = error and str(error)
        documents.append(
            {"file": file, "good": error is None, "error": mistake, "mistakes": _each(error), "notes": warnings}
        )
    return Verdict({"files": documents}, good=all(document["good"] for document in documents))


def _identity(error: TrendlakeError) -> object:
    """Equal for errors that say the same of one place."""
    place = error.place
    where = place and (Path(place.file).resolve(), place.line, place.column)
    return error.code, error.message, where


def _each(error: TrendlakeError | None) -> list[dict[str, Any]]:
    if error is None:
        return []
    document = of_error(error)
    several: list[dict[str, Any]] = document.get("errors", [document])
    return several


def print_plan(project: Project, name: str, picture: Path | None = None) -> dict[str, Any]:
    """Prints the compiled plan and how the pipelines shard its events. Draws its automaton as SVG into `picture`.

    Raises ProjectError if `picture` cannot be written.
    """
    from trendlake.cep_core import draw, explain
    from trendlake.pipelines.authoring.advice import certain, notes_on
    from trendlake.pipelines.authoring.shared_work import shared_work
    from trendlake.pipelines.authoring.validate import compiled

    pattern, plan = compiled(project, project.pattern_path(name))
    text = explain(plan)
    console.print(text, soft_wrap=True)
    about_columns = [one for one in plan.advice if one.columns]
    orders = [note for table in pattern.tables for note in notes_on(project, table, about_columns)]
    notes = [*plan.warnings, *certain(plan.advice), *orders]
    for note in orders:
        console.print(f"note      {note}", soft_wrap=True)
    by_time = "" if plan.windows.endless else " and by time"
    console.print(
        f"on Spark  cut by {', '.join(plan.unit_key) or 'nothing'}{by_time}, from {', '.join(pattern.tables)}"
    )
    shared = shared_work(project, pattern, _batches_rule(project))
    for line in shared.lines() if shared else ():
        console.print(line, soft_wrap=True)
    if picture is not None:
        drawn = draw(plan, pattern.name)
        try:
            picture.write_text(drawn, encoding="utf-8")
        except OSError as error:
            raise ProjectError(f"{picture} cannot be written: {error.strerror or error}") from None
        console.print(f"picture   {picture}", soft_wrap=True)
    return {
        "pattern": pattern.name,
        "kind": plan.kind,
        "source": pattern.source,
        **({} if pattern.sources is None else {"sources": pattern.tables}),
        "plan_hash": plan.hash,
        "columns": plan.columns,
        "cut_by": plan.unit_key,
        "key": plan.key,
        "result_columns": {field.name: str(field.type) for field in plan.result_schema},
        "warnings": notes,
        "explained": text.splitlines(),
        "picture": picture,
        "shared": shared.about() if shared else None,
    }


def _batches_rule(project: Project) -> str | None:
    """The `batches` of the profile; None where no profile can be read: a pattern is explained without one."""
    from trendlake.pipelines.errors import ProfileError
    from trendlake.pipelines.project.profile import load_profile

    try:
        return load_profile(project).batches
    except ProfileError:
        return None


PLAIN_FRAME: Mapping[str, Any] = {"box": None, "pad_edge": False}
"""Settings of a rich table without lines."""


def frame() -> Mapping[str, Any]:
    """Settings of a rich table: lines on a terminal, none in a pipe."""
    return {} if console.is_terminal else PLAIN_FRAME


def cell(value: Any, log10: float | None = None, zone: str | None = None, precision: str = "minutes") -> str:
    """A value as people read it; `log10`: of a count that is too large to be written out; `zone`: of the clock of
    times, which are written to this precision."""
    if value is None:
        return "" if log10 is None else f"~10^{log10:,.2f}"
    if isinstance(value, Decimal | int) and not isinstance(value, bool):
        return f"{value:,}" if value != int(value) else f"{int(value):,}"
    if isinstance(value, datetime):
        return written(value, zone, precision)
    if isinstance(value, list):
        return listed(value)
    return _fraction(value) if isinstance(value, float) else str(value)


def _fraction(value: float) -> str:
    """Two decimals; of a number that those would make 0, its first digits."""
    return f"{value:.3g}" if 0 < abs(value) < 0.005 else f"{value:,.2f}"


def listed(items: Sequence[Any], most: int | None = LISTED) -> str:
    """The values of a list, or the number of nodes of a graph. Of one with more than `most` the middle is left out."""
    if items and isinstance(items[0], tuple | dict):
        return plural(len(items), "node")
    shown = [cell(item) for item in items]
    if most is None or len(shown) <= most:
        return ", ".join(shown)
    return f"{', '.join([*shown[: most - 2], '…', shown[-1]])} ({len(shown):,})"


def shortened(item: str) -> str:
    """An id of at most ID_WIDTH characters, cut in the middle: ids of one source often differ at their end only."""
    half = (ID_WIDTH - 1) // 2
    return item if len(item) <= ID_WIDTH else f"{item[: ID_WIDTH - 1 - half]}…{item[-half:]}"


def precision_of(values: Iterable[Any]) -> str:
    """The coarsest of minutes, seconds, milliseconds and microseconds that leaves no time out."""
    rest = {(value.second, value.microsecond) for value in values if isinstance(value, datetime)} - {(0, 0)}
    if not rest:
        return "minutes"
    parts = {part for _, part in rest}
    return "seconds" if parts == {0} else "microseconds" if any(part % 1000 for part in parts) else "milliseconds"


def written(value: datetime, zone: str | None = None, precision: str = "minutes") -> str:
    """A time in UTC, or on the clock of a zone with its offset; Spark gives times in the machine's zone."""
    if zone is not None:
        return value.astimezone(zone_of(zone)).isoformat(" ", precision)
    return value.astimezone(UTC).isoformat(" ", precision).removesuffix("+00:00")


def minute(value: datetime | None) -> str:
    """The minute of a time in UTC."""
    return "" if value is None else written(value)
