"""Running a plan of kind matches over a table of events: partition by partition, matches as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pyarrow as pa

from trendlake.cep_core.errors import TooManyMatchesError
from trendlake.cep_core.events.array_types import Int32s, Int64s
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.language.unparse import moment
from trendlake.cep_core.matches.compile.plan import MatchesPlan
from trendlake.cep_core.matches.compile.states import states_of
from trendlake.cep_core.matches.run import matcher
from trendlake.cep_core.matches.run.buffer import Chunk, Match, Reading, by_event, chunk_of
from trendlake.cep_core.matches.run.events import Stream
from trendlake.cep_core.matches.run.matcher import Automaton
from trendlake.cep_core.matches.run.negation_deferred import Finish, match_of
from trendlake.cep_core.matches.run.negation_inline import Fences
from trendlake.cep_core.matches.run.non_overlap import Candidate, preferred
from trendlake.cep_core.matches.run.results import result_table


def run_matches(
    plan: MatchesPlan, columns: Columns, windows: range | None = None, watermark: int | None = None
) -> pa.Table:
    """Results (`plan.result_schema`) of a plan over events, of all keys, in any order; of `windows` only, if
    given. Those of a NOT with a limit at the end are held back until the `watermark` (microseconds; None: the end of
    the windows) has reached it. Raises BadEventsError, TooManyMatchesError."""
    if windows is not None:
        columns = _within(plan, columns, windows)
    stream = Stream(plan, columns)
    if plan.output == "compressed":
        from trendlake.cep_core.matches.run.compressed import graphs

        return graphs(plan, stream, windows, watermark)
    return result_table(plan, stream, Matches(plan, stream, windows, watermark).chunks())


def _within(plan: MatchesPlan, columns: Columns, windows: range) -> Columns:
    """Only the events that `windows` need."""
    name = plan.schema.event_time
    if not len(windows):
        return columns.chosen(np.zeros(0, np.int64))
    return columns.within(name, *plan.windows.span(windows)) if columns.has(name) else columns


class Matches:
    """The matches of a stream, those of `windows` only (None: all), that `watermark` (None: any) lets decide."""

    def __init__(
        self, plan: MatchesPlan, stream: Stream, windows: range | None, watermark: int | None = None, **automaton: bool
    ) -> None:
        self.plan = plan
        self.stream = stream
        self.finish = Finish(plan, stream)
        self.fences = Fences(plan, stream)
        self.windows = windows
        self.watermark = watermark
        self.automaton = Automaton(plan, stream, **automaton)
        states = states_of(plan)
        asked = bool(self.finish.nots)
        self.reading = Reading(len(plan.parts), stream.digests(), self.fences.bounds, asked, states.in_order)
        self.once = None if states.unambiguous else Once()

    def chunks(self) -> Iterator[Chunk]:
        """Some at a time. Raises TooManyMatchesError."""
        counts: Counter[tuple[int, int]] = Counter()
        chunks = self._one_by_one() if self.plan.output == "non_overlap" else self._each()
        for chunk in chunks:
            if self.watermark is not None and (limit := self.plan.limit_of_last) is not None:
                chunk = chunk.subset(self.stream.time[chunk.last] + limit <= self.watermark)
            panes, first = self._panes(chunk)
            if self.windows is not None:
                mine = (panes >= self.windows[0]) & (panes <= self.windows[-1])
                chunk, panes, first = chunk.subset(mine), panes[mine], first[mine]
            if self.plan.limit is not None:
                self._count(counts, panes, first)
            yield chunk

    def _panes(self, chunk: Chunk) -> tuple[Int64s, Int32s]:
        """The pane that each match is decided in, and its first event."""
        time, first = self.stream.time, chunk.first
        return self.plan.decided(time[first], time[chunk.last]) // self.plan.pane, first

    def _count(self, counts: Counter[tuple[int, int]], panes: Int64s, first: Int32s) -> None:
        keys = np.stack([self.stream.codes[first], panes], axis=1)
        for (code, pane), event, count in zip(*_distinct(keys, first), strict=True):
            counts[code, pane] += count
            if counts[code, pane] >= (self.plan.limit or 0):
                raise self._too_many(event, pane)

    def _each(self) -> Iterator[Chunk]:
        """Every match. Ends of runs are collected, and read when there are many, or much that is past."""
        ends: list[int] = []
        horizons: list[int] = []
        buffer = self.automaton.buffer
        for nodes, starts, horizon in self.automaton.blocks():
            ends += nodes
            horizons += starts
            if len(buffer) > matcher.MANY_LINKS:
                yield from self._read(ends, horizons)
                ends, horizons = [], []
                self.automaton.compact(horizon)
        yield from self._read(ends, horizons)

    def _read(self, ends: list[int], horizons: list[int]) -> Iterator[Chunk]:
        if self.windows is not None and not self.plan.trails:
            ends, horizons = self._wanted(ends, horizons, self.windows)
        for chunk in self.automaton.buffer.chunks(ends, horizons, self.reading):
            surviving = self.finish.surviving(chunk)
            yield surviving if self.once is None else self.once.new(surviving)

    def _wanted(self, ends: list[int], horizons: list[int], windows: range) -> tuple[list[int], list[int]]:
        """Those ends that may belong to the windows: the others are not read."""
        pane, within = self.plan.pane, self.plan.within
        both = [pair for pair in zip(ends, horizons, strict=True) if (pair[1] + within) // pane in windows]
        return [node for node, _ in both], [horizon for _, horizon in both]

    def _one_by_one(self) -> Iterator[Chunk]:
        """The match that ends first, of several the one `preferred` names first; then the next that starts later."""
        matches: list[Match] = []
        for ends, horizon in self.automaton.endings():
            match = self._preferred(ends, horizon)
            if match is not None:
                matches.append(match)
                self.automaton.forget()
            if len(self.automaton.buffer) > matcher.MANY_LINKS:
                self.automaton.compact(horizon)
        yield chunk_of(matches, len(self.plan.parts), self.reading.digests)

    def _preferred(self, ends: list[int], horizon: int) -> Match | None:
        """The preferred match. `ends`: nodes of events that are not later than each other."""
        buffer = self.automaton.buffer
        firsts: list[list[tuple[int, int]]] = []
        for nodes in by_event(buffer, ends).values():
            for alike in self.fences.ends(buffer, nodes):
                candidates = preferred(buffer, alike, horizon, self.fences)
                firsts += islice((one.pairs for one in candidates if self._holds(one)), 1)
        return match_of(self.plan, min(firsts)) if firsts else None

    def _holds(self, candidate: Candidate) -> bool:
        """Whether the NOTs let one of its runs be a match."""
        if not self.finish.nots:
            return True
        return any(not self.finish.ruled_out(steps) for steps in candidate.runs(self.automaton.buffer))

    def _too_many(self, event: int, pane: int) -> TooManyMatchesError:
        values = ((name, self.stream.raw(name)[event]) for name in self.plan.partition)
        partition = ", ".join(f"{name} = {value!r}" for name, value in values) or "the whole stream"
        start, end = moment(pane * self.plan.pane), moment((pane + 1) * self.plan.pane)
        return TooManyMatchesError(
            f"{partition}: limit_per_partition, {self.plan.limit:,} matches, is reached in [{start}, {end})",
            hint="select fewer events, shorten within, raise the limit, or ask for output: compressed",
        )


class Once:
    """Leaves each match in once, where a pattern reads it in several ways. Matches come in the order of their last
    events, and equal ones have the same."""

    def __init__(self) -> None:
        self.event = -1
        self.names: set[tuple[int, ...]] = set()

    def new(self, chunk: Chunk) -> Chunk:
        """The chunk without matches that came before."""
        mask = np.ones(len(chunk.lengths), bool)
        for i, (event, name) in enumerate(zip(chunk.last.tolist(), chunk.names.tolist(), strict=True)):
            if event != self.event:
                self.event, self.names = event, set()
            mask[i] = tuple(name) not in self.names
            self.names.add(tuple(name))
        return chunk.subset(mask)


def _distinct(keys: Int64s, first: Int32s) -> tuple[list[list[int]], list[int], list[int]]:
    """The different rows of `keys`, a value of `first` for each, and how often it comes."""
    rows, at, counts = np.unique(keys, axis=0, return_index=True, return_counts=True)
    return rows.tolist(), first[at].tolist(), counts.tolist()
