"""Of all the runs behind some nodes those that `output: non_overlap` prefers, one by one, without reading them all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from trendlake.cep_core.matches.run.buffer import Buffer, Step
from trendlake.cep_core.matches.run.negation_inline import Fences


@dataclass(frozen=True)
class Candidate:
    """A run that may be preferred: its (event, part) pairs from first to last, and the nodes that bind each: a run of
    the buffer takes one of each."""

    pairs: list[tuple[int, int]]
    levels: list[list[int]]
    after: Mapping[int, Sequence[int]]

    def runs(self, buffer: Buffer) -> Iterator[list[Step]]:
        """The runs of the buffer that are this one, as steps: several where a match can be read in several ways."""

        def reach(level: int, nodes: Iterable[int]) -> Iterator[list[Step]]:
            for node in sorted(set(nodes) & set(self.levels[level])):
                step = buffer.event[node], buffer.state[node]
                if level + 1 == len(self.levels):
                    yield [step]
                else:
                    yield from ([step, *rest] for rest in reach(level + 1, self.after.get(node, ())))

        return reach(0, self.levels[0])


def preferred(buffer: Buffer, ends: Sequence[int], horizon: int, fences: Fences) -> Iterator[Candidate]:
    """Each run that starts after `horizon` and crosses no fence. Those that start earliest come first; of these the one
    that binds its next event earliest, to the earlier part, and so on: it takes each event as early as it can.

    `ends` are nodes of one event, and the same NOTs end their matches. The work for the
    first is in proportion to the part of the buffer behind them, not to its paths.
    """
    after: dict[int, list[int]] = {}
    level: list[int] = []
    known: set[int] = set()
    todo = list(ends)
    end = buffer.event[ends[0]]
    while todo:
        node = todo.pop()
        if node in known:
            continue
        known.add(node)
        if fences.starts(buffer, node, horizon, ends[0]):
            level.append(node)
        for before in fences.predecessors(buffer, node, horizon):
            after.setdefault(before, []).append(node)
            todo.append(before)
    parts: list[int] = fences.parts.tolist()
    path: list[tuple[int, int]] = []
    levels: list[list[int]] = []
    choices = [_by_step(buffer, parts, level)]
    while choices:
        step, nodes = next(choices[-1], (None, []))
        if step is None:
            choices.pop()
            del path[-1:], levels[-1:]
        elif step[0] == end:
            yield Candidate([*path, step], [*levels, nodes], after)
        else:
            path.append(step)
            levels.append(nodes)
            choices.append(_by_step(buffer, parts, {later for node in nodes for later in after.get(node, ())}))


def _by_step(buffer: Buffer, parts: Sequence[int], nodes: Iterable[int]) -> Iterator[tuple[tuple[int, int], list[int]]]:
    """Nodes that bind the same event to the same part are one step; steps in order."""
    steps: dict[tuple[int, int], list[int]] = {}
    for node in nodes:
        steps.setdefault((buffer.event[node], parts[buffer.state[node]]), []).append(node)
    return iter(sorted(steps.items()))
