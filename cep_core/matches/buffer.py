"""The shared match buffer: every run's events in one graph, read backwards from the event that ends a match.

A node is an event bound to a part, with a link to all the runs that it extended: one earlier node, or a `Fork` of two
links (Agrawal et al. 2008, 5.1, keeps stacks with versioned pointers; runs that were merged have one future, so here a
link needs no version: every path back is a run). `newest` is the latest start among the runs behind a link, so paths
whose start has fallen out of the window are never entered: what is spent on reading is in proportion to what is read,
and to the forks between.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias


class Node(NamedTuple):
    """`event` (index) bound to `part`, after any of `before` (None: it starts the run). `newest`: microseconds."""

    event: int
    part: int
    before: Link | None
    newest: int


class Fork(NamedTuple):
    """Either of two links."""

    left: Link
    right: Link
    newest: int


Link: TypeAlias = Node | Fork
Step: TypeAlias = tuple[int, int]
"""(event, part)."""


def joined(a: Link | None, b: Link) -> Link:
    """The runs behind both links."""
    if a is None:
        return b
    return Fork(a, b, max(a.newest, b.newest))


def paths(end: Node, horizon: int) -> Iterator[list[Step]]:
    """Every run that ends with `end` and started after `horizon`: its steps from the last to the first.

    The list is the same object each time: copy what is to be kept.
    """
    path: list[Step] = []
    todo: list[tuple[Link, int]] = [(end, 0)]
    while todo:
        link, depth = todo.pop()
        if isinstance(link, Fork):
            if link.left.newest > horizon:
                todo.append((link.left, depth))
            if link.right.newest > horizon:
                todo.append((link.right, depth))
            continue
        del path[depth:]
        path.append((link.event, link.part))
        if link.before is None:
            yield path
        else:
            todo.append((link.before, depth + 1))
