"""Running a plan of kind matches over a table of events: partition by partition, matches as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from cep_core.errors import TooManyMatchesError
from cep_core.matches.automaton import Automaton
from cep_core.matches.buffer import Node, Step, paths
from cep_core.matches.choice import earliest
from cep_core.matches.finish import Finish, Match, match_of
from cep_core.matches.plan import MatchesPlan
from cep_core.matches.results import result_table
from cep_core.matches.stream import Partition, Stream
from cep_core.unparse import moment
from cep_core.values import normalise


def run_matches(plan: MatchesPlan, events: pa.Table, windows: range | None = None) -> pa.Table:
    """Results (`plan.result_schema`) of a plan over `events`, of all keys, in any order; of `windows` only, if
    given. Raises BadEventsError, TooManyMatchesError."""
    if windows is not None:
        events = _within(plan, events, windows)
    stream = Stream(plan, events)
    if plan.output == "compressed":
        from cep_core.matches.compressed import graphs

        return graphs(plan, stream, windows)
    finish = Finish(plan, stream)
    return result_table(finish, list(Matches(plan, stream, finish, windows).all()))


def _within(plan: MatchesPlan, table: pa.Table, windows: range) -> pa.Table:
    """Only the events that `windows` need."""
    name = plan.schema.event_time
    if name not in table.column_names or not len(windows):
        return table.slice(0, 0) if not len(windows) else table
    start, end = plan.windows.span(windows)
    time = normalise(table.column(name)).fill_null(start).to_numpy(zero_copy_only=False)
    return table.filter(pa.array((time >= start) & (time < end)))


class Matches:
    """The matches of a stream, those of `windows` only (None: all)."""

    def __init__(
        self, plan: MatchesPlan, stream: Stream, finish: Finish, windows: range | None, *, merging: bool = True
    ) -> None:
        self.plan = plan
        self.stream = stream
        self.finish = finish
        self.windows = windows
        self.automaton = Automaton(plan, stream, merging=merging)
        self.time = finish.time

    def all(self) -> Iterator[Match]:
        """Partition after partition."""
        choose = self._one_by_one if self.plan.output == "non_overlap" else self._each
        for partition in self.stream.partitions():
            found: Counter[int] = Counter()
            for match in choose(partition):
                pane = self._decided(match) // self.plan.pane
                if self.windows is not None and pane not in self.windows:
                    continue
                found[pane] += 1
                if self.plan.limit is not None and found[pane] >= self.plan.limit:
                    raise self._too_many(match, pane)
                yield match

    def _decided(self, match: Match) -> int:
        return self.plan.decided(self.time[match[0][0]], self.time[match[-1][-1]])

    def _each(self, partition: Partition) -> Iterator[Match]:
        """Every match."""
        for ends, horizon in self.automaton.endings(partition):
            for node in ends if self._wanted(ends[0]) else ():
                yield from self._read(node, horizon)

    def _wanted(self, end: Node) -> bool:
        """Whether matches that end with this event may belong to the windows: those of others are not read."""
        if self.windows is None or self.plan.trails:
            return True
        return self.time[end.event] // self.plan.pane in self.windows

    def _read(self, node: Node, horizon: int) -> Iterator[Match]:
        for path in paths(node, horizon):
            match = match_of(self.plan, path[::-1])
            if not self.plan.negations or not self.finish.ruled_out(match):
                yield match

    def _one_by_one(self, partition: Partition) -> Iterator[Match]:
        """The match that ends first, of several the one `earliest` prefers; then the next that starts after it."""
        for ends, horizon in self.automaton.endings(partition):
            match = self._preferred(ends, horizon)
            if match is not None:
                yield match
                self.automaton.forget()

    def _preferred(self, ends: list[Node], horizon: int) -> Match | None:
        if not self.plan.negations:
            return match_of(self.plan, earliest(ends, horizon))
        best: list[Step] | None = None
        for node in ends:
            for path in paths(node, horizon):
                steps = path[::-1]
                if (best is None or steps < best) and not self.finish.ruled_out(match_of(self.plan, steps)):
                    best = steps
        return None if best is None else match_of(self.plan, best)

    def _too_many(self, match: Match, pane: int) -> TooManyMatchesError:
        event = match[0][0]
        values = ((name, self.stream.raw(name)[event]) for name in self.plan.partition)
        partition = ", ".join(f"{name} = {value!r}" for name, value in values) or "the whole stream"
        start, end = moment(pane * self.plan.pane), moment((pane + 1) * self.plan.pane)
        return TooManyMatchesError(
            f"{partition}: limit_per_partition, {self.plan.limit:,} matches, is reached in [{start}, {end})",
            hint="select fewer events, shorten within, raise the limit, or ask for output: compressed",
        )
