"""The verdict of a contract on each row of a data file by itself, and the hashes of the row's keys.

A data file of a Delta table never changes, so neither does its verdict (`pipelines.quality.verdict_cache`). Whether a
key is repeated depends on all files of a version, and is asked of their hashes together
(`pipelines.quality.shared_keys`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property
from hashlib import sha256

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import AnyArray, Bools, UInt64s
from trendlake.cep_core.events.arrays import valid
from trendlake.pipelines.contracts.rules import Rule
from trendlake.pipelines.rules.keep import columns_of, keep
from trendlake.pipelines.rules.unique import has_key

Key = tuple[str, ...]
"""The columns of a rule of uniqueness."""


def hashes_of(rows: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> UInt64s:
    """uint64: the hash of each row's key, the same in every process. Equal keys have equal hashes."""
    from trendlake.pipelines.execute.hashing import row_hashes  # compiled code, which few rows do not need

    arrays = (rows.column(name) for name in columns)
    plain = [array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array for array in arrays]
    return row_hashes(plain, rows.num_rows)


@cache
def hashing() -> str:
    """Hexadecimal digits that differ where keys are hashed in another way: hashes that are kept from then say nothing
    about those of now."""
    values = {
        "text": pa.array(["", "a", "Zoë", None, "a longer text of some words"]),
        "whole": pa.array([0, -1, 2**62, None, 5]),
        "real": pa.array([0.0, -0.0, float("nan"), None, 1.5]),
        "exact": pa.array([Decimal("0.00"), Decimal("1.50"), Decimal("-1.50"), None, Decimal("123.45")]),
        "time": pa.array([0, 1, -1, None, 10**15], pa.timestamp("us", "UTC")),
        "day": pa.array([0, 1, -1, None, 20_000], pa.date32()),
        "yes": pa.array([True, False, None, True, False]),
    }
    rows = pa.table(values)
    keys = [*((name,) for name in values), tuple(values)]
    return sha256(b"".join(hashes_of(rows, key).tobytes() for key in keys)).hexdigest()[:16]


@dataclass(frozen=True)
class Question:
    """All that a contract asks of each row by itself: the rules of `single` rows, whether the row has a `time`, and for
    each of the `keys` whether it has one. An answer is one bit for each, in this order. Where `time` is empty, as of a
    reference table, no row has one."""

    single: tuple[Rule, ...]
    unique: tuple[Rule, ...]
    time: str

    @classmethod
    def of(cls, rules: Sequence[Rule], time: str = "") -> Question:
        single = tuple(rule for rule in rules if rule.kind not in ("unique", "row_count"))
        return cls(single, tuple(rule for rule in rules if rule.kind == "unique"), time)

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        return tuple(dict.fromkeys(rule.columns for rule in self.unique))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that the question is about."""
        return tuple(dict.fromkeys((*columns_of((*self.single, *self.unique)), *filter(None, (self.time,)))))

    @property
    def reads_documents(self) -> bool:
        return any(rule.kind == "xml" for rule in self.single)

    @property
    def bits(self) -> int:
        return len(self.single) + 1 + len(self.keys)

    @cached_property
    def quarantines(self) -> Bools:
        """Of each bit whether a row without it is quarantined."""
        return np.array([*(rule.quarantines for rule in self.single), *[False] * (1 + len(self.keys))], np.bool_)

    def has_time(self, masks: Bools) -> Bools:
        """Of `masks` (masks x bits) whether such a row has a time."""
        bit: Bools = masks[:, len(self.single)]
        return bit

    def has_key(self, masks: Bools, key: Key) -> Bools:
        """As `has_time`, of the key."""
        bit: Bools = masks[:, len(self.single) + 1 + self.keys.index(key)]
        return bit

    def good(self, masks: Bools) -> Bools:
        """Of `masks` whether such a row keeps all rules of single rows that quarantine."""
        return np.asarray(masks[:, self.quarantines].all(axis=1), np.bool_)

    def answer(self, rows: pa.Table | pa.RecordBatch) -> Verdict:
        """`rows` have the `columns`. Raises ContractRuleError."""
        bits = np.empty((self.bits, rows.num_rows), np.bool_)
        for at, rule in enumerate(self.single):
            bits[at] = keep(rule, rows)
        bits[len(self.single)] = self._timed(rows)
        for at, key in enumerate(self.keys, len(self.single) + 1):
            bits[at] = has_key(rows, next(rule for rule in self.unique if rule.columns == key))
        masks, codes = _coded(bits)
        return Verdict(rows.num_rows, masks, codes, tuple(hashes_of(rows, key) for key in self.keys))

    def _timed(self, rows: pa.Table | pa.RecordBatch) -> Bools | bool:
        if not self.time:
            return False
        time = rows.column(self.time)
        return valid(time.combine_chunks() if isinstance(time, pa.ChunkedArray) else time)


@dataclass(frozen=True)
class Verdict:
    """The answers to a `Question` on `rows` rows. `masks` (masks x bits): the different answers; `codes`: which of them
    is that of each row, None where all rows have the first. `hashes`: of each key of the question, uint64, in the order
    of the rows; those of rows without the key have no meaning."""

    rows: int
    masks: Bools
    codes: AnyArray | None
    hashes: tuple[UInt64s, ...]

    def where(self, which: Bools) -> Bools | bool:
        """The rows whose mask is one of `which`; True or False where that is so of all of them."""
        if which.all() or not which.any():
            return bool(which.all())
        return np.asarray(which[self.codes], np.bool_)

    def counts(self, inside: Bools | bool) -> AnyArray:
        """How many of the rows `inside` have each of `masks`."""
        if inside is False or not self.rows:
            return np.zeros(len(self.masks), np.int64)
        if self.codes is None:
            return np.array([self.rows if inside is True else np.count_nonzero(inside)], np.int64)
        return np.bincount(self.codes if inside is True else self.codes[inside], minlength=len(self.masks))

    def parts(self, sizes: Sequence[int]) -> list[Verdict]:
        """The verdicts on so many rows each, one after the other."""
        ends = np.cumsum(sizes).tolist()
        return [
            Verdict(
                size,
                self.masks if size else self.masks[:0],
                None if self.codes is None or not size else self.codes[end - size : end],
                tuple(hashes[end - size : end] for hashes in self.hashes),
            )
            for size, end in zip(sizes, ends, strict=True)
        ]


def _coded(bits: Bools) -> tuple[Bools, AnyArray | None]:
    """`bits` (bits x rows) as masks and codes. Nearly all rows have the answer yes to all but what no row has it to, as
    a time in a reference table."""
    count = bits.shape[1]
    usual: Bools = bits.any(axis=1).reshape(1, -1)
    odd = np.flatnonzero((bits != usual.T).any(axis=0))
    if not len(odd):
        return usual[: min(count, 1)], None
    masks, numbered = np.unique(bits[:, odd].T, axis=0, return_inverse=True)
    if len(odd) < count:
        masks, numbered = np.concatenate([usual, masks]), numbered + 1
    if len(masks) == 1:
        return masks, None
    codes = np.zeros(count, code_type(len(masks)))
    codes[odd] = numbered.reshape(-1)
    return masks, codes


def code_type(masks: int) -> np.dtype[np.unsignedinteger]:
    """The type of codes of so many masks."""
    return np.dtype(np.uint8 if masks <= 256 else np.uint32)


def joined(verdicts: Iterable[Verdict], rows: int, question: Question) -> Verdict:
    """The verdict on the rows of `verdicts`, which are `rows` together, one after the other."""
    hashes = tuple(np.empty(rows, np.uint64) for _ in question.keys)
    numbers: dict[bytes, int] = {}
    parts: list[tuple[int, AnyArray, AnyArray | None]] = []
    end = 0
    for verdict in verdicts:
        for whole, part in zip(hashes, verdict.hashes, strict=True):
            whole[end : end + verdict.rows] = part
        end += verdict.rows
        places = [numbers.setdefault(mask.tobytes(), len(numbers)) for mask in verdict.masks]
        parts.append((verdict.rows, np.array(places, np.uint32), verdict.codes))
    if end != rows:
        raise AssertionError(f"{end} rows, not {rows}")
    masks = np.array([np.frombuffer(mask, np.bool_) for mask in numbers], np.bool_).reshape(-1, question.bits)
    if len(masks) <= 1:
        return Verdict(rows, masks, None, hashes)
    codes, start = np.empty(rows, code_type(len(masks))), 0
    for size, places_of, own in parts:
        if size:
            codes[start : start + size] = places_of[0] if own is None else places_of[own]
        start += size
    return Verdict(rows, masks, codes, hashes)
