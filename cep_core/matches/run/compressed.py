"""`output: compressed`: one row for each event that ends matches, with the graph that holds them all.

A graph is a list of nodes, each an event bound to a variable, with the numbers of the nodes that may come just before
it. A node with none before it starts matches, a node of the row's `end_event` ends them: every path between two such is
a match, and no two paths are the same. The graph grows with the events of the window, the matches may grow with their
exponent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from trendlake.cep_core.matches.compile.plan import MatchesPlan, schema_of_graphs
from trendlake.cep_core.matches.run import matcher
from trendlake.cep_core.matches.run.buffer import Buffer, by_event
from trendlake.cep_core.matches.run.events import Stream
from trendlake.cep_core.matches.run.matcher import Automaton
from trendlake.cep_core.matches.run.negation_inline import Fences

TOO_MANY = 10**38
"""Counts from here on do not fit DECIMAL(38, 0)."""

Graph = list[tuple[int, int, list[int]]]
"""Nodes (event, part) in total order, each with the numbers of those before it."""


def graphs(plan: MatchesPlan, stream: Stream, windows: range | None, watermark: int | None = None) -> pa.Table:
    """A row for each event that ends matches (of `windows`; None: all), in total order; see `run_matches`."""
    ids = stream.raw(plan.schema.event_id)
    time: list[int] = stream.time.tolist()
    machine, fences = Automaton(plan, stream), Fences(plan, stream)
    graph_of = _graph if plan.tree is None else _graph_of_sets
    rows: list[tuple[int, dict[str, Any]]] = []
    for ends, horizon in machine.endings():
        for event, nodes in by_event(machine.buffer, ends).items():
            if watermark is not None and time[event] + (plan.limit_of_last or 0) > watermark:
                continue
            if windows is None or plan.decided(time[event], time[event]) // plan.pane in windows:
                graph = graph_of(machine.buffer, fences, nodes, horizon)
                if graph:
                    rows.append((event, _row(plan, graph, ids, time)))
        if len(machine.buffer) > matcher.MANY_LINKS:
            machine.compact(horizon)
    rows.sort(key=lambda row: row[0])
    return pa.Table.from_pylist([row for _, row in rows], plan.result_schema)


def _graph(buffer: Buffer, fences: Fences, ends: list[int], horizon: int) -> Graph:
    """The nodes on paths that start after `horizon` and that no fence rules out."""
    edges: dict[int, list[int]] = {}
    todo = list(ends)
    while todo:
        node = todo.pop()
        if node not in edges:
            edges[node] = fences.predecessors(buffer, node, horizon)
            todo += edges[node]
    number: dict[int, int] = {}
    for node in sorted(edges, key=lambda node: (buffer.event[node], buffer.state[node], node)):
        if fences.starts(buffer, node, horizon, ends[0]) or any(before in number for before in edges[node]):
            number[node] = len(number)
    return [
        (buffer.event[node], buffer.state[node], sorted(number[one] for one in edges[node] if one in number))
        for node in number
    ]


Nodes: TypeAlias = frozenset[tuple[int, int]]
"""Nodes of the buffer that bind one event to one part, each with the end (its number) of the runs it is of."""


def _graph_of_sets(buffer: Buffer, fences: Fences, ends: list[int], horizon: int) -> Graph:
    """As `_graph`, where a match may have several runs: read backwards, a node of the graph is all nodes of the buffer
    by which runs of equal matches may go on. One that starts matches and has nodes before it is two."""
    parts: list[int] = fences.parts.tolist()

    def parted(nodes: Iterable[tuple[int, int]]) -> list[Nodes]:
        """Set by set: those of one event and part."""
        sets: dict[tuple[int, int], set[tuple[int, int]]] = {}
        for node, end in nodes:
            sets.setdefault((buffer.event[node], parts[buffer.state[node]]), set()).add((node, end))
        return [frozenset(one) for one in sets.values()]

    before: dict[Nodes, list[Nodes]] = {}
    todo = parted((end, end) for end in ends)
    while todo:
        nodes = todo.pop()
        if nodes not in before:
            steps = {(one, end) for node, end in nodes for one in fences.predecessors(buffer, node, horizon)}
            before[nodes] = parted(steps)
            todo += before[nodes]

    def place(nodes: Nodes) -> tuple[int, int, list[tuple[int, int]]]:
        node, _ = next(iter(nodes))
        return buffer.event[node], parts[buffer.state[node]], sorted(nodes)

    graph: Graph = []
    numbers: dict[Nodes, list[int]] = {}
    for nodes in sorted(before, key=place):
        event, part, _ = place(nodes)
        mine = numbers[nodes] = []
        if any(fences.starts(buffer, node, horizon, end) for node, end in nodes):
            mine.append(len(graph))
            graph.append((event, part, []))
        links = sorted(number for one in before[nodes] for number in numbers[one])
        if links:
            mine.append(len(graph))
            graph.append((event, part, links))
    return graph


def _row(plan: MatchesPlan, graph: Graph, ids: Sequence[Any], time: Sequence[int]) -> dict[str, Any]:
    end = graph[-1][0]
    counts: list[int] = []
    for _, _, before in graph:
        counts.append(sum(counts[i] for i in before) if before else 1)
    total = sum(count for count, (event, _, _) in zip(counts, graph, strict=True) if event == end)
    return {
        "end_event": ids[end],
        "start": min(time[event] for event, _, before in graph if not before),
        "end": time[end],
        "matches": total if total < TOO_MANY else None,
        "matches_log10": math.log10(total),
        "graph": [
            {"variable": plan.parts[part].variable, "event": ids[event], "before": before}
            for event, part, before in graph
        ],
    }


def unfold(row: Mapping[str, Any]) -> Iterator[dict[str, list[Any]]]:
    """The matches of a compressed row (a mapping, as `Table.to_pylist` gives it), one at a time: variable -> event
    ids, in order. Nothing is built ahead: the first of 10^30 matches comes as fast as the only one of a row."""
    graph = row["graph"]
    path: list[Mapping[str, Any]] = []
    todo = [(i, 0) for i in reversed(range(len(graph))) if graph[i]["event"] == row["end_event"]]
    while todo:
        number, depth = todo.pop()
        del path[depth:]
        path.append(graph[number])
        todo += [(before, depth + 1) for before in graph[number]["before"]]
        if not graph[number]["before"]:
            match: dict[str, list[Any]] = {}
            for node in reversed(path):
                match.setdefault(node["variable"], []).append(node["event"])
            yield match


__all__ = ["graphs", "schema_of_graphs", "unfold"]
