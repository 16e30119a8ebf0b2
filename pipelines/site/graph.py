"""The tables and patterns of a project and which of them reads which, as the files say it now; their states are those
of the page of all patterns."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.project.paths import PUBLISHED, TABLE_NAME, TEMPLATES, Project, fault_of, upstream
from trendlake.pipelines.report.places import Places
from trendlake.pipelines.report.read_pattern import Links, read_links
from trendlake.pipelines.report.words import stamp
from trendlake.pipelines.site.facts import Card, SourceFacts, Upstream

Sort = Literal["source", "reference table", "pattern"]


@dataclass(frozen=True)
class Node:
    """A table or a pattern. `key`: as patterns name it, of a pattern as in `source: results/falling`; `page`: its page
    below the site's root, empty where there is none; `state` and `word`: as on the page of all patterns."""

    key: str
    name: str
    sort: Sort
    what: str
    page: str
    state: str
    word: str
    batch: str = ""


@dataclass(frozen=True)
class Edge:
    """`target` reads `source`, both of them keys of nodes. `how`: `reads`, `looks up`, or both."""

    source: str
    target: str
    how: str


@dataclass(frozen=True)
class Graph:
    """`nodes`: tables by name, then patterns by name."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @cached_property
    def by_key(self) -> Mapping[str, Node]:
        return {node.key: node for node in self.nodes}

    def read_by(self, key: str) -> list[tuple[Node, str]]:
        """The nodes that `key` reads, each with how."""
        return [(self.by_key[edge.source], edge.how) for edge in self._into.get(key, ())]

    def readers(self, key: str) -> list[tuple[Node, str]]:
        """The nodes that read `key`, each with how."""
        return [(self.by_key[edge.target], edge.how) for edge in self._out_of.get(key, ())]

    @cached_property
    def _into(self) -> Mapping[str, list[Edge]]:
        return _grouped(self.edges, [edge.target for edge in self.edges])

    @cached_property
    def _out_of(self) -> Mapping[str, list[Edge]]:
        return _grouped(self.edges, [edge.source for edge in self.edges])


def _grouped(edges: Sequence[Edge], keys: Sequence[str]) -> dict[str, list[Edge]]:
    groups: dict[str, list[Edge]] = {}
    for edge, key in zip(edges, keys, strict=True):
        groups.setdefault(key, []).append(edge)
    return groups


def read_graph(
    project: Project,
    places: Places,
    cards: Sequence[Card],
    sources: Mapping[str, SourceFacts],
    elsewhere: Collection[str] = (),
) -> Graph:
    """All sources and reference tables that have a contract, all patterns that have a file, and the tables that these
    name and that have neither. `sources`: tables by the cards of patterns; `elsewhere`: those that other programs
    write."""
    card_of = {card.name: card for card in cards}
    links = {file.stem: links_of(file) for file in project.pattern_files()}
    nodes = {path.stem: _table(path, places, sources, elsewhere) for path in project.source_contracts()}
    patterns = {PUBLISHED + name: _pattern(name, links[name], card_of, places) for name in sorted(links)}
    edges = [Edge(key, PUBLISHED + name, how) for name in sorted(links) for key, how in edges_of(links[name]).items()]
    for key in sorted({edge.source for edge in edges} - nodes.keys() - patterns.keys()):
        if upstream(key) is None:
            nodes[key] = Node(key, key, "source", "source", "", "bad", "No contract")
        else:
            patterns[key] = Node(key, str(upstream(key)), "pattern", "pattern", "", "bad", "No pattern file")
    ordered = [*(nodes[key] for key in sorted(nodes)), *(patterns[key] for key in sorted(patterns))]
    return Graph(tuple(ordered), tuple(edges))


def edges_of(links: Links | None) -> dict[str, str]:
    """The tables that a pattern reads, by key, each with how; nothing of one that cannot be read."""
    if links is None:
        return {}
    hows: dict[str, str] = dict.fromkeys(links.tables, "reads")
    for table in links.lookups:
        hows[table] = "reads and looks up" if table in hows else "looks up"
    return hows


def links_of(file: Path) -> Links | None:
    """The names in a pattern file; None of one that cannot be read. Read once, for as long as it is not changed."""
    try:
        state = file.stat()
        return _links(file, state.st_mtime_ns, state.st_size)
    except (OSError, UnicodeDecodeError, TrendlakeError):
        return None


@lru_cache(maxsize=10_000)
def _links(file: Path, _changed_ns: int, _size: int) -> Links:
    return read_links(file)


def upstream_of(project: Project, places: Places, file: Path, new_pages: Collection[str] = ()) -> Upstream:
    """The tables and patterns before the pattern of `file`. `new_pages`: the patterns whose pages are made together."""

    def page(key: str) -> str:
        pattern = upstream(key)
        if pattern is None:
            return _below(places, places.source(key)) if has_source_page(project, key) else ""
        there = pattern in new_pages or (TABLE_NAME.fullmatch(pattern) and places.pattern(pattern).is_file())
        return f"{pattern}/index.html" if there else ""

    links = links_of(file)
    return Upstream(
        tuple((key, how, page(key)) for key, how in edges_of(links).items()),
        tuple((name, page(PUBLISHED + name)) for name in _chain(project, links)),
    )


def _chain(project: Project, links: Links | None) -> list[str]:
    chain: dict[str, None] = {}
    waiting = deque(edges_of(links))
    while waiting:
        name = upstream(waiting.popleft())
        if name is not None and name not in chain:
            chain[name] = None
            if TABLE_NAME.fullmatch(name):
                waiting += edges_of(links_of(project.patterns / f"{name}.yaml"))
    return list(chain)


def has_source_page(project: Project, name: str) -> bool:
    """Whether the site has a page of the table `name`: each one that has a contract. A pattern file may name anything,
    also a path to another file."""
    if not TABLE_NAME.fullmatch(name) or name.startswith(TEMPLATES):
        return False
    return fault_of(project.contracts / f"{name}.yaml", project.root) is None


def _below(places: Places, page: Path) -> str:
    return page.relative_to(places.root).as_posix()


def _pattern(name: str, links: Links | None, card_of: Mapping[str, Card], places: Places) -> Node:
    if links is None:
        return Node(PUBLISHED + name, name, "pattern", "pattern", "", "bad", "Cannot be read")
    card = card_of.get(links.name)
    page = f"{links.name}/index.html" if places.pattern(links.name).is_file() else ""
    state, word = ("none", "No page yet") if card is None else state_of(card)
    return Node(PUBLISHED + name, name, "pattern", f"pattern of kind {links.kind}", page, state, word, links.batch)


def state_of(card: Card) -> tuple[str, str]:
    """State and word on the page of all patterns: of the last run where that failed, else of freshness."""
    if card.state == "bad":
        return "bad", card.word
    if card.fresh_state == "warn":
        return "warn", card.fresh
    if card.state in ("warn", "none"):
        return card.state, card.word
    return card.fresh_state, card.fresh


def _table(path: Path, places: Places, sources: Mapping[str, SourceFacts], elsewhere: Collection[str]) -> Node:
    name, facts = path.stem, sources.get(path.stem)
    sort: Sort = "source"
    state, word = "none", ""
    if facts is not None and facts.newest_event is not None:
        word = f"Newest event {stamp(facts.newest_event.replace(microsecond=0))}"
    elif facts is not None and facts.version is None:
        word = "No table yet"
    try:
        sort = "reference table" if load_contract(path).is_reference else "source"
    except TrendlakeError:
        state, word = "bad", "The contract has a mistake"
    what = f"{sort} that other programs write" if name in elsewhere else sort
    page = _below(places, places.source(name)) if places.source(name).is_file() else ""
    return Node(name, name, sort, what, page, state, word)
