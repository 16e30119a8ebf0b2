"""Compiled loops over the columns of `cep_core.matches.run.buffer`: reading runs, dropping what is past."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import AnyArray, Int32s, Int64s, UInt64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.matches.kernels.match_ids import LANES, salted

BEGUN, HEIGHT, MATCHES, STEPS = range(4)
"""Where `read` is: ends begun, height of the stack; and what it has written: matches, steps."""
LINK, DEPTH = range(2)
"""Columns of `Place.stack`."""
HEAD, LOW, HIGH, TOTAL, NAME = range(5)
"""Columns of `Place.path`: a slice of a strand is a link, a first place and an end; how many events there are up to
the end of the run; their name in LANES."""


class Graph(NamedTuple):
    """A buffer's columns by link, see `cep_core.matches.run.buffer.Buffer`."""

    event: Int64s
    state: Int64s
    left: Int64s
    right: Int64s
    newest: Int64s


class Strands(NamedTuple):
    """Nodes laid out in strands. By link, `head` is the link of a strand's first node and `at` the node's place in
    `line`, which holds the events; `sums` (size + 1, LANES): the name of all before each place (see
    `cep_core.matches.run.match_ids`)."""

    head: Int32s
    at: Int32s
    line: Int32s
    sums: UInt64s


class Bounds(NamedTuple):
    """Of events: `time`, `low` (see `cep_core.matches.run.events`), and what NOTs say, see
    `cep_core.matches.run.negation_inline`; these are empty where there are none. `parts`: of each state."""

    time: Int64s
    low: Int64s
    parts: Int64s
    after: Int64s
    spared: Int64s
    lead: Int64s
    latest: Int64s
    between: Int64s
    first: Int64s
    last: Int64s


class Place(NamedTuple):
    """Where to go on in the next call: `state`, with `stack` and the `path` from the end of the run being read."""

    state: Int64s
    stack: Int64s
    path: Int64s


class Runs(NamedTuple):
    """Runs that are read: events, end to end; their states, if there is room for them; of each run its events by part,
    and its name in LANES."""

    events: Int32s
    states: Int32s
    lengths: Int64s
    names: UInt64s


@compiled.entry
def strands(graph: Graph, digests: UInt64s, parts: Int64s, between: Int64s, laid: Strands) -> None:
    """Arrange the nodes in strands: events of one state, each bound after the one before it and nothing else, side by
    side. A match is slices of a few strands, so that it is written without stepping from node to node. No NOT is
    between the events of a strand."""
    event, state, left, _, _ = borrowed(graph)
    head, at, line, sums = borrowed(laid)
    digests, parts, between = borrowed(digests), borrowed(parts), borrowed(between)
    size = event.shape[0]
    count = np.zeros(size, np.int32)
    for link in range(size):
        if state[link] < 0:
            continue
        x, k = left[link], state[link]
        # a strand goes on with the first node that comes after its newest one
        follows = x >= 0 and state[x] == k and at[x] + 1 == count[head[x]]
        if follows and (between.shape[0] == 0 or between[k, k] < 0):
            head[link], at[link] = head[x], at[x] + 1
        else:
            head[link], at[link] = link, 0
        count[head[link]] += 1
    used = 0
    for link in range(size):
        if state[link] < 0:
            continue
        if head[link] == link:
            at[link] = used
            used += count[link]
        else:
            at[link] += at[head[link]]
        line[at[link]] = event[link]
    for link in range(size):
        if state[link] >= 0:
            for lane in range(LANES):
                sums[at[link] + 1, lane] = salted(digests[event[link], lane], parts[state[link]])
    for x in range(used):
        for lane in range(LANES):
            sums[x + 1, lane] += sums[x, lane]


@compiled.entry
def read(graph: Graph, laid: Strands, ends: Int64s, horizons: Int64s, bounds: Bounds, place: Place, runs: Runs) -> None:
    """Write the runs that end with `ends` and start after their `horizons` to `runs`, until that is full or there are
    no more."""
    event, state_of, left, right, newest = borrowed(graph)
    head, at, line, sums = borrowed(laid)
    time, low_of, parts, after, spared, lead, latest, between, begins, ends_in = borrowed(bounds)
    state, stack, path = borrowed(place)
    events, states, lengths, names = borrowed(runs)
    ends, horizons = borrowed(ends), borrowed(horizons)
    begun, height = state[BEGUN], state[HEIGHT]
    matches = steps = 0
    while True:
        if height == 0:
            if begun == ends.shape[0]:
                break
            stack[0, LINK], stack[0, DEPTH] = ends[begun], 0
            height = 1
            begun += 1
        horizon, end = horizons[begun - 1], event[ends[begun - 1]]
        height -= 1
        link, depth = stack[height, LINK], stack[height, DEPTH]
        while True:
            if state_of[link] < 0:
                a, b = left[link], right[link]
                gone_a, gone_b = a < 0 or newest[a] <= horizon, b < 0 or newest[b] <= horizon
                if gone_a and gone_b:
                    break
                if not gone_a and not gone_b:
                    stack[height, LINK], stack[height, DEPTH] = a, depth
                    height += 1
                link = a if gone_b else b
                continue
            first, k, total = head[link], state_of[link], 0
            one, two = np.int64(0), np.int64(0)
            if depth > 0:
                total, one, two = path[depth - 1, TOTAL], path[depth - 1, NAME], path[depth - 1, NAME + 1]
                if between.shape[0] > 0:
                    later = path[depth - 1, HEAD]
                    e, next_e, row = event[link], event[later], between[k, state_of[later]]
                    if row >= 0 and low_of[e] <= after[row, next_e] and e != spared[row, next_e]:
                        break
            low, high = at[first], at[link] + 1
            path[depth, HEAD], path[depth, LOW], path[depth, HIGH] = first, low, high
            path[depth, TOTAL] = total + high - low
            path[depth, NAME] = one + np.int64(sums[high, 0] - sums[low, 0])
            path[depth, NAME + 1] = two + np.int64(sums[high, 1] - sums[low, 1])
            if left[first] >= 0:
                link = left[first]
                depth += 1
                continue
            if begins.shape[0] > 0:
                row, row_of_end = begins[k], ends_in[state_of[ends[begun - 1]]]
                if row >= 0 and lead[row, event[first]] > horizon:
                    break
                if row_of_end >= 0 and time[event[first]] > latest[row_of_end, end]:
                    break
            if matches == lengths.shape[0] or steps + path[depth, TOTAL] > events.shape[0]:
                stack[height, LINK], stack[height, DEPTH] = link, depth
                height += 1
                state[BEGUN], state[HEIGHT], state[MATCHES], state[STEPS] = begun, height, matches, steps
                return
            for x in range(lengths.shape[1]):
                lengths[matches, x] = 0
            for d in range(depth, -1, -1):
                x, many = path[d, LOW], path[d, HIGH] - path[d, LOW]
                k = state_of[path[d, HEAD]]
                for i in range(many):
                    events[steps + i] = line[x + i]
                if states.shape[0] > 0:
                    for i in range(many):
                        states[steps + i] = k
                steps += many
                lengths[matches, parts[k]] += many
            for lane in range(LANES):
                names[matches, lane] = np.uint64(path[depth, NAME + lane])
            matches += 1
            break
    state[BEGUN], state[HEIGHT], state[MATCHES], state[STEPS] = begun, height, matches, steps


@compiled.entry
def compact(graph: Graph, links: Int64s, horizon: int) -> tuple[Any, Any]:
    """The columns (one row each) of what is behind `links` and started after `horizon`, and the new number of
    each link (-1: gone). Links point to smaller numbers only; a fork may lose a side (-1), a node never what came
    before it, which started when its newest run did."""
    event, state, left, right, newest = borrowed(graph)
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
        columns[0, i], columns[1, i], columns[4, i] = event[link], state[link], newest[link]
        columns[2, i] = numbers[left[link]] if left[link] >= 0 else -1
        columns[3, i] = numbers[right[link]] if right[link] >= 0 else -1
    return columns, numbers


@compiled.entry
def grouped(events: Int32s, states: Int32s, parts: Int64s, bounds: Int64s, out: Int32s) -> None:
    """out: the events of each match part by part, from those in the order of time. `bounds`: see `Chunk`."""
    at = np.zeros(bounds.shape[1], np.int64)
    for m in range(bounds.shape[0]):
        for k in range(bounds.shape[1]):
            at[k] = bounds[m, k]
        for i in range(bounds[m, 0], bounds[m, bounds.shape[1] - 1]):
            k = parts[states[i]]
            out[at[k]] = events[i]
            at[k] += 1


@compiled.entry
def listed(events: Int32s, bounds: Int64s, k: int, ids: AnyArray, out: AnyArray) -> None:
    """out: ids[e] of the events e of part k of each match, one match after the other. `bounds`: see `Chunk`."""
    at = 0
    for m in range(bounds.shape[0]):
        for i in range(bounds[m, k], bounds[m, k + 1]):
            out[at] = ids[events[i]]
            at += 1
