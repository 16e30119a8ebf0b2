"""`for_each: {file: NAME.csv}`: rows of parameters in a CSV file next to the pattern.

A column is of whole numbers (bigint), numbers (double) or times if all its cells are, else of text; an empty cell is
NULL. A number that begins with a zero, such as 00501, is text. `types: {zip: string}` says it instead. The parameters
are all columns of the file, or those that `columns: [zip]` names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trendlake.cep_core.errors import BadValueError, NotSupportedError, TextError, TrendlakeError, did_you_mean
from trendlake.cep_core.events.names import same_name
from trendlake.cep_core.fingerprint import canonical
from trendlake.cep_core.language.tree_builder import timestamp_us
from trendlake.cep_core.patterns.parameters import MOST_ROWS, ForEachError, Parameters, Value, as_doubles
from trendlake.cep_core.yaml.csv_file import CsvFile, beside
from trendlake.cep_core.yaml.limits import unreadable_character
from trendlake.cep_core.yaml.source import Source

MAX_CSV = 64 * 1024 * 1024
"""Bytes of a CSV file."""
TYPES = {"bigint": "int", "double": "double", "string": "string", "boolean": "boolean", "timestamp": "timestamp"}
"""The words of `types`."""
_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+(Z|[-+][0-9:]+)?)?")


def read_file(given: Mapping[str, Any], source: Source) -> Parameters:
    """The rows of the CSV file that `for_each` names. Raises ForEachError."""
    place = source.place(("for_each", "file"))
    name = given.get("file")
    if not isinstance(name, str) or not name or Path(name).name != name:
        raise ForEachError(
            [BadValueError("for_each: file: expected the name of a CSV file in the pattern's own folder", place=place)]
        )
    extra = [key for key in given if key not in ("file", "types", "columns")]
    if extra:
        message = f"for_each: '{extra[0]}' beside a file: the parameters are the columns of the file"
        raise ForEachError([BadValueError(message, place=source.place(("for_each", extra[0]), key=True))])
    try:
        file = CsvFile(beside(source, name), place, MOST_ROWS, MAX_CSV)
    except TrendlakeError as error:
        raise ForEachError([error]) from None
    if len(file.rows) > MOST_ROWS:
        place = file.place(file.lines[MOST_ROWS])
        raise ForEachError([NotSupportedError(f"more than {MOST_ROWS:,} rows", place=place)])
    errors: list[TrendlakeError] = []
    header = _columns(given.get("columns"), file, source, errors)
    errors += _header(file, header)
    if not file.rows and not errors:
        errors.append(BadValueError(f"{file.path} has no rows, so that there is no pattern", place=place))
    declared = _declared(given.get("types", {}), header, source, errors)
    if errors:
        raise ForEachError(errors)
    kinds, columns = list[str](), list[list[Value]]()
    for column in header:
        at = file.header.index(column)
        cells = [(line, row[at]) for line, row in zip(file.lines, file.rows, strict=True)]
        kind = declared.get(column) or _kind([cell for _, cell in cells])
        kinds.append(kind)
        columns.append(_values(column, kind, cells, file, errors))
    rows = tuple(zip(*columns, strict=True)) if not errors else ()
    seen: dict[str, int] = {}
    for line, row in zip(file.lines if rows else (), rows, strict=True):
        before = seen.setdefault(canonical(row), line)
        if before != line:
            errors.append(BadValueError(f"this row is in the file already, on line {before}", place=file.place(line)))
    if errors:
        raise ForEachError(errors)
    typed = zip(header, kinds, strict=True)
    texts = [(column, why) for column, kind in typed if (why := _why_text(file, column, kind))]
    return Parameters(tuple(header), tuple(kinds), rows, name, tuple(texts))


def _columns(chosen: Any, file: CsvFile, source: Source, errors: list[TrendlakeError]) -> list[str]:
    """The columns that are parameters: all, or those that the pattern names."""
    if chosen is None:
        return list(file.header)
    path = ("for_each", "columns")
    if not isinstance(chosen, list | tuple) or not chosen or not all(isinstance(name, str) for name in chosen):
        message = "for_each: columns: expected names of columns of the file, such as [symbol, threshold]"
        errors.append(BadValueError(message, place=source.place(path)))
        return []
    for at, name in enumerate(chosen):
        if name not in file.header or name in chosen[:at]:
            what = f"'{name}' is written twice" if name in file.header else f"the file has no column '{name}'"
            place, hint = source.place((*path, at)), did_you_mean(name, file.header)
            errors.append(BadValueError(f"for_each: columns: {what}", place=place, hint=hint))
    return [] if errors else list(chosen)


def _why_text(file: CsvFile, column: str, kind: str) -> str:
    """The first cell of a column of text that is no number, where others are."""
    at = file.header.index(column)
    cells = [(line, row[at]) for line, row in zip(file.lines, file.rows, strict=True) if row[at]]
    if kind != "string" or not any(_NUMBER.fullmatch(cell) for _, cell in cells):
        return ""
    line, cell = next(((line, cell) for line, cell in cells if not _NUMBER.fullmatch(cell)), (0, ""))
    return f"${column} is text, as {file.path.name} has '{cell}' on line {line}" if line else ""


def _header(file: CsvFile, names: Sequence[str]) -> list[TrendlakeError]:
    if not file.header:
        return [BadValueError("the file is empty; its first line names the parameters", place=file.place(1))]
    errors: list[TrendlakeError] = []
    for name in names:
        if not (name.isascii() and name.isidentifier()):
            message = f"'{name}' is no name of a parameter: letters, digits and _, beginning with a letter"
            errors.append(
                BadValueError(message, place=file.place(file.header_line), hint="the first line names the parameters")
            )
    if len({same_name(name) for name in names}) < len(names):
        errors.append(BadValueError("the header names a parameter twice", place=file.place(file.header_line)))
    return errors


def _declared(types: Any, header: Sequence[str], source: Source, errors: list[TrendlakeError]) -> dict[str, str]:
    """The types that the pattern names for columns of the file."""
    if not isinstance(types, Mapping):
        errors.append(
            BadValueError("for_each: types: expected {column: type}", place=source.place(("for_each", "types")))
        )
        return {}
    declared = {}
    for name, word in types.items():
        path = ("for_each", "types", name)
        if name not in header:
            message = f"for_each: types: the file has no column '{name}'"
            errors.append(BadValueError(message, place=source.place(path, key=True), hint=did_you_mean(name, header)))
        elif word not in TYPES:
            message = f"for_each: types: unknown type '{word}'"
            errors.append(BadValueError(message, place=source.place(path), hint=did_you_mean(str(word), TYPES)))
        else:
            declared[name] = TYPES[word]
    return declared


def _kind(cells: Sequence[str]) -> str:
    """The narrowest type of all cells that are not empty."""
    given = [cell for cell in cells if cell]
    if not given:
        return "null"
    if all(_WHOLE.fullmatch(cell) for cell in given):
        return "int"
    if all(_NUMBER.fullmatch(cell) for cell in given):
        return "double"
    return "timestamp" if all(_TIME.fullmatch(cell) for cell in given) else "string"


def _values(
    name: str, kind: str, cells: Sequence[tuple[int, str]], file: CsvFile, errors: list[TrendlakeError]
) -> list[Value]:
    values: list[Value] = []
    for line, cell in cells:
        try:
            values.append(_value(cell, kind) if cell else None)
        except ValueError as problem:
            message = problem.message if isinstance(problem, TextError) else str(problem)
            errors.append(BadValueError(f"{name}: {message}", place=file.place(line)))
    return as_doubles(values) if kind == "double" else values


def _value(cell: str, kind: str) -> Value:
    """A cell as a value of a type. Raises ValueError."""
    if kind == "int":
        if not _WHOLE.fullmatch(cell):
            raise ValueError(f"'{cell}' is no whole number")
        if len(cell) > 20 or not -(2**63) < int(cell) < 2**63:
            raise ValueError("this number does not fit 64 bits")
        return int(cell)
    if kind == "double":
        if not _NUMBER.fullmatch(cell) or float(cell) in (float("inf"), float("-inf")):
            raise ValueError(f"'{cell}' is no finite number")
        return float(cell)
    if kind == "timestamp":
        return timestamp_us(cell)
    if kind == "boolean":
        if cell.lower() not in ("true", "false"):
            raise ValueError(f"'{cell}' is neither true nor false")
        return cell.lower() == "true"
    if cell.startswith("="):
        raise ValueError(f"'{cell}' is a formula of a spreadsheet: write its value")
    if (problem := unreadable_character(cell)) is not None:
        raise ValueError(problem)
    return cell
