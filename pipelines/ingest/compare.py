"""A delivery compared with its source's table: which of its rows are new, which correct a row, which are known already.

Rows are compared by the contract's key. Equal rows have equal values in every column that the delivery brings: NULL is
equal to NULL, NaN to NaN, -0.0 to 0.0, a decimal by its value, text byte by byte. A row whose key is NULL (of a single
column) has no key and is compared whole.

    table: (e1, 5), (e2, 7)    delivery: (e1, 5), (e2, 8), (e3, 9)    ->    there: e1; correction: e2; new: e3
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.rules import unique_rules
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import DeliveryError
from trendlake.pipelines.rules.unique import exact_codes, sequence_ranks, standing

Good = Callable[[pa.Table], Bools]
"""Says which rows of a table keep the contract's rules of single rows."""
NAMED = 5
"""So many keys are named in an error."""


@dataclass(frozen=True)
class Compared:
    """`new`: rows that the table gets; `corrections`: rows that replace those of their key; `there`: how many the table
    has already, or are in the delivery several times; `older`: for how many the table has a row of a higher
    sequence."""

    new: pa.Table
    corrections: pa.Table
    there: int
    older: int


def key_of(contract: Contract) -> tuple[str, ...] | None:
    """The columns that identify the rows of a source: the primary key, else the id of the event, else the first key
    that a rule of uniqueness names. None where no rule quarantines rows that repeat a key."""
    keys = [rule.columns for rule in unique_rules(contract.rules)]
    wanted = [contract.key, (contract.roles.get("event_id"),)]
    return next((key for key in wanted if key in keys), keys[0] if keys else None)  # type: ignore[return-value]


def without_repeats(
    delivery: pa.Table, key: Sequence[str], sequence: str | None, good: Good
) -> tuple[pa.Table, int, int]:
    """The delivery with one row of each key; how many equal rows, and how many of a lower `sequence`, are left out.
    Raises DeliveryError where rows of one key differ and no sequence says which counts, or one of them breaks the
    contract."""
    codes = exact_codes(delivery, key)
    keyed = _has_key(delivery, key)
    content = exact_codes(delivery, delivery.column_names) if _repeats(codes) else codes
    codes = np.where(keyed, codes, codes.max(initial=0) + 1 + content)  # a row without a key is its whole content
    if not _repeats(codes):
        return delivery, 0, 0
    ranks = sequence_ranks(delivery, sequence)
    top, first, differ = standing(codes, content, ranks)
    if not top.all():  # of rows in an order, each has to be one that could count
        broken = _marked(codes[~good(delivery)], len(differ))
        differ |= broken & _marked(codes[content != content[first[codes]]], len(differ))
    if differ.any():
        rows = first[np.unique(codes[differ[codes]])]
        raise _differing(delivery, key, codes, sorted(rows.tolist()), sequence)
    latest = np.zeros(len(codes), np.bool_)
    latest[first[first < len(codes)]] = True
    return delivery.filter(arrow(latest)), int((top & ~latest).sum()), int((~top).sum())


def compare(delivery: pa.Table, table: pa.Table, key: Sequence[str], sequence: str | None, good: Good) -> Compared:
    """`delivery`: one row of each key, as of `without_repeats`; `table`: the source's rows that share a key with one of
    them (or have none), with at least the delivery's columns.

    A row that breaks the contract never takes the place of one that keeps it: it is added, and quarantined. Where the
    contract names a `sequence`, of the good rows of a key the highest counts, and a row of a lower one is older than
    it."""
    if not delivery.num_rows:
        return Compared(delivery, delivery, 0, 0)
    names = delivery.column_names
    table = table.select(names)
    n = table.num_rows
    both = pa.concat_tables([table, delivery.cast(table.schema)])
    content = exact_codes(both, names)
    codes = np.where(_has_key(both, key), exact_codes(both, key), both.num_rows + content)
    row_of = np.full(int(codes.max(initial=0)) + 1, -1, np.int64)
    row_of[codes[n:]] = np.arange(delivery.num_rows)
    at = row_of[codes[:n]]
    mine = at >= 0
    equal = mine & (content[:n] == content[n:][at])
    known = _marked(at[mine], delivery.num_rows)
    if not (mine & ~equal).any():
        return Compared(delivery.filter(arrow(~known)), delivery.slice(0, 0), int(known.sum()), 0)
    same = _marked(at[equal], delivery.num_rows)
    good_rows, good_delivered = good(table), good(delivery)
    ranks = sequence_ranks(both, sequence)
    best = np.full(delivery.num_rows, -2, np.int64)
    counts = mine & good_rows
    np.maximum.at(best, at[counts], ranks[:n][counts])
    counts &= ranks[:n] == best[at]
    stands = _marked(at[counts], delivery.num_rows)
    other = _marked(at[counts & ~equal], delivery.num_rows)
    there = same & (~good_delivered | (stands & ~other))
    older = known & ~there & good_delivered & (ranks[n:] < best)
    beside = known & ~there & ~good_delivered & stands
    corrects = known & ~there & ~older & ~beside
    return Compared(
        delivery.filter(arrow(~known | beside)), delivery.filter(arrow(corrects)), int(there.sum()), int(older.sum())
    )


def keys_in_words(rows: pa.Table, key: Sequence[str]) -> str:
    """`event_id e1, e2 and 7 more`."""
    shown = [", ".join(map(str, row.values())) for row in rows.select(list(key)).slice(0, NAMED).to_pylist()]
    texts = [f"({text})" if len(key) > 1 else text for text in shown]
    more = f" and {rows.num_rows - NAMED:,} more" if rows.num_rows > NAMED else ""
    return f"{', '.join(key)} {', '.join(texts)}{more}"


def _differing(
    delivery: pa.Table, key: Sequence[str], codes: Int64s, rows: Sequence[int], sequence: str | None
) -> DeliveryError:
    parts = []
    for row in rows[:NAMED]:
        same = [str(number + 1) for number in np.flatnonzero(codes == codes[row]).tolist()]
        parts.append(f"{keys_in_words(delivery.slice(row, 1), key)} in rows {', '.join(same)}")
    more = f"; and {len(rows) - NAMED:,} more" if len(rows) > NAMED else ""
    why = f" and the same {sequence}" if sequence else ""
    return DeliveryError(
        f"the delivery has {plural(len(rows), 'key')} with different values{why}: {'; '.join(parts)}{more}; "
        "nothing was written",
        hint="leave one row of each key in the file (rows are counted from 1, without a header)",
    )


def _marked(places: Int64s, length: int) -> Bools:
    marks = np.zeros(length, np.bool_)
    marks[places] = True
    return marks


def _repeats(codes: Int64s) -> bool:
    return len(np.unique(codes)) < len(codes)


def _has_key(table: pa.Table, key: Sequence[str]) -> Bools:
    """As `pipelines.rules.unique.has_key`."""
    if len(key) > 1:
        return np.ones(table.num_rows, np.bool_)
    return numbers(pc.is_valid(table.column(key[0])).combine_chunks())
