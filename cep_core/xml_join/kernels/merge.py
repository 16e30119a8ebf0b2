"""The value join: witnesses of two sides, sorted by the hash of their joined values and then by time, are merged.

Equal hashes are only candidates: a pair counts when its values are equal one by one.
"""

from __future__ import annotations

from typing import NamedTuple

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Int64s, UInt64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed

LEFT, RIGHT = range(2)
"""Columns of pairs of columns, and of answers."""


class Sides(NamedTuple):
    """Witnesses of all sides: where each side begins, and the end; the hash of a witness' joined values, its time, its
    document's id as a number, and its values as codes (.., columns)."""

    bounds: Int64s
    hashes: UInt64s
    times: Int64s
    ids: Int64s
    codes: Int64s


@compiled.entry
def merge(
    sides: Sides, left: int, right: int, pairs: Int64s, followed: bool, within: int, low: int, high: int, out: Int64s
) -> int:
    """Writes (left row, right row) of each pair of witnesses into `out` as far as it reaches, and counts them all.

    `left`, `right`: the numbers of the sides; `pairs` (n, 2): columns of `codes` that are equal; times in microseconds;
    the later one is in [low, high).
    """
    bounds, hashes, times, ids, codes = borrowed(sides)
    pairs, out = borrowed(pairs), borrowed(out)
    a, a_end = bounds[left], bounds[left + 1]
    b, b_end = bounds[right], bounds[right + 1]
    count = 0
    room = out.shape[0]
    while a < a_end and b < b_end:
        h = hashes[a]
        if hashes[b] < h:
            b += 1
            continue
        if hashes[b] > h:
            a += 1
            continue
        last_a = a
        while last_a < a_end and hashes[last_a] == h:
            last_a += 1
        last_b = b
        while last_b < b_end and hashes[last_b] == h:
            last_b += 1
        first = b
        for i in range(a, last_a):
            time = times[i]
            lowest = time + 1 if followed else time - within
            while first < last_b and times[first] < lowest:
                first += 1
            j = first
            while j < last_b and times[j] - within <= time:
                later = max(time, times[j])
                if low <= later < high and ids[i] != ids[j]:
                    equal = True
                    for k in range(pairs.shape[0]):
                        if codes[i, pairs[k, LEFT]] != codes[j, pairs[k, RIGHT]]:
                            equal = False
                            break
                    if equal:
                        if count < room:
                            out[count, LEFT], out[count, RIGHT] = i, j
                        count += 1
                j += 1
        a, b = last_a, last_b
    return count


@compiled.entry
def most_per_document(answers: Int64s, times: Int64s, documents: Int64s, counts: Int64s) -> int:
    """The largest number of `answers` (left row, right row) that end with one document; `counts` of all documents is
    zero before and after."""
    most = 0
    for r in range(answers.shape[0]):
        i, j = answers[r, LEFT], answers[r, RIGHT]
        if times[i] >= times[j]:
            counts[documents[i]] += 1
            most = max(most, counts[documents[i]])
        if times[j] >= times[i]:
            counts[documents[j]] += 1
            most = max(most, counts[documents[j]])
    for r in range(answers.shape[0]):
        counts[documents[answers[r, LEFT]]] = 0
        counts[documents[answers[r, RIGHT]]] = 0
    return most
