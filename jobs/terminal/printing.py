"""Prints results, run records, plans and the outcome of validation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from cep_core import AnyPlan, compile_plan, load_pattern
from cep_core.errors import TrendlakeError
from jobs.terminal.json_output import of_error
from jobs.terminal.outcome import Verdict
from jobs.terminal.workspace import Place
from pipelines.error_text import plural
from pipelines.errors import ProjectError
from pipelines.project.paths import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LISTED = 6
"""How many items of a list are shown."""
ID_WIDTH = 20
"""How many characters of an event id are shown."""
NARROW = 150
"""Characters of a line where stdout is no terminal, so that tables in a log are not wrapped."""

console = Console(highlight=False, markup=False)
if not console.is_terminal:
    console.width = NARROW


def print_validation(project: Project, files: list[Path]) -> Verdict:
    """Prints one line for each valid file, and every error of the others."""
    from pipelines.authoring.validate import check_files

    documents = []
    for path, error, warnings in check_files(project, files):
        if error is None:
            console.print(f"ok    {path}")
        else:
            console.print(f"wrong {path}")
            console.print(str(error), soft_wrap=True)
        for warning in warnings:
            console.print(f"note  {warning}", soft_wrap=True)
        mistake = error and str(error)
        documents.append(
            {"file": path, "good": error is None, "error": mistake, "mistakes": _each(error), "notes": warnings}
        )
    return Verdict({"files": documents}, good=all(document["good"] for document in documents))


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
    from cep_core import draw, explain
    from pipelines.authoring.validate import compiled

    pattern, plan = compiled(project, project.pattern_path(name))
    text = explain(plan)
    console.print(text, soft_wrap=True)
    console.print(f"on Spark  cut by {', '.join(plan.unit_key) or 'nothing'} and by time, from {pattern.source}")
    if picture is not None:
        drawn = draw(plan, pattern.name)
        try:
            picture.write_text(drawn, encoding="utf-8")
        except OSError as error:
            raise ProjectError(f"{picture} cannot be written: {error.strerror or error}") from None
        console.print(f"picture   {picture}", soft_wrap=True)
    return {
        "pattern": pattern.name, "kind": plan.kind, "source": pattern.source, "plan_hash": plan.hash,
        "columns": plan.columns, "cut_by": plan.unit_key, "key": plan.key,
        "result_columns": {field.name: str(field.type) for field in plan.result_schema},
        "warnings": plan.warnings, "explained": text.splitlines(), "picture": picture,
    }  # fmt: skip


def print_results(
    place: Place, spark: SparkSession, pattern: str, limit: int, as_of: str | None = None, *, as_json: bool = False
) -> dict[str, Any] | None:  # fmt: skip
    """Prints the rows with the largest counts, or the latest rows of a pattern that counts nothing; of the version or
    time `as_of`, if given. With `as_json`, returns them as a document and prints nothing."""
    from pyspark.sql.functions import lit

    from pipelines.contracts.pattern_source import source_contract
    from pipelines.delta.tables import read_at, read_if_there
    from pipelines.results.history import version_of
    from pipelines.spark.columns import column

    loaded = load_pattern(place.project.pattern_path(pattern))
    contract = source_contract(place.project, str(loaded.source), (loaded.name,))
    plan = compile_plan(loaded, contract.event_schema())
    path = place.warehouse.results(loaded.name)
    results = read_if_there(spark, path) if as_of is None else read_at(spark, path, version_of(spark, path, as_of))
    if results is None:
        raise ProjectError(f"{loaded.name} has no results yet", hint=f"run `trendlake run {loaded.name}`")
    there = set(results.columns)
    if not there >= set(plan.result_schema.names):
        missing = ", ".join(name for name in plan.result_schema.names if name not in there)
        message = f"the results of {loaded.name} are of an earlier form of the pattern, without {missing}"
        raise ProjectError(message, hint=f"run `trendlake run {loaded.name}`")
    ranked = results.orderBy(column(rank_of(plan)).desc_nulls_last(), *map(column, plan.key)).limit(limit)
    rows = [row.asDict(recursive=as_json) for row in ranked.select(*map(column, plan.result_schema.names)).collect()]
    which = "busiest" if rank_of(plan).endswith("_log10") else "latest"
    stale = results.where(~column("plan_hash").eqNullSafe(lit(plan.hash))).count()
    if as_json:
        about: dict[str, Any] = {"pattern": loaded.name, "table": path, "which": which, "rows_in_all": results.count()}
        return {**about, "stale_rows": stale, "rows": rows}
    console.print(table_of(plan, f"{loaded.name}: the {which} of {plural(results.count(), 'row')}", rows))
    if stale:
        note = f"{plural(stale, 'row')} of an earlier form of the pattern; `trendlake revise {loaded.name}` says which"
        console.print(note, soft_wrap=True)
    console.print(path, soft_wrap=True)
    return None


def rank_of(plan: AnyPlan) -> str:
    """The result column whose greatest values are shown first: the logarithm of a count, else the rows' time."""
    return plan.result_shape.rank or plan.owned(range(1))[0]


def table_of(plan: AnyPlan, title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """A table of result rows (all columns of `plan.result_schema`): with a frame on a terminal, plain in a pipe."""
    names = plan.result_schema.names
    hidden = {"window_end", "lifetime_end", *(f"{name}_log10" for name in names)}
    shown = [name for name in names if name not in hidden]
    table = Table(title=title, title_justify="left", **frame())
    for name in shown:
        kind = plan.result_schema.field(name).type
        left = pa.types.is_string(kind) or pa.types.is_list(kind)
        timed = pa.types.is_timestamp(kind)
        table.add_column(name, justify="left" if left else "right", no_wrap=timed, overflow="fold")
    for row in rows:
        table.add_row(*[_cell(row[name], row.get(f"{name}_log10")) for name in shown])
    return table


def frame() -> dict[str, Any]:
    """Settings of a rich table: lines on a terminal, none in a pipe."""
    return {} if console.is_terminal else {"box": None, "pad_edge": False}


def _cell(value: Any, log10: float | None) -> str:
    if value is None:
        return "" if log10 is None else f"~10^{log10:,.2f}"
    if isinstance(value, Decimal | int) and not isinstance(value, bool):
        return f"{int(value):,}"
    if isinstance(value, datetime):
        return _time(value)
    if isinstance(value, list):
        return _listed(value)
    return f"{value:,.2f}" if isinstance(value, float) else str(value)


def _listed(items: list[Any]) -> str:
    """The event ids of a list, or the number of nodes of a graph. Of a long list the middle is left out."""
    if items and isinstance(items[0], tuple):
        return f"{len(items):,} nodes"
    shown = [_short(str(item)) for item in items]
    return " ".join(shown if len(shown) <= LISTED else [*shown[: LISTED - 2], "…", shown[-1], f"({len(shown):,})"])


def _short(item: str) -> str:
    """An id of at most ID_WIDTH characters, cut in the middle: ids of one source often differ at their end only."""
    half = (ID_WIDTH - 1) // 2
    return item if len(item) <= ID_WIDTH else f"{item[: ID_WIDTH - 1 - half]}…{item[-half:]}"


def _time(value: datetime | None) -> str:
    """A time in UTC; Spark returns times in the machine's zone."""
    return "" if value is None else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def print_runs(
    place: Place, spark: SparkSession, pattern: str | None, limit: int, *, as_json: bool = False
) -> dict[str, Any] | None:  # fmt: skip
    """Prints the newest records of `trendlake_runs`. With `as_json`, returns them as a document and prints nothing."""
    from pipelines.runs.record import listed

    newest = listed(spark, place.warehouse, pattern, limit)
    if as_json:
        return {"records": [] if newest is None else [_record(row.asDict()) for row in newest.collect()]}
    if newest is None:
        console.print(f"no run yet in {place.warehouse.root}", soft_wrap=True)
        return None
    names = ("run_id", "pattern", "stage", "status", "rows_in", "rows_quarantined", "rows_out")
    changes = ("rows_inserted", "rows_updated", "rows_deleted")
    table = Table(title="Run records, newest first", title_justify="left")
    for name in (*names, "+ / ~ / -", "seconds", "finished (UTC)"):
        table.add_column(name, justify="right" if name.startswith("rows") or name == "seconds" else "left")
    rows = newest.collect()
    for row in rows:
        cells = ["" if row[name] is None else _cell(row[name], None) for name in names]
        changed = "" if row["rows_updated"] is None else " / ".join(f"{row[name]:,}" for name in changes)
        table.add_row(*cells, changed, f"{row['seconds']:.1f}", _time(row["finished_at"]))
    console.print(table)
    for row in rows:
        if row["error"]:
            console.print(f"{row['run_id']} {row['stage']}: {row['error']}", soft_wrap=True)
    return None


def _record(row: dict[str, Any]) -> dict[str, Any]:
    """A run record as a document: its columns of JSON text are parsed."""
    held = {name: json.loads(row[name]) for name in ("checks", "note", "basis") if row.get(name)}
    return row | held
