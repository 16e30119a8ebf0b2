"""Frames of pandas. An index is never read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from trendlake.cep_core.errors import BadEventsError

NO_TYPE = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)
"""Raised by Arrow for values that it has no type for, or no common one."""
SOME = 1_000
"""Values of a column of objects by which its type is known before it is converted."""


def schema(frame: Any) -> pa.Schema:
    """Names and types of the columns whose names are texts. Of a column of objects the type of its first values; if
    Arrow has none for them, binary, which no pattern reads."""
    names = [name for name in frame.columns if isinstance(name, str)]
    if len(set(names)) < len(names):
        double = next(name for at, name in enumerate(names) if name in names[:at])
        raise BadEventsError(f"the frame has two columns '{double}'", hint="give each column a name of its own")
    return pa.schema([pa.field(name, _type(frame[name])) for name in names])


def _type(column: Any) -> pa.DataType:
    if column.dtype != object:
        return pa.array(column.iloc[:0], from_pandas=True).type
    begin = int(column.notna().to_numpy().argmax()) if len(column) else 0
    for count in (SOME, 1):  # where they are of several types it is that of the first: to read the column is an error
        with suppress(*NO_TYPE):
            return pa.array(column.iloc[begin : begin + count], from_pandas=True).type
    return pa.binary()


def to_arrow(frame: Any, columns: Sequence[str]) -> pa.Table:
    """The columns. Raises BadEventsError for one of objects of several types."""
    return pa.table({name: _array(frame[name], name) for name in columns})


def _array(column: Any, name: str) -> pa.Array | pa.ChunkedArray:
    try:
        return pa.array(column, from_pandas=True)
    except NO_TYPE:
        message = f"column '{name}' is of objects: pandas holds {_mixed(column)} in it"
        raise BadEventsError(message, hint="convert it first") from None


def _mixed(column: Any) -> str:
    """The types of the values, and the first value whose type is not that of those before it."""
    first = ""
    for number, value in enumerate(column):
        if value is None or value != value:
            continue
        word = _word(value)
        first = first or word
        if word != first:
            return f"{first} and {word} (row {number + 1}: {value!r})"
    return f"{first or 'values'} that Arrow has no type for"


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "booleans"
    if isinstance(value, int | float):
        return "numbers"
    return "texts" if isinstance(value, str) else f"values of {type(value).__name__}"


def from_arrow(rows: pa.Table, like: Any) -> Any:
    """A frame. Doubles, times and texts are as pandas has them by itself, and all other columns (counts, lists, whole
    numbers, which may be NULL) of Arrow's types: so the type of a column never depends on its values. Where all columns
    of `like` are of Arrow's types, all are; None: a frame without columns."""
    import pandas as pd

    arrow = like is not None and len(like.columns) > 0 and all(isinstance(kind, pd.ArrowDtype) for kind in like.dtypes)

    def of_pandas(kind: pa.DataType) -> Any:
        plain = pa.types.is_float64(kind) or pa.types.is_timestamp(kind) or pa.types.is_string(kind)
        return None if plain and not arrow else pd.ArrowDtype(kind)

    return rows.to_pandas(types_mapper=of_pandas)
