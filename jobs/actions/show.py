"""`trendlake show` and `trendlake runs`: rows of results, and run records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trendlake.cep_core.errors import TrendlakeError
from trendlake.jobs.actions.states import documents_of, print_repairs
from trendlake.jobs.terminal.lines import print_error, say
from trendlake.jobs.terminal.options import values_of
from trendlake.jobs.terminal.printing import cell, console, minute
from trendlake.jobs.terminal.rows import Rows, table_of, unknown_rows
from trendlake.jobs.terminal.workspace import Place, find_place, session
from trendlake.pipelines.error_text import in_words, plural
from trendlake.pipelines.errors import OtherFormError, ProjectError
from trendlake.pipelines.project.paths import upstream

if TYPE_CHECKING:
    from trendlake.cep_core import AnyPlan
    from trendlake.pipelines.lake.lake import Lake
    from trendlake.pipelines.results.named import NamedTable
    from trendlake.pipelines.results.read import Selection
    from trendlake.pipelines.revision.repairs import Repair
    from trendlake.pipelines.runs.intervals import LocalTimes


@dataclass(frozen=True)
class Shown:
    """Which rows `show` is asked for, as typed: `groups` are COLUMN=VALUE, `since` and `until` times, `as_of` a version
    or a time, `out` a file for all of them, `ids` asks for the ids of events."""

    limit: int = 10
    groups: Sequence[str] = ()
    since: str | None = None
    until: str | None = None
    columns: str | None = None
    as_of: str | None = None
    out: Path | None = None
    ids: bool = False


def show(pattern: str, shown: Shown, as_json: bool, profile: str | None, folder: Path | None) -> dict[str, Any] | None:
    """Shows rows of a pattern's results."""
    from trendlake.pipelines.results.named import table_named

    place = find_place(folder, profile)
    with session(place, f"trendlake show {pattern}") as lake:
        table = table_named(lake, place.project, pattern)
        if table.pattern is None:
            return print_table(lake, table, shown, as_json=as_json)
        return print_results(place, lake, pattern, shown, as_json=as_json)


def print_results(
    place: Place, lake: Lake, pattern: str, shown: Shown, *, as_json: bool = False
) -> dict[str, Any] | None:
    """Prints the rows with the largest counts, or the latest rows of a pattern that counts nothing; or writes them to
    `shown.out`. Then the states that are to be repaired, unless rows of the past are shown. With `as_json`, returns
    all this as a document and prints nothing."""
    from trendlake.pipelines.authoring.validate import compiled
    from trendlake.pipelines.lake.lake import exists
    from trendlake.pipelines.results.columns import ranking_of
    from trendlake.pipelines.results.history import version_of
    from trendlake.pipelines.results.named import no_results
    from trendlake.pipelines.results.read import read_rows
    from trendlake.pipelines.results.row_files import documents_of_rows, write_rows
    from trendlake.pipelines.runs.intervals import LocalTimes

    pattern = _file_of(place, pattern)
    loaded, plan = compiled(place.project, place.project.pattern_path(pattern))
    path = place.warehouse.results(loaded.name)
    selection, names = _selection(plan, shown, LocalTimes.of(loaded)), _columns(plan.result_schema.names, shown.columns)
    states = _states(place, lake, pattern)
    if not exists(lake, path):
        raise no_results(lake, place.project, pattern, loaded.name)
    version = None if shown.as_of is None else version_of(lake, path, shown.as_of)
    try:
        rows = read_rows(lake, path, plan, selection, version)
    except OtherFormError as error:
        error.hint = "; ".join(f"`trendlake {state.command}`" for state in states if state.command) or error.hint
        raise
    if shown.out is not None:
        write_rows(rows.table.select(names), shown.out)
    which = ranking_of(plan)
    if as_json:
        about = {"pattern": loaded.name, "table": path, "which": which, "rows_in_all": rows.total}
        documents = {"stale_rows": rows.stale, "rows": documents_of_rows(rows.table.select(names))}
        repairs = documents_of(states if version is None else [])
        return {**about, "rows_selected": rows.selected, **documents, "states": repairs, "out": shown.out}
    if shown.out is not None:
        console.print(f"wrote {plural(rows.table.num_rows, 'row')} to {shown.out}", soft_wrap=True)
    else:
        title = f"{loaded.name}: the {which} of {plural(rows.selected, 'row')}"
        columns = names if shown.columns else None
        console.print(
            table_of(plan, title, documents_of_rows(rows.table), columns, zone=loaded.time_zone, ids=shown.ids)
        )
    if version is None:
        if rows.stale and not any(state.state == "earlier_form" for state in states):
            say(f"{loaded.name}: {plural(rows.stale, 'row')} of an earlier form of the pattern")
        print_repairs(loaded.name, states)
    console.print(path, soft_wrap=True)
    return None


def _file_of(place: Place, name: str) -> str:
    """The pattern that `name` means, as a file names it: `results/rising` is that of the pattern whose table it is."""
    table = upstream(name)
    if table is None:
        return name
    return table if place.project.table_of(table) is not None else place.project.renamed(table) or table


def _states(place: Place, lake: Lake, pattern: str) -> list[Repair]:
    from trendlake.pipelines.results.ledger import read_ledger
    from trendlake.pipelines.revision.repairs import Repair, repairs
    from trendlake.pipelines.runs.run import prepare

    run = prepare(lake, place.project, place.profile, pattern, "show", 0, 1)
    try:
        ledger = read_ledger(run.lake, run.name, run.plan, run.sources.name)
        return repairs(run, ledger, run.newest())
    except TrendlakeError:
        raise
    except Exception as error:  # of the run record or the source: the rows can be shown
        return [Repair("not_known", None, f"what is to be repaired is not known: {in_words(error)}", None)]


def print_table(lake: Lake, table: NamedTable, shown: Shown, *, as_json: bool = False) -> dict[str, Any] | None:
    """As `print_results`, of a table that no file speaks of: its columns as they are, the rows published last first."""
    from trendlake.pipelines.lake.lake import exists
    from trendlake.pipelines.results.history import version_of
    from trendlake.pipelines.results.read import newest_rows
    from trendlake.pipelines.results.row_files import documents_of_rows, write_rows
    from trendlake.pipelines.revision.repairs import Repair

    if shown.groups or shown.since or shown.until:
        message = f"no file says what the columns of {table.name} mean: --group, --from and --to cannot be used"
        raise ProjectError(message, hint=f"`trendlake show {table.name} --out rows.csv` writes all rows")
    if not exists(lake, table.path):
        raise ProjectError(f"there is no table {table.name}", hint="`trendlake ls` lists the patterns")
    version = None if shown.as_of is None else version_of(lake, table.path, shown.as_of)
    rows, total = newest_rows(lake, table.path, None if shown.out else shown.limit, version)
    names = _columns(rows.schema.names, shown.columns)
    removed = f"reset {table.name}"
    text = "no file of the project speaks of it"
    states = [Repair("no_file", None, text, removed)] if version is None else []
    if shown.out is not None:
        write_rows(rows.select(names), shown.out)
    if as_json:
        about = {"pattern": None, "table": table.path, "which": "latest", "rows_in_all": total, "rows_selected": total}
        documents = {"stale_rows": 0, "rows": documents_of_rows(rows.select(names)), "states": documents_of(states)}
        return {**about, **documents, "out": shown.out}
    if shown.out is not None:
        console.print(f"wrote {plural(rows.num_rows, 'row')} to {shown.out}", soft_wrap=True)
    else:
        title = f"{table.name}: the latest of {plural(total, 'row')}"
        console.print(unknown_rows(title, documents_of_rows(rows.select(names)), names, ids=shown.ids))
    print_repairs(table.name, states)
    console.print(table.path, soft_wrap=True)
    return None


def _selection(plan: AnyPlan, shown: Shown, times: LocalTimes) -> Selection:
    from trendlake.pipelines.results.read import Selection, group_values

    start = None if shown.since is None else times.micros(shown.since, "--from")
    end = None if shown.until is None else times.micros(shown.until, "--to")
    groups = group_values(plan, values_of(shown.groups, "--group"), "--group")
    return Selection(groups, start, end, None if shown.out is not None else shown.limit)


def _columns(known: list[str], text: str | None) -> list[str]:
    """The `known` columns that `text` names, separated by commas; all of them if it is None. Raises ProjectError."""
    from trendlake.cep_core.errors import did_you_mean

    names = known if text is None else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise ProjectError(f"--columns: the results have no column '{name}'", hint=did_you_mean(name, known))
    return names


def runs(
    pattern: str | None, limit: int, as_json: bool, profile: str | None, folder: Path | None
) -> dict[str, Any] | None:
    """Shows the newest run records."""
    place = find_place(folder, profile)
    with session(place, "trendlake runs") as lake:
        return print_runs(place, lake, pattern, limit, as_json=as_json)


def print_runs(
    place: Place, lake: Lake, pattern: str | None, limit: int, *, as_json: bool = False
) -> dict[str, Any] | None:
    """Prints the newest records of `trendlake_runs`. With `as_json`, returns them as a document and prints nothing."""
    from trendlake.pipelines.lake.road import road_of
    from trendlake.pipelines.runs.record import newest_records
    from trendlake.pipelines.runs.stored_record import damage_of

    records = newest_records(lake, pattern, limit)
    if as_json:
        return {"records": [_record(record) for record in records or ()]}
    if records is None:
        console.print(f"no run yet in {place.warehouse.root}", soft_wrap=True)
        return None
    names = ("run_id", "pattern", "stage", "status", "rows_in", "rows_quarantined", "rows_out")
    texts = []
    for record in records:
        cells = ["" if record[name] is None else cell(record[name]) for name in names]
        seconds, end = record["seconds"], record["finished_at"]
        ended = ("" if seconds is None else f"{seconds:.1f}", "" if end is None else minute(end))
        texts.append((*cells, changes_of(record), road_of(record), *ended))
    columns = (*names, "+ / ~ / -", "where", "seconds", "finished (UTC)")
    right = [name for name in columns if name.startswith("rows") or name == "seconds"]
    console.print(Rows.of_a_list(columns, texts, right, "Run records, newest first"))
    for record in records:
        if record["error"]:
            console.print(f"{record['run_id']} {record['stage']}: {record['error']}", soft_wrap=True)
        if damage := damage_of(record):
            print_error(f"[RECORD_DAMAGED] {damage}")
    return None


def changes_of(record: Mapping[str, Any]) -> str:
    """`12 / 3 / -`: rows inserted, updated, deleted; `-` for what the stage does not count: a delivery deletes none."""
    counts = [record[name] for name in ("rows_inserted", "rows_updated", "rows_deleted")]
    if counts == [None, None, None]:
        return ""
    return " / ".join("-" if count is None else f"{count:,}" for count in counts)


def _record(record: dict[str, Any]) -> dict[str, Any]:
    """A run record as a document: its columns of JSON text are parsed; of a damaged record they stay texts."""
    from trendlake.pipelines.runs.stored_record import damage_of

    if damage := damage_of(record):
        print_error(f"[RECORD_DAMAGED] {damage}")
        return record
    stored_as_text = "checks", "note", "basis", "sources"
    return record | {name: json.loads(record[name]) for name in stored_as_text if record.get(name)}
