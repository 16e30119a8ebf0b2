"""Whether columns of a file identify its rows, and other columns that do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.events.array_types import Int64s
from trendlake.pipelines.ingest.readers.cells import Cells
from trendlake.pipelines.ingest.readers.read_once import FileCells

MOST_COLUMNS = 5
"""Of a key that is proposed."""


@dataclass(frozen=True)
class Key:
    """How well columns identify the rows of a file. `rows`: those that have a value in each of the columns; `keys`: how
    many different values these have; `contents`: how many of the rows differ in any column of the file; `proposed`:
    columns that together identify the rows; none if these do, or if no few columns do."""

    rows: int
    keys: int
    contents: int
    proposed: tuple[str, ...] = ()

    @property
    def identifies(self) -> bool:
        """Whether rows with one key are equal."""
        return self.keys == self.contents


def examine_key(file: FileCells, key: Sequence[str], columns: Sequence[str], usable: Sequence[str]) -> Key:
    """The columns `key` of a file with `columns`; of those in `usable` a key may be made. Raises SourceFileError."""
    single = _codes(file, key)
    keyed = np.logical_and.reduce([single[name] >= 0 for name in key])
    rows, keys = int(keyed.sum()), _distinct(_combined([single[name][keyed] for name in key]))
    if keys == rows:
        return Key(rows, keys, rows)
    every = {name: values[keyed] for name, values in _codes(file, columns).items()}
    whole = _combined(list(every.values()))
    contents = _distinct(whole)
    if keys == contents:
        return Key(rows, keys, contents)
    _, first = np.unique(whole, return_index=True)
    full = {name: values[first] for name, values in every.items() if (values[first] >= 0).all()}
    return Key(rows, keys, contents, _proposal(full, key, usable))


def unique_columns(file: FileCells, columns: Sequence[str], usable: Sequence[str]) -> list[str]:
    """The `usable` columns that have a value in each row and another one in rows that differ in any of `columns`.
    Raises SourceFileError."""
    codes = _codes(file, columns)
    whole = _distinct(_combined(list(codes.values()))) if codes else 0
    return [name for name in usable if (codes[name] >= 0).all() and _distinct(codes[name]) == whole]


def measures_in_key(file: FileCells, key: Sequence[str], numeric: Sequence[str]) -> list[str]:
    """The `numeric` columns of `key` that vary like a measured value: the other columns identify most rows without
    them, and they do not count, as numbers from 0 or 1 on that tell equal events apart, or ever larger ones, and are
    not all the same. Raises SourceFileError."""
    codes = _codes(file, key)
    measures = []
    for name in numeric:
        others = [codes[one] for one in key if one != name]
        if others and 2 * _distinct(_combined(others)) >= len(codes[name]) and not _counts(file, name):
            measures.append(name)
    return measures


def _counts(file: FileCells, name: str) -> bool:
    """Whether all numbers of a column from 0 or 1 to the largest occur, or each is larger than the one before, or all
    are one."""
    texts = pa.chunked_array([_texts(block[name]) for block in file.blocks([name])], pa.string()).drop_null()
    whole = pc.match_substring_regex(texts, "^-?[0-9]{1,18}$")
    values = texts.filter(whole).cast(pa.int64()).to_numpy()
    if len(values) < len(texts) or not len(values):
        return False
    low, high = int(values.min()), int(values.max())
    counted = low in (0, 1) and _distinct(values) == high - low + 1
    return counted or low == high or bool((np.diff(values) > 0).all())


def _proposal(codes: Mapping[str, Int64s], key: Sequence[str], usable: Sequence[str]) -> tuple[str, ...]:
    """Few columns that tell all rows apart, those of `key` preferred: one is added at a time, that which
    tells most rows apart, and then those that are not needed are left out."""
    names = [*key, *(name for name in usable if name not in key)]
    there = [name for name in names if name in codes and name in usable]
    chosen = [name for name in key if name in there][: MOST_COLUMNS - 1]
    there = [name for name in there if name not in chosen]
    rows = len(next(iter(codes.values()), ()))
    while there and len(chosen) < MOST_COLUMNS:
        counts = {name: _distinct(_combined([codes[one] for one in (*chosen, name)])) for name in there}
        best = max(there, key=lambda name: counts[name])
        chosen.append(best)
        there.remove(best)
        if counts[best] == rows:
            for name in reversed(chosen[:-1]):
                rest = [one for one in chosen if one != name]
                if _distinct(_combined([codes[one] for one in rest])) == rows:
                    chosen = rest
            return tuple(sorted(chosen, key=names.index))
    return ()


def _codes(file: FileCells, names: Sequence[str]) -> dict[str, Int64s]:
    """Columns as numbers, another for each text of a value; -1 for NULL."""
    parts: dict[str, list[pa.Array]] = {name: [] for name in names}
    for block in file.blocks(names):
        for name in names:
            texts = _texts(block[name])
            nothing = pc.is_in(pc.utf8_trim_whitespace(texts), value_set=pa.array(file.words, pa.string()))
            parts[name].append(pc.if_else(nothing, pa.scalar(None, pa.string()), texts))
    codes = {}
    for name, texts in parts.items():
        encoded = pa.chunked_array(texts, pa.string()).combine_chunks().dictionary_encode()
        codes[name] = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)
    return codes


def _texts(cells: Sequence[Cells]) -> pa.Array:
    return pc.coalesce(*[_of_any_zone(part.values).cast(pa.string()) for part in cells])


def _of_any_zone(values: pa.Array) -> pa.Array:
    """Moments as numbers: Arrow writes no time of a zone that this machine does not know."""
    return values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values


def _combined(columns: Sequence[Int64s]) -> Int64s:
    """One number for each different combination of the columns' numbers."""
    combined = columns[0]
    for column in columns[1:]:
        width = int(column.max(initial=0)) + 2
        _, combined = np.unique(combined * width + column + 1, return_inverse=True)
    return combined


def _distinct(values: Int64s) -> int:
    return len(np.unique(values))
