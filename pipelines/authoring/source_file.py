"""A file of events, or of reference rows, taken on as a source: its first contract, with the types, times and id that
its values allow."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from trendlake.cep_core.events.local_times import UTC
from trendlake.cep_core.events.zones import zone_fault
from trendlake.pipelines.authoring.scaffold import FileForm, Roles, check_roles, new_source, usable_columns
from trendlake.pipelines.contracts.column_names import refuse_column_names
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.contracts.time_formats import ISO, TimeFormat, format_fault
from trendlake.pipelines.errors import ContractErrors, ProjectError
from trendlake.pipelines.ingest.readers.cells import is_text
from trendlake.pipelines.ingest.readers.inference import NUMBERS, TIMES, Reason
from trendlake.pipelines.ingest.readers.key_inference import Key, examine_key, measures_in_key, unique_columns
from trendlake.pipelines.ingest.readers.read_once import FileCells, read_once
from trendlake.pipelines.ingest.readers.time_inference import TimeColumn, has_clock, time_columns
from trendlake.pipelines.project.paths import Project

MOMENT = pa.timestamp("us", UTC)


@dataclass(frozen=True)
class TimeOptions:
    """The user's options for the times of a file: their format, and the zone of those that state no offset."""

    text_format: str | None = None
    zone: str | None = None


@dataclass(frozen=True)
class Findings:
    """`notes` for the user, and `null_words` that would give a column a narrower type."""

    notes: tuple[str, ...]
    null_words: tuple[str, ...] = ()


def new_source_of_file(
    project: Project,
    name: str,
    sample: Path,
    roles: Roles,
    options: TimeOptions,
    *,
    null_words: Sequence[str] = (),
    overwrite: bool = False,
) -> tuple[Path, Findings]:
    """A contract for the source `name`, with the columns of the file `sample`. Nothing is written for a file that
    ingestion would refuse by such a contract. `null_words`: texts that mean NULL, in addition to the usual ones;
    `overwrite`: a contract that exists is replaced.

    Raises ProjectError (columns that cannot have their roles, times that can be read in two ways), SourceFileError,
    ContractErrors.
    """
    _check_options(options)
    with read_once(sample, null_words) as file:
        columns, form, notes = _columns(file, roles, options)
        if roles.is_reference:
            roles, note = _with_key(file, columns, roles)
            notes.append(note)
        doubts = _doubts(file, columns, roles)
    words = tuple(dict.fromkeys(word for reason in doubts.values() for word in reason.null_words))
    notes += [_note_of_type(columns.field(one), reason) for one, reason in doubts.items()]
    path = new_source(project, name, columns, roles, form, overwrite=overwrite)
    load_contract(path)
    return path, Findings(tuple(notes), words)


def _columns(file: FileCells, roles: Roles, options: TimeOptions) -> tuple[pa.Schema, FileForm, list[str]]:
    """The columns that the contract gives a file, how it writes their values, and what to tell the user. Raises as
    `new_source_of_file`."""
    columns = file.schema
    refuse_column_names(file.path, columns.names)
    if not roles.event_id and not roles.is_reference:
        raise _no_id(file, columns)
    check_roles(columns, roles)
    texts = [column.name for column in columns if is_text(column.type)]
    moments = [column.name for column in columns if pa.types.is_timestamp(column.type)]
    named = dict.fromkeys(filter(None, [roles.event_time, *moments, *texts]))
    time_columns = _time_columns(file, list(named), roles, options)
    times, notes = _times(time_columns, roles)
    types = {one: MOMENT if has_clock(how.format) else pa.date32() for one, how in times.items()}
    if not roles.is_reference:
        types[roles.event_time] = MOMENT
        if not roles.made_id:  # as it is written: an id 007 is not 7
            types[roles.id_columns[0]] = pa.string()
    columns = pa.schema([column.with_type(types.get(column.name, column.type)) for column in columns])
    zoned = [
        one for one in time_columns if time_columns[one].zoneless and pa.types.is_timestamp(columns.field(one).type)
    ]
    times |= {one: TimeFormat(times.get(one, TimeFormat()).format, options.zone or UTC) for one in zoned}
    form = FileForm(times, {one: tuple(words) for one, words in file.null_words.items()})
    _check_values(file, columns, roles, form)
    if not roles.is_reference:
        notes += _check_id(file, columns, roles)
    notes += _notes_of_zone(zoned, options)
    return columns, form, [*notes, *_notes_of_words(file, columns)]


def _doubts(file: FileCells, columns: pa.Schema, roles: Roles) -> dict[str, Reason]:
    """Columns whose type a few cells decide, and why; not those whose type follows from their role or a format."""
    stated = {roles.event_time, roles.event_type, *(() if roles.made_id else roles.id_columns)}
    return {
        name: reason
        for name, reason in file.reasons.items()
        if name not in stated and columns.field(name).type == file.schema.field(name).type
    }


def _note_of_type(column: pa.Field, reason: Reason) -> str:
    kind = "text" if is_text(column.type) else str(column.type)
    note = f"note: {column.name}: {kind}, since {reason}"
    if not reason.null_words:
        return note
    what = reason.what.removeprefix("cells are no ")
    listed = ", ".join(map(json.dumps, reason.null_words))
    return f"{note}. If these mean NULL: as {what} with {null_word_options(reason.null_words)} (nullWords: [{listed}])"


def null_word_options(words: Sequence[str]) -> str:
    """The options of the command that state these words."""
    return " ".join(f"--null-word{'=' if word.startswith('-') else ' '}{shlex.quote(word)}" for word in words)


def _notes_of_words(file: FileCells, columns: pa.Schema) -> list[str]:
    """Notes on the effect of `--null-word` on texts, and on words without an effect."""
    notes = []
    for word in file.words:
        counts = {name: words[word] for name, words in file.null_words.items() if words[word]}
        texts = [f"{name} ({counts[name]:,})" for name in counts if is_text(columns.field(name).type)]
        if texts:
            notes.append(f"note: --null-word {word} also makes texts NULL: {', '.join(texts)}")
        if not counts:
            notes.append(f"note: --null-word {word} has no effect: no cell is {word}")
    return notes


def _no_id(file: FileCells, columns: pa.Schema) -> ProjectError:
    """The error for a missing id, with the columns that could be it."""
    readable, _ = usable_columns(columns)
    names = unique_columns(file, readable.names, [column.name for column in readable if _is_key(column.type)])
    hint = (
        f"unique in this file: {', '.join(names)}; --event-id {names[0]}"
        if names
        else ("no column is unique in this file: --event-id COLUMN,COLUMN names columns that identify a row together")
    )
    return ProjectError("--event-id is missing: the column with the id of an event, or several", hint=hint)


def _check_values(file: FileCells, columns: pa.Schema, roles: Roles, form: FileForm) -> None:
    """Raises SourceFileError for values that ingestion would refuse by the contract of these columns."""
    with TemporaryDirectory() as folder:
        trial = Project(Path(folder), Path(folder))
        trial.contracts.mkdir()
        try:
            contract = load_contract(new_source(trial, "trial", columns, roles, form))
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


def _time_columns(file: FileCells, names: Sequence[str], roles: Roles, options: TimeOptions) -> dict[str, TimeColumn]:
    """The named columns as times, in the stated format if it reads them. Raises ProjectError for the event time, which
    a reference table has not."""
    stated = time_columns(file, names, options.text_format) if options.text_format is not None else {}
    misfits = [name for name in names if name not in stated or stated[name].formats == []]
    columns = stated | time_columns(file, misfits)
    if roles.is_reference:
        return columns
    time = columns[roles.event_time]
    if roles.event_time in stated and roles.event_time in misfits:
        raise ProjectError(
            f"column '{roles.event_time}' is not in the format {options.text_format}: "
            f"it holds {stated[roles.event_time].misfit}",
            hint=_stated(time.formats) if time.formats else _hint_of_other_times(columns, roles.event_time),
        )
    if time.formats is not None and options.text_format is None:
        _check_event_time(columns, roles.event_time, file.reasons.get(roles.event_time))
    return columns


def _check_event_time(columns: Mapping[str, TimeColumn], name: str, reason: Reason | None) -> None:
    """Raises ProjectError unless all values are times, in one format that is no matter of opinion. `reason`: why the
    column is a text, where a few cells decide it."""
    column = columns[name]
    if not column.formats:
        hint = _hint_of_other_times(columns, name)
        if reason is not None and reason.null_words and reason.what.endswith(TIMES):
            options = null_word_options(reason.null_words)
            hint = f"{reason}. With {options} these rows have no time, and runs set them apart"
        raise ProjectError(f"column '{name}' cannot be the event time: it holds {column.misfit}", hint=hint)
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
    """Notes on the assumed zone of columns whose times state no offset."""
    if options.zone is not None:
        return [] if zoned else [f"note: --time-zone {options.zone} has no effect: all times state their offset"]
    has = "has" if len(zoned) == 1 else "have"
    note = f"note: {', '.join(zoned)} {has} times without an offset, which are read as UTC"
    return [f"{note}; for local times state the zone, such as --time-zone America/New_York"] if zoned else []


def _with_key(file: FileCells, columns: pa.Schema, roles: Roles) -> tuple[Roles, str]:
    """The key of a reference table: the one that is stated, else the first column that is unique in the file, else
    none; and a note on it. Raises ProjectError where rows of a stated key differ."""
    readable, _ = usable_columns(columns)
    usable = [column.name for column in readable if _is_key(column.type)]
    if roles.key:
        key = examine_key(file, roles.key, readable.names, usable)
        if not key.identifies:
            raise _not_unique("the key", "--key", roles.key, key)
        return roles, f"note: the key of a row is {', '.join(roles.key)}"
    unique = unique_columns(file, readable.names, usable)
    if unique:
        note = f"note: the key of a row is {unique[0]}, which is unique in this file; --key COLUMN,COLUMN names another"
        return replace(roles, key=(unique[0],)), note
    few = examine_key(file, usable[:1], readable.names, usable).proposed if usable else ()
    together = f"; these identify each row: --key {','.join(few)}" if few else ""
    return roles, f"note: no column is unique in this file, and the contract names no key{together}"


def _check_id(file: FileCells, columns: pa.Schema, roles: Roles) -> list[str]:
    """A note on rows that are there several times. Raises ProjectError where rows with one id differ: `ingest` refuses
    such a file."""
    readable, _ = usable_columns(columns)
    usable = [column.name for column in readable if _is_key(column.type)]
    key = examine_key(file, roles.id_columns, readable.names, usable)
    if key.identifies:
        repeated = key.rows - key.keys
        repeat = "repeats" if repeated == 1 else "repeat"
        note = f"note: {repeated:,} of {key.rows:,} rows {repeat} another row; equal rows count once"
        return [*[note][: min(repeated, 1)], *_notes_of_measures(file, columns, roles)]
    raise _not_unique("the id", "--event-id", roles.id_columns, key)


def _notes_of_measures(file: FileCells, columns: pa.Schema, roles: Roles) -> list[str]:
    """Notes on columns of the id that vary like a measured value: a correction of it would be another event."""
    names = [name for name in roles.id_columns if len(roles.id_columns) > 1 and name != roles.event_time]
    near = {name for name, reason in file.reasons.items() if reason.what.endswith(NUMBERS)}
    numeric = [name for name in names if pa.types.is_integer(columns.field(name).type) or name in near]
    return [
        f"note: {name} is part of the id and varies like a measured value: a row with a corrected {name} would be "
        f"another event, beside the first. {_without(file, roles, name)}"
        for name in measures_in_key(file, roles.id_columns, numeric)
    ]


def _without(file: FileCells, roles: Roles, name: str) -> str:
    """Whether the id needs the column."""
    others = [one for one in roles.id_columns if one != name]
    key = examine_key(file, others, file.schema.names, ())
    if key.identifies:
        return f"{', '.join(others)} identifies each row without it: --event-id {','.join(others)}"
    return (
        f"{', '.join(others)} has {key.keys:,} distinct values in {key.rows:,} rows: another column may tell them apart"
    )


def _is_key(kind: pa.DataType) -> bool:
    exact = is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    return bool(exact or pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _not_unique(role: str, option: str, names: Sequence[str], key: Key) -> ProjectError:
    what = f"column '{names[0]}'" if len(names) == 1 else f"columns {', '.join(names)}"
    hint = f"{role} identifies one row, and no few columns of the file do; add one to the file"
    if key.proposed:
        hint = f"these identify each row: {option} {','.join(key.proposed)}"
    return ProjectError(f"{what} cannot be {role}: {key.rows:,} rows have {key.keys:,} distinct values", hint=hint)
