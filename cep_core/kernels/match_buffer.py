"""Compiled loops over the columns of `matches.buffer`: reading runs, dropping what is past, naming matches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = Any


@njit(cache=True, nogil=True)
def read(
    event: Array, part: Array, left: Array, right: Array, newest: Array, ends: Array, horizons: Array, state: Array,
    stack: Array, path: Array, events: Array, lengths: Array,
) -> None:  # fmt: skip
    """Write runs to `events` and `lengths` until one of them is full or there are no more.

    `state`: number of ends begun, height of the stack, matches and steps written; with `stack` (link, depth) and `path`
    (nodes from the end) it says where to go on in the next call.
    """
    begun, height = state[0], state[1]
    matches = steps = 0
    while True:
        if height == 0:
            if begun == ends.shape[0]:
                break
            stack[0, 0], stack[0, 1] = ends[begun], 0
            height = 1
            begun += 1
        horizon = horizons[begun - 1]
        height -= 1
        link, depth = stack[height, 0], stack[height, 1]
        if part[link] < 0:
            if left[link] >= 0 and newest[left[link]] > horizon:
                stack[height, 0], stack[height, 1] = left[link], depth
                height += 1
            if right[link] >= 0 and newest[right[link]] > horizon:
                stack[height, 0], stack[height, 1] = right[link], depth
                height += 1
            continue
        path[depth] = link
        if left[link] >= 0:
            stack[height, 0], stack[height, 1] = left[link], depth + 1
            height += 1
            continue
        if matches == lengths.shape[0] or steps + depth + 1 > events.shape[0]:
            height += 1
            break
        for i in range(depth, -1, -1):
            events[steps] = event[path[i]]
            lengths[matches, part[path[i]]] += 1
            steps += 1
        matches += 1
    state[0], state[1], state[2], state[3] = begun, height, matches, steps


@njit(cache=True, nogil=True)
def compact(
    event: Array, part: Array, left: Array, right: Array, newest: Array, kept: Array, horizon: int
) -> tuple[Any, Any]:  # fmt: skip
    """The columns (one row each) of what is behind the links `kept` and started after `horizon`, and the new number of
    each link (-1: gone). Links point to smaller numbers only; a fork may lose a side (-1), a node never what came
    before it, which started when its newest run did."""
    size = event.shape[0]
    numbers = np.full(size, -1, np.int64)
    for i in range(kept.shape[0]):
        if newest[kept[i]] > horizon:
            numbers[kept[i]] = 0
    for link in range(size - 1, -1, -1):
        if numbers[link] < 0:
            continue
        if left[link] >= 0 and newest[left[link]] > horizon:
            numbers[left[link]] = 0
        if right[link] >= 0 and newest[right[link]] > horizon:
            numbers[right[link]] = 0
    count = 0
    for link in range(size):
        if numbers[link] >= 0:
            numbers[link] = count
            count += 1
    columns = np.empty((5, count), np.int64)
    for link in range(size):
        i = numbers[link]
        if i < 0:
            continue
        columns[0, i], columns[1, i], columns[4, i] = event[link], part[link], newest[link]
        columns[2, i] = numbers[left[link]] if left[link] >= 0 else -1
        columns[3, i] = numbers[right[link]] if right[link] >= 0 else -1
    return columns, numbers


@njit(cache=True, nogil=True)
def names(digests: Array, events: Array, lengths: Array, found: Array) -> None:
    """found[m] (two uint64) of each match: its events' `digests` (two uint64 each) and parts, folded in order.

    Each fold is a bijection of the state (SplitMix64's finaliser, Steele et al. 2014), so two matches share a name only
    where digests collide by chance: 2^-128 a pair.
    """
    step = 0
    for m in range(lengths.shape[0]):
        for lane in range(2):
            state = np.uint64(0x9E3779B97F4A7C15)
            at = step
            for k in range(lengths.shape[1]):
                salt = np.uint64(k + 1) * np.uint64(0xD1342543DE82EF95)
                for _ in range(lengths[m, k]):
                    z = (state ^ digests[events[at], lane]) + salt
                    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                    state = z ^ (z >> np.uint64(31))
                    at += 1
            found[m, lane] = state
        for k in range(lengths.shape[1]):
            step += lengths[m, k]
