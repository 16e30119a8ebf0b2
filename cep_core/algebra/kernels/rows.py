"""Expressions over rows, and rows that are equal."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.algebra.kernels.arguments import Leaves, Machine
from trendlake.cep_core.algebra.kernels.pairs import load
from trendlake.cep_core.events.array_types import AnyArray, Bools, Int64s, UInt64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.kernels.vm import execute


@compiled.entry
def evaluate(
    machine: Machine, low: int, high: int, leaves: Leaves, rows: Int64s, slot: int, out: Int64s, out_null: Bools
) -> int:
    """Runs code[low:high] for each of `rows`. The value of `slot` goes to `out`. -1, or the place in `rows` of one
    whose whole numbers leave 64 bits."""
    code, values, reals, null, cases = borrowed(machine)
    leaves = borrowed(leaves)
    for at in range(rows.shape[0]):
        load(leaves, rows[at], values, null)
        if not execute(code, low, high, values, reals, null, cases):
            return at
        out[at], out_null[at] = values[slot], null[slot]
    return -1


@compiled.entry
def counting_order(codes: Int64s, count: int, order: Int64s, result: Int64s, bounds: Int64s) -> None:
    """The rows of `order`, sorted by codes 0..count-1 and otherwise as they are; bounds[c]: where code c begins. Rows
    of code -1 are left out."""
    for row in order:
        if codes[row] >= 0:
            bounds[codes[row] + 1] += 1
    for c in range(count):
        bounds[c + 1] += bounds[c]
    begin = bounds[:count].copy()
    for row in order:
        c = codes[row]
        if c >= 0:
            result[begin[c]] = row
            begin[c] += 1


@compiled.entry
def ascending(values: AnyArray) -> bool:
    """Whether no value is less than the one before."""
    for i in range(1, values.shape[0]):  # noqa: SIM110 - numba compiles loops
        if values[i] < values[i - 1]:
            return False
    return True


@compiled.entry
def all_different(words: Int64s) -> bool:
    """Whether no two words are equal, for words that ascend or whose range is small. False for others."""
    n = words.shape[0]
    low, high, ascend = np.int64(2**63 - 1), np.int64(-(2**63)), True
    for i in range(n):
        low, high = min(low, words[i]), max(high, words[i])
        ascend = ascend and (i == 0 or words[i] > words[i - 1])
    if ascend:
        return True
    if np.uint64(high) - np.uint64(low) >= np.uint64(4 * n):
        return False
    seen = np.zeros(high - low + 1, np.bool_)
    for word in words:
        if seen[word - low]:
            return False
        seen[word - low] = True
    return True


@compiled.entry
def ascending_pairs(first: Int64s, second: Int64s) -> bool:
    """Whether no pair of values is less than the one before."""
    for i in range(1, first.shape[0]):
        if first[i] < first[i - 1] or (first[i] == first[i - 1] and second[i] < second[i - 1]):
            return False
    return True


@compiled.entry
def ascending_by_group(codes: Int64s, count: int, values: Int64s) -> bool:
    """Whether of each code 0..count-1 no value is less than the one before of that code."""
    last = np.full(count, np.int64(-(2**63)), np.int64)
    for i in range(values.shape[0]):
        c = codes[i]
        if c >= 0:
            if values[i] < last[c]:
                return False
            last[c] = values[i]
    return True


@compiled.entry
def ascending_events(part: Int64s, start: Int64s, end: Int64s) -> bool:
    """Whether each event is after the one before by partition and end, or by partition, start and end: then no two are
    equal."""
    by_end, by_start = True, True
    for i in range(1, part.shape[0]):
        if part[i] < part[i - 1] or not (by_end or by_start):
            return False
        if part[i] == part[i - 1]:
            by_end = by_end and end[i] > end[i - 1]
            by_start = by_start and (start[i] > start[i - 1] or (start[i] == start[i - 1] and end[i] > end[i - 1]))
    return by_end or by_start


@compiled.entry
def mixed(hashes: UInt64s, words: Int64s) -> None:
    """Mixes a column into the hashes of rows."""
    for i in range(hashes.shape[0]):
        h = (hashes[i] ^ np.uint64(words[i])) * np.uint64(0x9E3779B97F4A7C15)
        hashes[i] = h ^ (h >> np.uint64(29))


@compiled.entry
def first_of_equal(hashes: UInt64s, table: Int64s, heads: Int64s, links: Int64s, keep: Bools) -> None:
    """keep[i]: whether no row before i equals it. `table`: (rows, columns); `heads` (a power of two of them): -1."""
    mask = heads.shape[0] - 1
    for i in range(table.shape[0]):
        b = np.int64(hashes[i] >> np.uint64(20)) & mask
        j = heads[b]
        while j >= 0:
            equal = hashes[i] == hashes[j]
            if equal:
                for k in range(table.shape[1]):
                    if table[i, k] != table[j, k]:
                        equal = False
                        break
            if equal:
                break
            j = links[j]
        keep[i] = j < 0
        if j < 0:
            links[i], heads[b] = heads[b], i
