"""A file of events, taken on as a source: its first contract, with the types, times and id that its values allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from pipelines.authoring.scaffold import Roles, check_roles, new_source, usable_columns
from pipelines.contracts.column_names import refuse_column_names
from pipelines.contracts.contract import load_contract
from pipelines.contracts.time_formats import ISO, UTC, TimeFormat, format_fault, zone_fault
from pipelines.errors import ContractErrors, ProjectError
from pipelines.ingest.readers.cells import is_text
from pipelines.ingest.readers.key_inference import Key, examine_key
from pipelines.ingest.readers.read_once import FileCells, read_once
from pipelines.ingest.readers.time_inference import TimeColumn, has_clock, time_columns
from pipelines.project.paths import Project

MOMENT = pa.timestamp("us", UTC)


@dataclass(frozen=True)
class TimeOptions:
    """What the user states of the times of a file: their format, and the zone of those that state no offset."""

    text_format: str | None = None
    zone: str | None = None


def new_source_of_file(
    project: Project, name: str, sample: Path, roles: Roles, options: TimeOptions
) -> tuple[Path, list[str]]:  # fmt: skip
    """A contract for the source `name`, with the columns of the file `sample`; and what to tell the user. Nothing is
    written for a file that ingestion would refuse by such a contract.

    Raises ProjectError (columns that cannot have their roles, times that can be read in two ways), SourceFileError,
    ContractErrors.
    """
    _check_options(options)
    with read_once(sample) as file:
        columns, times, notes = _columns(file, roles, options)
    path = new_source(project, name, columns, roles, times)
    load_contract(path)
    return path, notes


def _columns(
    file: FileCells, roles: Roles, options: TimeOptions
) -> tuple[pa.Schema, dict[str, TimeFormat], list[str]]:  # fmt: skip
    """The columns that the contract gives a file, the formats and zones of its times, and what to tell the user. Raises
    as `new_source_of_file`."""
    columns = file.schema
    refuse_column_names(file.path, columns.names)
    check_roles(columns, roles)
    texts = [column.name for column in columns if is_text(column.type)]
    moments = [column.name for column in columns if pa.types.is_timestamp(column.type)]
    time_columns = _time_columns(file, list(dict.fromkeys([roles.event_time, *moments, *texts])), roles, options)
    times, notes = _times(time_columns, roles)
    types = {one: MOMENT if has_clock(how.format) else pa.date32() for one, how in times.items()}
    types[roles.event_time] = MOMENT
    if len(roles.id_columns) == 1:  # as it is written: an id 007 is not 7
        types[roles.id_columns[0]] = pa.string()
    columns = pa.schema([column.with_type(types.get(column.name, column.type)) for column in columns])
    zoned = [
        one for one in time_columns if time_columns[one].zoneless and pa.types.is_timestamp(columns.field(one).type)
    ]
    times |= {one: TimeFormat(times.get(one, TimeFormat()).format, options.zone or UTC) for one in zoned}
    _check_values(file, columns, roles, times)
    return columns, times, [*notes, *_check_id(file, columns, roles), *_notes_of_zone(zoned, options)]


def _check_values(file: FileCells, columns: pa.Schema, roles: Roles, times: Mapping[str, TimeFormat]) -> None:
    """Raises SourceFileError for values that ingestion would refuse by the contract of these columns."""
    with TemporaryDirectory() as folder:
        trial = Project(Path(folder), Path(folder))
        trial.contracts.mkdir()
        try:
            contract = load_contract(new_source(trial, "trial", columns, roles, times))
        except ContractErrors:
            return  # which the contract in its own place raises
    file.check(contract)


def _check_options(options: TimeOptions) -> None:
    faults = [
        format_fault(options.text_format) if options.text_format is not None else None,
        zone_fault(options.zone) if options.zone is not None else None,
    ]
    for option, fault in zip(("--time-format", "--time-zone"), faults, strict=True):
        if fault is not None:
            message, hint = fault
            raise ProjectError(f"{option}: {message}", hint=hint)


def _time_columns(
    file: FileCells, names: Sequence[str], roles: Roles, options: TimeOptions
) -> dict[str, TimeColumn]:  # fmt: skip
    """The named columns as times, in the stated format if it reads them. Raises ProjectError for the event time."""
    stated = time_columns(file, names, options.text_format) if options.text_format is not None else {}
    misfits = [name for name in names if name not in stated or stated[name].formats == []]
    columns = stated | time_columns(file, misfits)
    time = columns[roles.event_time]
    if roles.event_time in stated and roles.event_time in misfits:
        raise ProjectError(
            f"column '{roles.event_time}' is not in the format {options.text_format}: "
            f"it holds {stated[roles.event_time].misfit}",
            hint=_stated(time.formats) if time.formats else _hint_of_other_times(columns, roles.event_time),
        )
    if time.formats is not None and options.text_format is None:
        _check_event_time(columns, roles.event_time)
    return columns


def _check_event_time(columns: Mapping[str, TimeColumn], name: str) -> None:
    """Raises ProjectError unless all values are times, in one format that is no matter of opinion."""
    column = columns[name]
    if not column.formats:
        raise ProjectError(
            f"column '{name}' cannot be the event time: it holds {column.misfit}",
            hint=_hint_of_other_times(columns, name),
        )
    if column.numeric:
        raise ProjectError(
            f"column '{name}' cannot be the event time: it holds numbers such as {column.sample[0]}",
            hint=f"if they are times: {_stated(column.formats)}",
        )
    if len(column.formats) > 1:
        raise ProjectError(
            f"column '{name}': day and month cannot be told apart in any value, such as '{column.sample[0]}'",
            hint=f"state the format: {_stated(column.formats)}",
        )


def _stated(formats: Sequence[str]) -> str:
    return " or ".join(f'--time-format "{one}"' for one in formats)


def _hint_of_other_times(columns: Mapping[str, TimeColumn], name: str) -> str:
    others = [one for one, column in columns.items() if one != name and column.formats and not column.numeric]
    if others:
        return f"columns of times: {', '.join(others)}"
    return 'write times as 2026-01-05T09:30:00Z (ISO 8601), or state their format: --time-format "%m/%d/%Y %H:%M"'


def _times(columns: Mapping[str, TimeColumn], roles: Roles) -> tuple[dict[str, TimeFormat], list[str]]:
    """The columns whose times are not in ISO 8601 -> how they are written; and notes on texts that could be read in
    several ways."""
    times, notes = {}, []
    for name, column in columns.items():
        formats = [one for one in column.formats or () if one != ISO]
        identifies = roles.id_columns == (name,) or name == roles.event_type
        if not formats or (name != roles.event_time and (column.numeric or identifies)):
            continue
        if len(formats) == 1:
            times[name] = TimeFormat(formats[0])
        else:
            either = " or ".join(formats)
            notes.append(f"note: column {name} is a text: its dates could be {either}; --time-format says which")
    return times, notes


def _notes_of_zone(zoned: Sequence[str], options: TimeOptions) -> list[str]:
    """What is assumed of the times of columns that state no offset."""
    if options.zone is not None:
        return [] if zoned else [f"note: --time-zone {options.zone} has no effect: all times state their offset"]
    has = "has" if len(zoned) == 1 else "have"
    note = f"note: {', '.join(zoned)} {has} times without an offset, which are read as UTC"
    return [f"{note}; for local times state the zone, such as --time-zone America/New_York"] if zoned else []


def _check_id(file: FileCells, columns: pa.Schema, roles: Roles) -> list[str]:
    """A note on rows that are there several times. Raises ProjectError where rows with one id differ: `ingest` refuses
    such a file."""
    readable, _ = usable_columns(columns)
    usable = [column.name for column in readable if _is_key(column.type)]
    key = examine_key(file, roles.id_columns, readable.names, usable)
    if key.identifies:
        repeated = key.rows - key.keys
        return (
            [f"note: {repeated:,} of {key.rows:,} rows repeat another row; equal rows count once"] if repeated else []
        )
    raise _not_unique(roles, key)


def _is_key(kind: pa.DataType) -> bool:
    exact = is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    return bool(exact or pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _not_unique(roles: Roles, key: Key) -> ProjectError:
    names = roles.id_columns
    what = f"column '{names[0]}'" if len(names) == 1 else f"columns {', '.join(names)}"
    hint = "an id identifies one event, and no few columns of the file do; add one to the file"
    if key.proposed:
        hint = f"these identify each row: --event-id {','.join(key.proposed)}"
    return ProjectError(f"{what} cannot be the id: {key.rows:,} rows have {key.keys:,} distinct values", hint=hint)
