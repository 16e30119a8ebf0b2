"""Rows that share a key, among any number of rows, by the hashes of their keys.

Equal keys have equal hashes: a hash that occurs once is a key that occurs once. Of hashes that occur several times the
rows are named, and the caller compares their values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trendlake.cep_core.events.array_types import Bools, Int64s, UInt64s
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.road import refuse_more
from trendlake.pipelines.quality.verdict import Key, Question, Verdict

FEWEST_BITS, MOST_BITS = 16, 26
"""Bits of a hash that a first look takes: an index into up to 64 MB."""


@dataclass(frozen=True)
class SharedKey:
    """The rows whose hash of a key another row has: `rows` by their numbers in the table, ascending; `hashes`: theirs;
    `good`: whether each keeps the rules of single rows."""

    rows: Int64s
    hashes: UInt64s
    good: Bools

    def among(self, chosen: Bools) -> Bools:
        """Of the `chosen` rows those that share their hash with another of them."""
        _, places, counts = np.unique(self.hashes[chosen], return_inverse=True, return_counts=True)
        sharing = np.zeros(len(self.rows), np.bool_)
        sharing[chosen] = counts[places] > 1
        return sharing

    def without_others(self) -> SharedKey:
        """Without the rows that share their hash with none."""
        sharing = self.among(np.ones(len(self.rows), np.bool_))
        return SharedKey(self.rows[sharing], self.hashes[sharing], self.good[sharing])


def shared_keys(verdicts: Sequence[Verdict], question: Question) -> dict[Key, SharedKey]:
    """Of each key of the question the rows that share its hash; rows are numbered from the first of the first verdict.
    Raises NotHereError where they are more than this process compares."""
    shared = {}
    for at, key in enumerate(question.keys):
        keyed = [verdict.where(question.has_key(verdict.masks, key)) for verdict in verdicts]
        several = repeated([(verdict.hashes[at], where) for verdict, where in zip(verdicts, keyed, strict=True)])
        shared[key] = _with_hashes(verdicts, question, key, several)
    return shared


def shared_with(
    verdicts: Sequence[Verdict], question: Question, asked: Sequence[Bools | bool]
) -> Mapping[Key, SharedKey]:
    """As `shared_keys`, of the rows that share a hash with one of those that are `asked` about, and of the rows that
    share one with these, and so on: without sorting all hashes. Raises as `shared_keys`."""
    hashes = [np.zeros(0, np.uint64) for _ in question.keys]
    for verdict, own in zip(verdicts, asked, strict=True):
        if own is not False:
            hashes = [
                np.concatenate([some, of_file if own is True else of_file[own]])
                for some, of_file in zip(hashes, verdict.hashes, strict=True)
            ]
    wanted = [_distinct(some) for some in hashes]
    while True:
        parts = zip(question.keys, wanted, strict=True)
        shared = {key: _with_hashes(verdicts, question, key, some).without_others() for key, some in parts}
        if len(question.keys) < 2:
            return shared
        rows = np.unique(np.concatenate([one.rows for one in shared.values()]))
        wider = [np.union1d(some, of_rows) for some, of_rows in zip(wanted, _hashes_at(verdicts, rows), strict=True)]
        if all(len(some) == len(more) for some, more in zip(wanted, wider, strict=True)):
            return shared
        wanted = wider


def _with_hashes(verdicts: Sequence[Verdict], question: Question, key: Key, wanted: UInt64s) -> SharedKey:
    """The rows that have a key whose hash is one of `wanted`, which are ascending."""
    at = question.keys.index(key)
    rows, hashes, good = [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)], [np.zeros(0, np.bool_)]
    first = count = 0
    near, bits = _near(wanted)
    for verdict in verdicts:
        where = verdict.where(question.has_key(verdict.masks, key))
        if len(wanted) and where is not False:
            places = np.flatnonzero(near[verdict.hashes[at] >> bits])
            own = verdict.hashes[at][places]
            same = wanted[np.minimum(np.searchsorted(wanted, own), len(wanted) - 1)] == own
            chosen = same if where is True else same & where[places]
            places, own = places[chosen], own[chosen]
            count += len(places)
            refuse_more(count, limits.KEYS_COMPARED, "rows that may share their key with another")
            is_good = verdict.where(question.good(verdict.masks))
            rows.append(places + first)
            hashes.append(own)
            good.append(np.full(len(places), is_good) if isinstance(is_good, bool) else is_good[places])
        first += verdict.rows
    return SharedKey(np.concatenate(rows), np.concatenate(hashes), np.concatenate(good))


def _distinct(hashes: UInt64s) -> UInt64s:
    """The hashes, ascending, each once: NumPy's `unique` has a table of them, which is slower."""
    ordered = np.sort(hashes)
    distinct: UInt64s = ordered[np.append(ordered[1:] != ordered[:-1], np.ones(min(len(ordered), 1), np.bool_))]
    return distinct


def _near(wanted: UInt64s) -> tuple[Bools, np.uint64]:
    """By the first bits of a hash, whether one of `wanted` has them too, which one in sixteen others has: the rest is
    asked nothing more. And by how many bits a hash is shifted for it."""
    first = min(max(len(wanted).bit_length() + 4, FEWEST_BITS), MOST_BITS)
    near, others = np.zeros(1 << first, np.bool_), np.uint64(64 - first)
    near[wanted >> others] = True
    return near, others


def _hashes_at(verdicts: Sequence[Verdict], rows: Int64s) -> list[UInt64s]:
    """Of each key the hashes of `rows`, ascending; not all of them may have it."""
    by_key: list[list[UInt64s]] = [[np.zeros(0, np.uint64)] for _ in (verdicts[0].hashes if verdicts else ())]
    first = 0
    for verdict in verdicts:
        low, high = np.searchsorted(rows, (first, first + verdict.rows))
        for parts, hashes in zip(by_key, verdict.hashes, strict=True):
            parts.append(hashes[rows[low:high] - first])
        first += verdict.rows
    return [np.concatenate(parts) for parts in by_key]


def repeated(arrays: Sequence[tuple[UInt64s, Bools | bool]]) -> UInt64s:
    """The hashes, ascending, that occur more than once in the parts of the arrays that are chosen. The hashes are
    sorted by ranges of their values, so that few are in memory at once."""
    total, bits = sum(len(hashes) for hashes, _ in arrays), 0
    while total >> bits > limits.HASHES_SORTED:
        bits += 1
    several = []
    for number in range(1 << bits):
        parts = [_part(hashes, where, bits, number) for hashes, where in arrays if where is not False]
        ordered = np.concatenate([np.zeros(0, np.uint64), *parts])
        ordered.sort()
        several.append(np.unique(ordered[1:][ordered[1:] == ordered[:-1]]))
    return np.concatenate(several)


def _part(hashes: UInt64s, where: Bools | bool, bits: int, number: int) -> UInt64s:
    """The chosen hashes whose first `bits` are `number`."""
    if not bits:
        return hashes if where is True else hashes[where]
    inside = hashes >> np.uint64(64 - bits) == number
    part: UInt64s = hashes[inside if where is True else inside & where]
    return part


def related(shared: Mapping[Key, SharedKey], keys: Sequence[Key], inside: Callable[[Int64s], Bools]) -> Int64s:
    """The good rows `inside` that may repeat one of `keys`, and all rows that decide about them: those which share a
    key with one of these, and so on. Ascending."""
    parts = [(shared[key], shared[key].among(shared[key].good)) for key in keys]
    chosen = np.unique(np.concatenate([np.zeros(0, np.int64), *(s.rows[w & inside(s.rows)] for s, w in parts)]))
    while True:
        wider = [chosen]
        for one, sharing in parts:
            hashes = one.hashes[np.isin(one.rows, chosen) & sharing]
            wider.append(one.rows[sharing & np.isin(one.hashes, hashes)])
        more = np.unique(np.concatenate(wider))
        if len(more) == len(chosen):
            return chosen
        chosen = more
