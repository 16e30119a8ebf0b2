"""Which rows count of those that share a key.

- Where the contract names a `sequence`, the row of the highest counts; NULL is the lowest.
- Rows that are equal in all columns of the contract count as one.
- Where rows differ and no sequence says which counts, none does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.events.array_types import Bools, Int8s, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.cep_core.events.codes import group_codes
from trendlake.cep_core.events.normalise import canonical
from trendlake.pipelines.contracts.rules import Rule

EQUAL, OLDER, DIFFER = 1, 2, 3
"""Why a row that repeats a key does not count, as the fields of `RepeatReasons`."""


def has_key(table: pa.Table | pa.RecordBatch, rule: Rule) -> Bools:
    """Whether the rule speaks of each row: a single column's NULL is no value, in a key of several it is one."""
    if len(rule.columns) > 1:
        return np.ones(table.num_rows, np.bool_)
    column = table.column(rule.columns[0])
    return valid(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)


def key_codes(table: pa.Table, rule: Rule) -> Int64s:
    """int64 codes of the rows' keys."""
    return exact_codes(table, rule.columns)


def not_repeating(rule: Rule, table: pa.Table, starts: Sequence[int]) -> Bools:
    """The rows that share their key with no other of their table, which begin in `table` at `starts`; whatever other
    rules they break."""
    codes = key_codes(table, rule)
    if len(starts) > 1:
        parts = np.searchsorted(np.asarray(starts), np.arange(table.num_rows), side="right")
        codes = codes + parts * (int(codes.max(initial=0)) + 1)
    _, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    good: Bools = counts[places] == 1
    return good | ~has_key(table, rule)


def repeats(table: pa.Table, rows: Int64s, codes: Int64s, rule: Rule) -> Int8s:
    """Of `rows` (places in `table`), whose keys have the `codes`: why each does not count by a rule of uniqueness; 0
    where it does."""
    why = np.zeros(len(rows), np.int8)
    if len(np.unique(codes)) == len(rows):
        return why
    mine = table.take(arrow(rows))
    content = exact_codes(mine, rule.compared or table.column_names)
    top, first, differ = standing(codes, content, sequence_ranks(mine, rule.sequence))
    why[:] = np.where(top, EQUAL, OLDER)
    why[first[first < len(codes)]] = 0
    why[differ[codes]] = DIFFER
    return why


def standing(codes: Int64s, content: Int64s, ranks: Int64s) -> tuple[Bools, Int64s, Bools]:
    """Which rows have the highest rank of their key; of each key (by its code) the first such row, and whether they
    differ. A code that no row has gets the number of rows."""
    size = int(codes.max(initial=-1)) + 1
    best = np.full(size, -2, np.int64)
    np.maximum.at(best, codes, ranks)
    top = ranks == best[codes]
    first = np.full(size, len(codes), np.int64)
    np.minimum.at(first, codes[top], np.flatnonzero(top))
    differ = np.zeros(size, np.bool_)
    differ[codes[top & (content != content[np.minimum(first[codes], len(codes) - 1)])]] = True
    return top, first, differ


def exact_codes(table: pa.Table, names: Sequence[str]) -> Int64s:
    """int64 codes, equal where rows agree in all columns: NULL is NULL, NaN is NaN, -0.0 is 0.0; none is rounded."""
    return group_codes([canonical(table.column(name)) for name in names], table.num_rows).astype(np.int64)


def sequence_ranks(table: pa.Table, sequence: str | None) -> Int64s:
    """The rows' order by `sequence`: int64, NULL and NaN lowest at -1; all 0 where there is none."""
    if sequence is None:
        return np.zeros(table.num_rows, np.int64)
    column = canonical(table.column(sequence))
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    values = pc.unique(column.drop_null())
    ordered = values.take(pc.sort_indices(values))
    return numbers(pc.index_in(column, value_set=ordered), -1).astype(np.int64)
