"""Of all the runs behind some nodes the one that `output: non_overlap` keeps, without reading them all."""

from __future__ import annotations

from collections.abc import Sequence

from cep_core.matches.buffer import Fork, Link, Node, Step


def predecessors(node: Node, horizon: int) -> list[Node]:
    """The nodes that a node may come directly after, on paths that start after `horizon`."""
    found: list[Node] = []
    todo: list[Link] = [] if node.before is None else [node.before]
    while todo:
        link = todo.pop()
        if link.newest <= horizon:
            continue
        if isinstance(link, Fork):
            todo += [link.left, link.right]
        else:
            found.append(link)
    return found


def earliest(ends: Sequence[Node], horizon: int) -> list[Step]:
    """The steps, from first to last, of the run that starts earliest (after `horizon`); of several the one that binds
    its next event earliest, to the earlier part, and so on: it takes each event as early as it can.

    `ends` are of one event. Work is in proportion to the part of the buffer behind them, not to its paths.
    """
    after: dict[int, list[Node]] = {}
    starts: list[Node] = []
    known: dict[int, Node] = {}
    todo = list(ends)
    while todo:
        node = todo.pop()
        if id(node) in known:
            continue
        known[id(node)] = node
        if node.before is None:
            starts.append(node)
            continue
        for before in predecessors(node, horizon):
            after.setdefault(id(before), []).append(node)
            todo.append(before)
    here = starts
    path: list[Step] = []
    while True:
        step = min((node.event, node.part) for node in here)
        path.append(step)
        here = [node for node in here if (node.event, node.part) == step]
        if step[0] == ends[0].event:
            return path
        here = list({id(node): node for one in here for node in after.get(id(one), ())}.values())
