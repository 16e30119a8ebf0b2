"""`trendlake diff` and `trendlake history`: earlier versions of the results."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trendlake.cep_core import AnyPlan
from trendlake.jobs.terminal.options import values_of
from trendlake.jobs.terminal.printing import console, precision_of
from trendlake.jobs.terminal.rows import Column, Rows, Texts
from trendlake.jobs.terminal.times import micros_of
from trendlake.jobs.terminal.workspace import Place, find_place, session
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.results.columns import Reading

if TYPE_CHECKING:
    from trendlake.pipelines.lake.lake import Lake
    from trendlake.pipelines.runs.source_versions import TableAt, Versions


def _plan(place: Place, pattern: str) -> tuple[str, AnyPlan]:
    from trendlake.pipelines.authoring.validate import compiled

    loaded, plan = compiled(place.project, place.project.pattern_path(pattern))
    return loaded.name, plan


def diff(
    pattern: str, since: str, until: str, limit: int, as_json: bool, profile: str | None, folder: Path | None
) -> dict[str, Any] | None:
    """Compares the results of two versions or times."""
    place = find_place(folder, profile)
    name, plan = _plan(place, pattern)
    with session(place, f"trendlake diff {name}") as lake:
        return print_diff(lake, place.warehouse.results(name), plan, (since, until), limit, as_json=as_json)


def print_diff(
    lake: Lake, path: str, plan: AnyPlan, asked: tuple[str, str], limit: int, *, as_json: bool = False
) -> dict[str, Any] | None:
    """Prints the rows that differ and the commits between the two versions. With `as_json`, returns them as a document
    and prints nothing."""
    from trendlake.pipelines.results.history import between, reasons, version_of, versions_read

    first, last = (version_of(lake, path, text) for text in asked)
    counts, rows = between(lake, path, plan, first, last, limit)
    if as_json:
        documents = [dataclasses.asdict(row) for row in rows]
        commits = [{"version": item.version, **item.note} for item in reasons(lake, path, first, last)]
        return {"from": first, "to": last, "counts": counts, "rows": documents, "commits": commits}
    summary = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
    reading = Reading.of(plan)
    shown = [item for item in reading.shown if item not in plan.key]
    keys = reading.chosen(plan.key)
    cells = tuple(
        (
            row.kind,
            _change(reading, shown, row.before, row.after),
            *(_text(reading, row.after or row.before or {}, item) for item in keys),
        )
        for row in rows
    )
    columns = tuple(Column(heading, right=False) for heading in ("change", "values", *keys))
    console.print(Rows(f"version {first} to {last}: {summary}", columns, cells))
    read = [versions_read(lake, path, version) for version in (first, last)]
    if read[0] is not None and read[1] is not None and read[1].named:
        console.print(changed_versions(read[0], read[1]), soft_wrap=True)
    for commit in reasons(lake, path, first, last):
        console.print(_why(commit.version, commit.note), soft_wrap=True)
    return None


def changed_versions(before: Versions, after: Versions) -> str:
    """`orders 11 -> 12, payments 7 (same)`, by table; `(another table)` where one was another one in between."""
    return ", ".join(_changed_version(before, table) for table in after.tables)


def _changed_version(before: Versions, after: TableAt) -> str:
    if after.name not in before.names:
        return f"{after.name} {after.version} (new)"
    old = before.at(after.name)
    ids = old.table_id, after.table_id
    if None not in ids and not after.same_table(old):
        return f"{after.name} {old.version} -> {after.version} (another table)"
    if old.version == after.version:
        return f"{after.name} {after.version} (same)"
    return f"{after.name} {old.version} -> {after.version}"


def history(
    pattern: str, groups: list[str], window: str, as_json: bool, profile: str | None, folder: Path | None
) -> dict[str, Any] | None:
    """Shows every value that a group's rows have had in a window."""
    place = find_place(folder, profile)
    name, plan = _plan(place, pattern)
    texts = values_of(groups, "--group")
    micros = micros_of(window, "--window")
    with session(place, f"trendlake history {name}") as lake:
        return print_history(lake, place.warehouse.results(name), plan, texts, micros, as_json=as_json)


def print_history(
    lake: Lake, path: str, plan: AnyPlan, groups: Mapping[str, str], time_us: int, *, as_json: bool = False
) -> dict[str, Any] | None:
    """Prints a line for each value with the commit that wrote it. With `as_json`, returns them as a document and prints
    nothing."""
    from trendlake.pipelines.lake.lake import exists
    from trendlake.pipelines.results.history import values
    from trendlake.pipelines.results.read import group_values

    if not exists(lake, path):
        raise ProjectError(f"there are no results yet in {path}")
    versions = values(lake, path, plan, group_values(plan, groups, "--group"), time_us)
    if as_json:
        documents = [{"version": value.commit.version, **value.commit.note, "row": value.row} for value in versions]
        return {"values": documents}
    if not versions:
        console.print("no version of the results has such a row")
    reading = Reading.of(plan)
    for value in versions:
        text = "retracted" if value.row is None else _change(reading, reading.shown, None, value.row)
        console.print(f"{_why(value.commit.version, value.commit.note)}: {text}", soft_wrap=True)
    return None


def _why(version: int, note: Mapping[str, Any]) -> str:
    if "source_version" not in note:
        return f"version {version}"
    what = "revision" if note.get("stage") == "revise" else "run"
    if note.get("sources") is not None:
        read = " ".join(f"{name}@{number}" for name, (number, _) in note["sources"].items())
        return f"version {version}, {what} {note['run_id']} of {read}"
    return f"version {version}, {what} {note['run_id']} of the source's version {note['source_version']}"


def _change(
    reading: Reading, names: Sequence[str], before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> str:
    if before is None or after is None:
        row = after or before or {}
        return ", ".join(f"{name} {_text(reading, row, name)}" for name in names)
    changed = [name for name in names if _stored(before, name) != _stored(after, name)]
    texts = [(name, _text(reading, before, name), _text(reading, after, name)) for name in changed]
    parts = [f"{name} {old} -> {new if new != old else f'{new}, others'}" for name, old, new in texts]  # as many events
    return ", ".join(parts) or "plan only"


def _stored(row: Mapping[str, Any], name: str) -> tuple[Any, Any]:
    """A value, and the logarithm of a count that is too large to be one."""
    return row.get(name), row.get(f"{name}_log10")


def _text(reading: Reading, row: Mapping[str, Any], name: str) -> str:
    if _stored(row, name) == (None, None):
        return "NULL"
    return Texts(reading, precision=precision_of([row.get(name)])).of(row, name)
