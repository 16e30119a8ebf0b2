"""One walk over a document for all definitions of a plan: each finds its nodes, with the nodes they are reached from.

The paths below a definition are one trie, whose nodes are steps (as in YFilter). A walk carries runs: for each node of
a definition that others begin at, the state of its trie, a set of trie nodes. States are made when they are first met,
and remembered by name of element (a lazy DFA), so that most elements cost one look-up a run. Predicates are asked of
the element when their step is reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trendlake.cep_core.documents.paths import Step
from trendlake.cep_core.documents.predicates import Test, compiled, named
from trendlake.cep_core.xml_join.compile.plan import Definition


@dataclass(eq=False)
class _TrieNode:
    """`edges`: steps to elements; `attributes`: (step, its tests, definitions); `definitions`: that end here."""

    edges: list[tuple[Step, list[Test], _TrieNode]] = field(default_factory=list)
    attributes: list[tuple[Step, list[Test], list[int]]] = field(default_factory=list)
    definitions: list[int] = field(default_factory=list)
    by_text: dict[str, Any] = field(default_factory=dict)

    @property
    def lasts(self) -> bool:
        """Whether a step from here looks at descendants."""
        return any(edge[0].axis == "//" for edge in (*self.edges, *self.attributes))

    def add(self, steps: Sequence[Step], definition: int) -> None:
        if not steps:
            self.definitions.append(definition)
            return
        step, rest = steps[0], steps[1:]
        if step.text not in self.by_text:
            tests = [compiled(predicate) for predicate in step.predicates]
            if step.attribute:
                self.by_text[step.text] = listed = list[int]()
                self.attributes.append((step, tests, listed))
            else:
                self.by_text[step.text] = node = _TrieNode()
                self.edges.append((step, tests, node))
        if step.attribute:
            self.by_text[step.text].append(definition)
        else:
            self.by_text[step.text].add(rest, definition)


class _State:
    """A set of trie nodes: `fresh` are reached at this element, `lasting` at it or above."""

    __slots__ = ("attributes", "fresh", "lasting", "live", "matched", "next")

    def __init__(self, fresh: tuple[_TrieNode, ...], lasting: tuple[_TrieNode, ...]) -> None:
        self.fresh = fresh
        self.lasting = tuple({id(node): node for node in (*lasting, *(one for one in fresh if one.lasts))}.values())
        self.matched = [definition for node in fresh for definition in node.definitions]
        child = [edge for node in fresh for edge in node.attributes if edge[0].axis == "/"]
        self.attributes = child + [edge for node in self.lasting for edge in node.attributes if edge[0].axis == "//"]
        self.live = bool(self.lasting or any(node.edges for node in fresh))
        self.next: dict[str, Any] = {}


class Walker:
    """Finds the nodes of definitions (parents before children) in one document after the other."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self.tries: list[_TrieNode | None] = [None] * len(definitions)
        self.top = _TrieNode()
        for number, definition in enumerate(definitions):
            trie = self.top
            if definition.parent >= 0:
                trie = self.tries[definition.parent] or _TrieNode()
                self.tries[definition.parent] = trie
            trie.add(definition.path.steps, number)
        self.states: dict[tuple[frozenset[int], frozenset[int]], _State] = {}
        self.starts = [None if trie is None else self._state([trie], ()) for trie in self.tries]
        self.rows: list[tuple[int, int, int, str | None]] = []

    def walk(self, root: Any) -> list[tuple[int, int, int, str | None]]:
        """The rows of one document: definition, parent (a row; -1: the document), number of the element, attribute
        (None: the element itself)."""
        self.rows = []
        self.number = -1
        self._element(root, [(-1, self._state([self.top], ()))])
        return self.rows

    def _state(self, fresh: list[_TrieNode], lasting: tuple[_TrieNode, ...]) -> _State:
        key = frozenset(map(id, fresh)), frozenset(map(id, lasting))
        if key not in self.states:
            self.states[key] = _State(tuple(fresh), lasting)
        return self.states[key]

    def _element(self, element: Any, runs: list[tuple[int, _State]]) -> None:
        """`runs`: (row of the node that a trie began at, its state at the parent element)."""
        self.number += 1
        number, tag = self.number, element.tag
        below: list[tuple[int, _State]] = []
        for origin, before in runs:
            step = before.next.get(tag)
            if step is None:
                step = before.next[tag] = self._transition(before, tag)
            state = step if isinstance(step, _State) else self._asked(before, step, element)
            if state.matched:
                for definition in state.matched:
                    self._node(element, number, definition, origin, below)
            if state.attributes and element.attrib:
                self._attributes(element, number, state, origin)
            if state.live:
                below.append((origin, state))
        if below:
            for child in element:
                self._element(child, below)
        elif len(element):
            self.number += sum(1 for _ in element.iter()) - 1

    def _node(self, element: Any, number: int, definition: int, origin: int, below: list[tuple[int, _State]]) -> None:
        row = len(self.rows)
        self.rows.append((definition, origin, number, None))
        start = self.starts[definition]
        if start is not None:
            if start.attributes and element.attrib:
                self._attributes(element, number, start, row)
            if start.live:
                below.append((row, start))

    def _attributes(self, element: Any, number: int, state: _State, origin: int) -> None:
        seen: set[tuple[int, str]] = set()
        for step, tests, definitions in state.attributes:
            for node in named(element, step.name):
                if all(test(node) for test in tests):
                    for definition in definitions:
                        if (definition, node[1]) not in seen:
                            seen.add((definition, node[1]))
                            self.rows.append((definition, origin, number, node[1]))

    def _transition(self, before: _State, tag: str) -> Any:
        """The next state for elements of this name; where predicates decide, the edges they are asked for."""
        edges = [edge for node in before.fresh for edge in node.edges if edge[0].axis == "/"]
        edges += [edge for node in before.lasting for edge in node.edges if edge[0].axis == "//"]
        taken = [edge for edge in edges if edge[0].name.holds(tag)]
        if any(tests for _, tests, _ in taken):
            return taken
        return self._state([node for _, _, node in taken], before.lasting)

    def _asked(self, before: _State, edges: list[tuple[Step, list[Test], _TrieNode]], element: Any) -> _State:
        holding = [node for _, tests, node in edges if all(test(element) for test in tests)]
        return self._state(holding, before.lasting)
