"""Files of events: CSV (also .gz), Parquet, and JSON with an object a line.

A file is read a block of rows at a time, each cell straight into its contract's type
(`pipelines.ingest.readers.cells`), and taken whole or not at all.
"""

from __future__ import annotations

import csv
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import did_you_mean
from trendlake.cep_core.events.names import same_name
from trendlake.pipelines.contracts.column_names import save_with_commas
from trendlake.pipelines.contracts.column_types import arrow_type
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.null_words import USUAL
from trendlake.pipelines.contracts.time_formats import ISO, TimeFormat
from trendlake.pipelines.errors import SourceFileError
from trendlake.pipelines.ingest.readers.bad_values import COUNTED, BadValues
from trendlake.pipelines.ingest.readers.cells import ISO_IN_UTC, Cells, values_of
from trendlake.pipelines.ingest.readers.csv_file import CsvFile
from trendlake.pipelines.ingest.readers.csv_texts import unescaped, unescaped_name
from trendlake.pipelines.ingest.readers.event_ids import event_ids
from trendlake.pipelines.ingest.readers.json_lines import JsonLines
from trendlake.pipelines.ingest.readers.parquet_file import ParquetFile
from trendlake.pipelines.ingest.readers.refusals import BadCellsError
from trendlake.pipelines.ingest.readers.spool import Spool
from trendlake.pipelines.progress import doing

CHUNK = 1 << 20
FORMS = (".csv", ".csv.gz", ".parquet", ".json", ".jsonl")
EventFile = CsvFile | JsonLines | ParquetFile


def read_file(
    path: Path, contract: Contract, *, also: Sequence[str] = (), repaired: bool = False, others: bool = True
) -> pa.Table:
    """The file's rows: the contract's columns in their order and types, then those of `also` that it has, as texts.
    Cells that memory does not have to hold are in a deleted file.

    `repaired`: the file is one of `quarantine show --out`: times are ISO 8601, and CSV is read as `csv_texts` writes
    it, whatever the contract declares for other files. `others`: whether columns that neither names are ignored; else
    they are refused.
    Raises SourceFileError, naming line (row) and column, for values that their types do not take as they are.
    """
    types = {item.name: arrow_type(item.type) for item in contract.columns}
    kinds = {name: kind for name, kind in types.items() if name != made_id(contract)}
    formats = contract.time_formats
    if repaired:
        formats = {name: replace(how, format=ISO) for name, how in formats.items()}
    bad = BadValues(path, contract, kinds, formats, repaired=repaired)
    declared = {} if repaired else contract.null_words
    repaired = repaired and path.name.lower().endswith((".csv", ".csv.gz"))
    words = {name: declared.get(name, () if pa.types.is_string(kind) else USUAL) for name, kind in kinds.items()}
    with unreadable(path):
        file = open_file(path)
        names = [unescaped_name(name) if repaired else name for name in file.names]
        if not isinstance(file, JsonLines):  # whose columns are all known only at its end
            _refuse_columns(path, names, contract, others=others)
        stored = dict(zip(names, file.names, strict=True))
        added = dict.fromkeys((name for name in also if name in stored or isinstance(file, JsonLines)), pa.string())
        kinds |= added
        in_cells = {  # texts of a CSV file are NULL by their words only where no quotation marks say otherwise
            stored.get(name, name): words.get(name, ()) if pa.types.is_string(kind) else ()
            for name, kind in kinds.items()
        }
        before = 0
        reading = doing(f"reading {path}", "rows")
        with Spool(pa.schema((types | added).items())) as spool, reading as work:
            for rows, block in file.blocks(in_cells):
                if bad.count > COUNTED:
                    continue  # to the end: Arrow aborts where a CSV file is left half-read
                columns: dict[str, pa.Array] = {}
                errors = []
                for name, kind in kinds.items():
                    cells = block.get(stored.get(name, name), (Cells(pa.nulls(rows)),))
                    values, refused = column_of(cells, kind, words.get(name, ()), formats.get(name, ISO_IN_UTC))
                    errors += [(name, error) for error in refused]
                    columns[name] = unescaped(values) if repaired and pa.types.is_string(kind) else values
                if errors:
                    bad.add(file.where, before, errors)
                elif not bad.count:
                    if contract.id_columns:
                        columns[made_id(contract)] = event_ids([columns[name] for name in contract.id_columns])
                    spool.add(pa.record_batch([columns[name] for name in spool.schema.names], schema=spool.schema))
                before += rows
                work.advance(rows)
            table = spool.table()
    bad.check()
    if isinstance(file, JsonLines):
        names = file.names
        _refuse_columns(path, names, contract, others=others)
    return table.select([name for name in table.column_names if name in types or name in names])


def made_id(contract: Contract) -> str:
    """The column of the id that ingestion makes of others; empty if files have it."""
    return contract.roles["event_id"] if contract.id_columns else ""


def open_file(path: Path) -> EventFile:
    """By the end of its name. Raises SourceFileError for another, and as the readers do."""
    name = path.name.lower()
    if name.endswith((".csv", ".csv.gz")):
        return CsvFile(path)
    if name.endswith(".parquet"):
        return ParquetFile(path)
    if name.endswith((".json", ".jsonl")):
        return JsonLines(path)
    raise SourceFileError(f"{path} is of no form that is read", hint=f"files end in {', '.join(FORMS)}")


@contextmanager
def unreadable(path: Path) -> Iterator[None]:
    """Turns the readers' exceptions for a file that is not what its name says into SourceFileError."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, zlib.error, csv.Error) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise SourceFileError(f"{path} cannot be read: {reason}") from None
    except UnicodeDecodeError as error:
        message = f"{path} cannot be read: its text is not UTF-8 ({error.reason})"
        raise SourceFileError(message, hint="save it as UTF-8") from None


def feed_of(*paths: Path) -> str:
    """The name that files, mostly one, are delivered under: by what they hold, so that a copy is the same delivery."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
    return f"file {digest.hexdigest()[:16]}"


def column_of(
    cells: Sequence[Cells], kind: pa.DataType, words: Sequence[str], how: TimeFormat
) -> tuple[pa.Array, list[BadCellsError]]:
    """A column of a block in its type `kind` (`words`, `how`: as for `values_of`), and what the type does not take."""
    values, errors = pa.nulls(len(cells[0].values), kind), []
    for part in cells:
        try:
            values = pc.coalesce(values, values_of(part, kind, words, how))
        except BadCellsError as error:
            errors.append(error)
    return values, errors


def refuse_names(path: Path, names: Sequence[str]) -> None:
    """Raises SourceFileError where a column has no name, or two have the same."""
    seen: dict[str, str] = {}
    for number, name in enumerate(names, start=1):
        if not name.strip():
            raise SourceFileError(f"{path}: column {number} of {len(names)} has no name", hint="give it one")
        other = seen.get(same_name(name))
        if other is not None:
            what = (
                f"has the column '{name}' twice"
                if other == name
                else (f"has columns '{other}' and '{name}', which differ in upper and lower case only")
            )
            raise SourceFileError(f"{path} {what}", hint="give each column a name of its own")
        seen[same_name(name)] = name


def _refuse_columns(path: Path, names: Sequence[str], contract: Contract, *, others: bool) -> None:
    """Raises SourceFileError where two columns have the same name, a column of the contract is not in the file, or,
    unless `others` may be there, one of the file not in the contract."""
    refuse_names(path, names)
    wanted = [item.name for item in contract.columns if item.name != made_id(contract)]
    if made_id(contract) in names and not others:
        raise SourceFileError(
            f"{path} has the column {made_id(contract)}, which ingestion makes of {', '.join(contract.id_columns)}",
            hint="leave it out of the file",
        )
    missing = [name for name in wanted if name not in names]
    if missing:
        hint = save_with_commas(names) or did_you_mean(missing[0], list(names))
        hint = hint or (f"its columns are {', '.join(names)}" if names else None)
        raise SourceFileError(f"{path} has no column {', '.join(missing)}", hint=hint)
    unknown = [name for name in names if name not in wanted]
    if unknown and not others:
        raise SourceFileError(
            f"{path} has the column {', '.join(unknown)}, which the contract of '{contract.name}' does not have",
            hint="leave it out of the file, or declare it in the contract",
        )
