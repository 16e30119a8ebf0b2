"""Of all the runs behind some nodes the one that `output: non_overlap` keeps, without reading them all."""

from __future__ import annotations

from collections.abc import Sequence

from cep_core.matches.buffer import NOTHING, Buffer, Step


def earliest(buffer: Buffer, ends: Sequence[int], horizon: int) -> list[Step]:
    """The steps, from first to last, of the run that starts earliest (after `horizon`); of several the one that binds
    its next event earliest, to the earlier part, and so on: it takes each event as early as it can.

    `ends` are nodes of one event. Work is in proportion to the part of the buffer behind them, not to its paths.
    """
    after: dict[int, list[int]] = {}
    here: list[int] = []
    known: set[int] = set()
    todo = list(ends)
    while todo:
        node = todo.pop()
        if node in known:
            continue
        known.add(node)
        if buffer.left[node] == NOTHING:
            here.append(node)
            continue
        for before in buffer.predecessors(node, horizon):
            after.setdefault(before, []).append(node)
            todo.append(before)
    end = buffer.event[ends[0]]
    path: list[Step] = []
    while True:
        step = min((buffer.event[node], buffer.part[node]) for node in here)
        path.append(step)
        if step[0] == end:
            return path
        at = [node for node in here if (buffer.event[node], buffer.part[node]) == step]
        here = list({later for node in at for later in after.get(node, ())})
