"""Compiled loops over the columns of `cep_core.matches.run.buffer`: reading runs, dropping what is past."""

from __future__ import annotations

from typing import Any

import numpy as np

from cep_core import compiled
from cep_core.events.array_types import AnyArray, Int32s, Int64s, UInt64s
from cep_core.matches.kernels.match_ids import LANES, salted

BEGUN, HEIGHT, MATCHES, STEPS = range(4)
"""Where `read` is: ends begun, height of the stack; and what it has written: matches, steps."""


HEAD, LOW, HIGH, TOTAL, NAME = range(5)
"""Columns of a path."""


@compiled.entry
def strands(
    event: Int64s, part: Int64s, left: Int64s, digests: UInt64s, head: Int32s, at: Int32s, line: Int32s, sums: UInt64s
) -> None:
    """Lay the nodes out in strands: events of one part, each bound after the one before it and nothing else, side by
    side. A match is slices of a few strands, so that it is written without stepping from node to node.

    Of a node, `head` is the link of its strand's first node and `at` its place in `line`, which holds the events
    (int32); `sums[x]` (size + 1, LANES) is the name of all before place x (see `match_names`).
    """
    size = event.shape[0]
    count = np.zeros(size, np.int32)
    for link in range(size):
        if part[link] < 0:
            continue
        x = left[link]
        # a strand goes on with the first node that comes after its newest one
        if x >= 0 and part[x] == part[link] and at[x] + 1 == count[head[x]]:
            head[link], at[link] = head[x], at[x] + 1
        else:
            head[link], at[link] = link, 0
        count[head[link]] += 1
    used = 0
    for link in range(size):
        if part[link] < 0:
            continue
        if head[link] == link:
            at[link] = used
            used += count[link]
        else:
            at[link] += at[head[link]]
        line[at[link]] = event[link]
    for link in range(size):
        if part[link] >= 0:
            for lane in range(LANES):
                sums[at[link] + 1, lane] = salted(digests[event[link], lane], part[link])
    for x in range(used):
        for lane in range(LANES):
            sums[x + 1, lane] += sums[x, lane]


@compiled.entry
def read(
    event: Int64s, part: Int64s, left: Int64s, right: Int64s, newest: Int64s, head: Int32s, at: Int32s, line: Int32s,
    sums: UInt64s, ends: Int64s, horizons: Int64s, time: Int64s, after: Int64s, lead: Int64s, latest: Int64s,
    state: Int64s, stack: Int64s, path: Int64s, events: Int32s, lengths: Int64s, names: UInt64s,
) -> None:  # fmt: skip
    """Write runs to `events`, `lengths` and `names` until one of them is full or there are no more.

    `state` with `stack` (link, depth) and `path`, from the end of the run being read, says where to go on in the next
    call. A step of the path is a slice of a strand: its link, first place, end, how many events there are up to the end
    of the run, their name in two lanes. `after`, `lead`, `latest`: see `cep_core.matches.run.negation_inline`; empty
    where there are none.
    """
    begun, height = state[BEGUN], state[HEIGHT]
    matches = steps = 0
    while True:
        if height == 0:
            if begun == ends.shape[0]:
                break
            stack[0, 0], stack[0, 1] = ends[begun], 0
            height = 1
            begun += 1
        horizon, end = horizons[begun - 1], event[ends[begun - 1]]
        height -= 1
        link, depth = stack[height, 0], stack[height, 1]
        while True:
            if part[link] < 0:
                a, b = left[link], right[link]
                gone_a, gone_b = a < 0 or newest[a] <= horizon, b < 0 or newest[b] <= horizon
                if gone_a and gone_b:
                    break
                if not gone_a and not gone_b:
                    stack[height, 0], stack[height, 1] = a, depth
                    height += 1
                link = a if gone_b else b
                continue
            first, k, total = head[link], part[link], 0
            one, two = np.int64(0), np.int64(0)
            if depth > 0:
                total, one, two = path[depth - 1, TOTAL], path[depth - 1, NAME], path[depth - 1, NAME + 1]
                later = path[depth - 1, HEAD]
                if after.shape[0] > 0 and part[later] != k and event[link] < after[k + 1, event[later]]:
                    break
            low, high = at[first], at[link] + 1
            path[depth, HEAD], path[depth, LOW], path[depth, HIGH], path[depth, TOTAL] = (
                first, low, high, total + high - low
            )  # fmt: skip
            path[depth, NAME] = one + np.int64(sums[high, 0] - sums[low, 0])
            path[depth, NAME + 1] = two + np.int64(sums[high, 1] - sums[low, 1])
            if left[first] >= 0:
                link = left[first]
                depth += 1
                continue
            if lead.shape[0] > 0 and (lead[event[first]] > horizon or time[event[first]] > latest[end]):
                break
            if matches == lengths.shape[0] or steps + path[depth, TOTAL] > events.shape[0]:
                stack[height, 0], stack[height, 1] = link, depth
                height += 1
                state[BEGUN], state[HEIGHT], state[MATCHES], state[STEPS] = begun, height, matches, steps
                return
            for x in range(lengths.shape[1]):
                lengths[matches, x] = 0
            for d in range(depth, -1, -1):
                x, many = path[d, LOW], path[d, HIGH] - path[d, LOW]
                for i in range(many):
                    events[steps + i] = line[x + i]
                steps += many
                lengths[matches, part[path[d, HEAD]]] += many
            for lane in range(LANES):
                names[matches, lane] = np.uint64(path[depth, NAME + lane])
            matches += 1
            break
    state[BEGUN], state[HEIGHT], state[MATCHES], state[STEPS] = begun, height, matches, steps


@compiled.entry
def compact(
    event: Int64s, part: Int64s, left: Int64s, right: Int64s, newest: Int64s, links: Int64s, horizon: int
) -> tuple[Any, Any]:  # fmt: skip
    """The columns (one row each) of what is behind `links` and started after `horizon`, and the new number of
    each link (-1: gone). Links point to smaller numbers only; a fork may lose a side (-1), a node never what came
    before it, which started when its newest run did."""
    size = event.shape[0]
    numbers = np.full(size, -1, np.int64)
    for i in range(links.shape[0]):
        if newest[links[i]] > horizon:
            numbers[links[i]] = 0
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


@compiled.entry
def listed(events: Int32s, bounds: Int64s, k: int, ids: AnyArray, out: AnyArray) -> None:
    """out: ids[e] of the events e of part k of each match, one match after the other. `bounds`: see `Chunk`."""
    at = 0
    for m in range(bounds.shape[0]):
        for i in range(bounds[m, k], bounds[m, k + 1]):
            out[at] = ids[events[i]]
            at += 1
