"""Whether columns of a file identify its rows, and other columns that do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cep_core.events.array_types import Int64s
from pipelines.ingest.readers.cells import Cells
from pipelines.ingest.readers.read_once import FileCells

MOST_COLUMNS = 5
"""Of a key that is proposed."""


@dataclass(frozen=True)
class Key:
    """What columns say of the rows of a file. `rows`: those that have a value in each of the columns; `keys`: how many
    different values these have; `contents`: how many of the rows differ in any column of the file; `proposed`: columns
    that together identify the rows; none if these do, or if no few columns do."""

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
            parts[name].append(_texts(block[name]))
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
