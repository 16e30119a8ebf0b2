"""Of all the runs behind some nodes those that `output: non_overlap` prefers, one by one, without reading them all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from trendlake.cep_core.matches.run.buffer import Buffer, Step
from trendlake.cep_core.matches.run.negation_inline import Fences


def preferred(buffer: Buffer, ends: Sequence[int], horizon: int, fences: Fences) -> Iterator[list[Step]]:
    """The steps, from first to last, of each run that starts after `horizon` and crosses no fence. Those that start
    earliest come first; of these the one that binds its next event earliest, to the earlier part, and so on: it takes
    each event as early as it can.

    `ends` are nodes of one event. Work, for the first, is in proportion to the part of the buffer behind them, not to
    its paths.
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
        if fences.starts(buffer, node, horizon, end):
            level.append(node)
        for before in fences.predecessors(buffer, node, horizon):
            after.setdefault(before, []).append(node)
            todo.append(before)
    path: list[Step] = []
    choices = [_by_step(buffer, level)]
    while choices:
        step, nodes = next(choices[-1], (None, []))
        if step is None:
            choices.pop()
            del path[-1:]
        elif step[0] == end:
            yield [*path, step]
        else:
            path.append(step)
            choices.append(_by_step(buffer, {later for node in nodes for later in after.get(node, ())}))


def _by_step(buffer: Buffer, nodes: Iterable[int]) -> Iterator[tuple[Step, list[int]]]:
    """Nodes that bind the same event to the same part are one step; steps in order."""
    steps: dict[Step, list[int]] = {}
    for node in nodes:
        steps.setdefault((buffer.event[node], buffer.part[node]), []).append(node)
    return iter(sorted(steps.items()))
