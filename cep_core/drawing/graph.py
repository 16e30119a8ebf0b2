"""The things that are drawn: graphs of states and labelled arrows. Nothing here knows what a pattern is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["code", "note", "bar"]
"""How a line of text looks: as code; as a quiet note; as a prohibition (in its own colour)."""


@dataclass(frozen=True)
class Line:
    """A line of a label."""

    text: str
    role: Role = "code"


@dataclass(frozen=True)
class Node:
    """A state. `index` tells nodes of one label apart; `final` ones have a double ring; `notes` stand below it."""

    label: str
    index: str = ""
    final: bool = False
    notes: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Edge:
    """An arrow between nodes, by their place in `Graph.nodes`; from None: from the start. `barred`: a bar crosses it
    for what must not come on the way; the lines say what."""

    source: int | None
    target: int
    lines: tuple[Line, ...] = ()
    barred: bool = False


@dataclass(frozen=True)
class Graph:
    """One automaton, with a heading ("" for none). Arrows may go anywhere, several between the same nodes too."""

    heading: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True)
class Drawing:
    """Graphs below one another. `description` says all of it in words, for those who do not see it."""

    title: str
    description: str
    graphs: tuple[Graph, ...]
    caption: tuple[str, ...] = ()
    """How to read it, below."""
