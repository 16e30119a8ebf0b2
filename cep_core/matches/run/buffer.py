"""The shared match buffer: every run's events in one graph, read backwards from the event that ends a match.

A link is a number. It represents a node or a fork. A node is an event bound in a state after any of the runs behind
another link (or as the start of a run); a fork is either of two links. Agrawal et al. (2008, 5.1) keep stacks with
versioned pointers. Runs that were merged have one future, so here every path back is a run, and no version is needed.
`newest` is the latest start among the runs behind a link, so paths whose start has fallen out of the window are never
entered. Before matches are read the nodes are laid out in strands (`cep_core.matches.kernels.buffer`): the cost of a
match is a copy of its events, and its forks.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import TypeAlias

import numpy as np

from trendlake.cep_core.events.array_types import Bools, Int32s, Int64s, UInt64s
from trendlake.cep_core.matches.kernels.buffer import (
    BEGUN,
    HEIGHT,
    MATCHES,
    NAME,
    STEPS,
    Bounds,
    Graph,
    Place,
    Runs,
    Strands,
    compact,
    grouped,
    read,
    strands,
)
from trendlake.cep_core.matches.kernels.match_ids import LANES, names
from trendlake.cep_core.matches.run.match_ids import Digests

Step: TypeAlias = tuple[int, int]
"""(event, state)."""
Match: TypeAlias = list[list[int]]
"""For each part its events (indices into the stream), in order."""

NOTHING = -1
CHUNK_STEPS = 1 << 20
"""Events of matches that are read at a time, at least."""
CHUNK_MATCHES = 1 << 16


@dataclass(frozen=True)
class Chunk:
    """Some matches: their events end to end, each match's part by part (`events`, int32 indices into the stream), how
    many of each part it has (`lengths`: one row a match, one column a part), and its name (see
    `cep_core.matches.run.match_ids`). `timed`: the events, each match's in the order of time; `states`: of these, where
    they are asked for. Read from a buffer, it is good until the next one is asked for."""

    events: Int32s
    lengths: Int64s
    names: UInt64s
    timed: Int32s
    states: Int32s

    @cached_property
    def bounds(self) -> Int64s:
        """(M, parts + 1): where in `events` each part of each match begins, and where the match ends."""
        ends = np.cumsum(self.lengths.sum(axis=1))
        starts = np.zeros((len(self.lengths), self.lengths.shape[1] + 1), np.int64)
        starts[1:, 0] = ends[:-1]
        starts[:, 1:] = starts[:, :1] + np.cumsum(self.lengths, axis=1)
        return starts

    @property
    def first(self) -> Int32s:
        """The first event of each match."""
        return self.timed[self.bounds[:, 0]]

    @property
    def last(self) -> Int32s:
        """The last one."""
        return self.timed[self.bounds[:, -1] - 1]

    def subset(self, mask: Bools) -> Chunk:
        """The matches where `mask` holds."""
        if mask.all():
            return self
        steps = np.repeat(mask, self.lengths.sum(axis=1))
        events = self.events[steps]
        timed = events if self.timed is self.events else self.timed[steps]
        states = self.states[steps] if len(self.states) else self.states
        return Chunk(events, self.lengths[mask], self.names[mask], timed, states)

    def steps(self) -> Iterator[list[Step]]:
        """The steps of each match, in the order of time."""
        pairs = list(zip(self.timed.tolist(), self.states.tolist(), strict=True))
        yield from (pairs[low:high] for low, high in self.bounds[:, [0, -1]].tolist())

    def matches(self) -> Iterator[Match]:
        """One by one, as lists."""
        events = self.events.tolist()
        for bounds in self.bounds.tolist():
            yield [events[low:high] for low, high in pairwise(bounds)]


def by_event(buffer: Buffer, nodes: Iterable[int]) -> dict[int, list[int]]:
    """The nodes of each event, in its order."""
    events: dict[int, list[int]] = {}
    for node in nodes:
        events.setdefault(buffer.event[node], []).append(node)
    return dict(sorted(events.items()))


def chunk_of(matches: Sequence[Match], parts: int, digests: Digests) -> Chunk:
    """Matches that were found one by one."""
    lengths = np.array([[len(part) for part in match] for match in matches], np.int64).reshape(-1, parts)
    events = np.array([event for match in matches for part in match for event in part], np.int32)
    named = np.empty((len(lengths), LANES), np.uint64)
    names(digests.of(events), events, lengths, named)
    timed = np.array([event for match in matches for event in sorted(chain.from_iterable(match))], np.int32)
    return Chunk(events, lengths, named, timed, np.zeros(0, np.int32))


@dataclass(frozen=True)
class Reading:
    """The arguments of reading matches, without the buffer. `parts`: how many; `digests`: of the events' ids; `states`:
    whether those of the events are asked for; `in_order`: whether the parts of a match begin in their order."""

    parts: int
    digests: Digests
    bounds: Bounds
    states: bool
    in_order: bool


class Buffer:
    """Columns by link. `event`, `state`: of a node (a fork: -1); `left`: what came before a node (-1: it starts runs),
    or one side of a fork; `right`: the other; `newest`: microseconds."""

    def __init__(self) -> None:
        self.event, self.state, self.left, self.right, self.newest = (array("q") for _ in range(5))

    def __len__(self) -> int:
        return len(self.event)

    def node(self, event: int, state: int, before: int, newest: int) -> int:
        """`event` bound in `state` after the runs behind `before` (NOTHING: as the first)."""
        return self._add(event, state, before, NOTHING, newest)

    def joined(self, a: int | None, b: int) -> int:
        """The runs behind both links."""
        if a is None:
            return b
        return self._add(NOTHING, NOTHING, a, b, max(self.newest[a], self.newest[b]))

    def _add(self, event: int, state: int, left: int, right: int, newest: int) -> int:
        self.event.append(event)
        self.state.append(state)
        self.left.append(left)
        self.right.append(right)
        self.newest.append(newest)
        return len(self.event) - 1

    def extend(self, columns: Int64s) -> None:
        """New links: (5, n) int64, the columns in order."""
        for mine, new in zip((self.event, self.state, self.left, self.right, self.newest), columns, strict=True):
            mine.frombytes(np.ascontiguousarray(new, np.int64).view(np.uint8).data)

    def predecessors(self, node: int, horizon: int) -> list[int]:
        """The nodes that a node may come directly after, on paths that start after `horizon`."""
        predecessors: list[int] = []
        todo = [self.left[node]] if self.left[node] != NOTHING else []
        while todo:
            link = todo.pop()
            if link == NOTHING or self.newest[link] <= horizon:
                continue
            if self.state[link] == NOTHING:
                todo += [self.left[link], self.right[link]]
            else:
                predecessors.append(link)
        return predecessors

    def _graph(self) -> Graph:
        """Views, to be dropped before the next node is added."""
        columns = (self.event, self.state, self.left, self.right, self.newest)
        return Graph(*(np.frombuffer(column, np.int64) if column else np.zeros(0, np.int64) for column in columns))

    def chunks(self, ends: Sequence[int], horizons: Sequence[int], reading: Reading) -> Iterator[Chunk]:
        """Every run that ends with one of the nodes `ends`, started after its horizon and crosses no fence, in some
        order."""
        if not ends:
            return
        graph, size, bounds = self._graph(), len(self), reading.bounds
        head, at, line = (np.empty(size, np.int32) for _ in range(3))
        laid = Strands(head, at, line, np.zeros((size + 1, LANES), np.uint64))
        digests = reading.digests.of(graph.event[graph.state != NOTHING])
        strands(graph, digests, bounds.parts, bounds.between, laid)
        endings = np.array(ends, np.int64), np.array(horizons, np.int64)
        state = np.zeros(4, np.int64)
        place = Place(state, np.empty((size + 2, 2), np.int64), np.empty((size + 2, NAME + LANES), np.int64))
        room = max(CHUNK_STEPS, size)
        with_states = reading.states or not reading.in_order
        runs = Runs(
            events=np.empty(room, np.int32),
            states=np.empty(room if with_states else 0, np.int32),
            lengths=np.empty((CHUNK_MATCHES, reading.parts), np.int64),
            names=np.empty((CHUNK_MATCHES, LANES), np.uint64),
        )
        while state[BEGUN] < len(ends) or state[HEIGHT] > 0:
            read(graph, laid, *endings, bounds, place, runs)
            matches, steps = state[MATCHES], state[STEPS]
            timed, states = runs.events[:steps], runs.states[:steps]
            chunk = Chunk(timed, runs.lengths[:matches], runs.names[:matches], timed, states)
            if not reading.in_order:
                events = np.empty(steps, np.int32)
                grouped(timed, states, bounds.parts, chunk.bounds, events)
                chunk = replace(chunk, events=events)
            yield chunk

    def compacted(self, links: Iterable[int], horizon: int) -> dict[int, int]:
        """Keeps only what is behind `links` and started after `horizon`; old numbers of those links -> new ones."""
        live = np.array(sorted(set(links)), np.int64)
        columns, numbers = compact(self._graph(), live, horizon)
        self.event, self.state, self.left, self.right, self.newest = (array("q", bytes(column)) for column in columns)
        return dict(zip(live.tolist(), numbers[live].tolist(), strict=True))
