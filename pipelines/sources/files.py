"""Files of events: CSV (also .gz), Parquet, and JSON with an object a line."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from pipelines.contract import Contract
from pipelines.errors import SourceFileError

CHUNK = 1 << 20
ZONED = r"(Z|[+-]\d{2}:?\d{2})$"
"""A time's end that tells its zone."""
NULLS = ["", "NA", "null"]
"""Cells of a CSV file that say nothing."""
ARROW = {
    "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(), "float": pa.float32(),
    "double": pa.float64(), "string": pa.string(), "boolean": pa.bool_(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}  # fmt: skip
"""Arrow types by the names that contracts give them."""
FORMS = (".csv", ".csv.gz", ".parquet", ".json", ".jsonl")


def read_file(path: Path, contract: Contract | None = None) -> pa.Table:
    """The file's rows; the contract's columns in its types, others as they come. Raises SourceFileError, naming the
    column, for a value that its type does not hold: a file is taken whole or not at all."""
    kinds = {} if contract is None else {item.name: arrow_type(item.type) for item in contract.columns}
    try:
        table = _read(path, kinds)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SourceFileError(f"{path} cannot be read: {str(error).splitlines()[0]}") from None
    missing = [item.name for item in contract.columns if item.name not in table.column_names] if contract else []
    if missing:
        there = ", ".join(table.column_names)
        raise SourceFileError(f"{path} has no column {', '.join(missing)}", hint=f"its columns are {there}")
    for number, name in enumerate(table.column_names):
        if name in kinds:
            table = table.set_column(number, name, _cast(table.column(name), kinds[name], path, name))
    return table


def feed_of(path: Path) -> str:
    """The name a file is delivered under: by what it holds, so that a copy is the same delivery."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return f"file {digest.hexdigest()[:16]}"


def arrow_type(spark_type: str) -> pa.DataType:
    """The Arrow type of a column of a contract, such as `bigint` or `decimal(10,2)`."""
    digits = re.fullmatch(r"decimal(?:\((\d+)(?:,(\d+))?\))?", spark_type)
    if digits:
        return pa.decimal128(int(digits[1] or 10), int(digits[2] or 0))
    return ARROW[spark_type]


def _read(path: Path, kinds: dict[str, pa.DataType]) -> pa.Table:
    name = path.name.lower()
    if name.endswith((".csv", ".csv.gz")):
        # times are read as text first: Arrow's reader takes those with a zone or those without, not both
        texts = {name: pa.string() if pa.types.is_timestamp(kind) else kind for name, kind in kinds.items()}
        options = pyarrow.csv.ConvertOptions(column_types=texts, strings_can_be_null=True, null_values=NULLS)
        return pyarrow.csv.read_csv(path, convert_options=options)
    if name.endswith(".parquet"):
        return pyarrow.parquet.read_table(path)
    if name.endswith((".json", ".jsonl")):
        return pyarrow.json.read_json(path)
    raise SourceFileError(f"{path} is of no form that is read", hint=f"files end in {', '.join(FORMS)}")


def _cast(column: Any, kind: pa.DataType, path: Path, name: str) -> Any:
    try:
        if pa.types.is_timestamp(kind) and pa.types.is_string(column.type):
            return _times(column)
        return column.cast(kind)
    except pa.ArrowException as error:
        message = f"{path}, column {name}: {str(error).splitlines()[0]}"
        raise SourceFileError(message, hint="mend the file, or the column's type in the contract") from None


def _times(texts: Any) -> Any:
    """ISO 8601 texts as moments; UTC where they say no zone."""
    zoned = pc.match_substring_regex(texts, ZONED)
    none = pa.scalar(None, pa.string())
    with_zone = pc.if_else(zoned, texts, none).cast(pa.timestamp("us", "UTC"))
    without = pc.if_else(zoned, none, texts).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    return pc.coalesce(with_zone, without)
