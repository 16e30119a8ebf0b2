"""Which attributes of events are needed: what nothing reads is left out, unless it tells counted events apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trendlake.cep_core.algebra.compile.nodes import (
    Aggregate,
    Attributes,
    Base,
    Column,
    Filter,
    Fold,
    Next,
    Node,
    Select,
    Union,
    attributes_of,
    counts_events,
    expressions,
    reads,
)
from trendlake.cep_core.algebra.compile.syntax import FIRST, NOW, SECOND
from trendlake.cep_core.language import syntax as s


@dataclass(frozen=True)
class Identity:
    """`names`: attributes that determine all others of an event, its interval given. `keyed`: no two of its events
    agree on them, as long as no two base events share an id."""

    names: frozenset[str]
    keyed: bool


def identities(nodes: Sequence[Node], event_id: str) -> list[Identity]:
    """The attributes that identify the events of each node; base events are identified by their id."""
    parts: list[Identity] = []
    for node in nodes:
        every = Identity(frozenset(name for name, _ in attributes_of(node)), False)
        match node:
            case Base():
                own = Identity(frozenset({event_id}), True) if event_id in every.names else every
            case Filter(source=source):
                own = parts[source]
            case Select(source=source, items=items):
                names_of = {
                    item.expression.name: item.name for item in items if isinstance(item.expression, s.Attribute)
                }
                names = frozenset(names_of[name] for name in parts[source].names if name in names_of)
                whole = parts[source].keyed and len(names) == len(parts[source].names)
                own = Identity(names, True) if whole else every
            case Next(left=left, right=right, columns=columns):
                own = _of_both(columns, {FIRST: parts[left], SECOND: parts[right]}) or every
            case Fold(left=left, right=right, columns=columns, values=values):
                computed = Identity(frozenset(value.name for value in values), True)
                own = _of_both(columns, {FIRST: parts[left], SECOND: parts[right], NOW: computed}) or every
            case Aggregate():
                own = Identity(frozenset(), True)  # its partition and end
            case Union():
                own = every
        parts.append(own)
    return parts


def _of_both(columns: tuple[Column, ...], parts: Mapping[str, Identity]) -> Identity | None:
    """The attributes that identify a pair of events, if the output has all of them."""
    named = {(column.side, column.source): column.name for column in columns}
    pairs = [(side, name) for side, part in parts.items() for name in part.names]
    if not all(part.keyed for part in parts.values()) or not all(pair in named for pair in pairs):
        return None
    return Identity(frozenset(named[pair] for pair in pairs), True)


def sets(nodes: Sequence[Node], event_id: str) -> list[bool]:
    """Of each operator whether no two of the rows that it makes are equal, if no two base events share an id: then no
    search for equal rows is needed. False where that is not known."""
    result: list[bool] = []
    for node, own in zip(nodes, identities(nodes, event_id), strict=True):
        match node:
            case Base():
                result.append(own.keyed)
            case Filter(source=source, attributes=attributes):
                result.append(result[source] and own.names <= {name for name, _ in attributes})
            case Select(source=source):
                result.append(result[source] and own.keyed)
            case Next(left=left, right=right):
                result.append(result[left] and result[right] and own.keyed)
            case _:  # a FOLD may come to one event in several ways
                result.append(False)
    return result


def pruned(nodes: Sequence[Node], event_id: str) -> tuple[Node, ...]:
    """The operators without attributes that nothing reads. An attribute that nothing reads decides only which events
    are equal. Equality matters to instance aggregation alone, which reads the attributes that identify its events."""
    apart = identities(nodes, event_id)
    needed: list[set[str]] = [set() for _ in nodes]
    needed[-1] = {name for name, _ in attributes_of(nodes[-1])}
    result: list[Node] = []
    for place in range(len(nodes) - 1, -1, -1):
        node, wanted = nodes[place], needed[place]
        match node:
            case Base(attributes=attributes):
                node = replace(node, attributes=_only(attributes, wanted))
            case Filter(source=source, condition=condition, attributes=attributes):
                needed[source] |= wanted | reads(condition, "")
                node = replace(node, attributes=_only(attributes, wanted))
            case Select(source=source, items=items):
                node = replace(node, items=tuple(item for item in items if item.name in wanted))
                needed[source] |= {name for item in node.items for name in reads(item.expression, "")}
            case Aggregate(source=source, items=totals):
                node = replace(node, items=tuple(item for item in totals if item.name in wanted))
                needed[source] |= apart[source].names if counts_events(node) else set()
                needed[source] |= {n for item in node.items for one in item.arguments for n in reads(one, "")}
            case Union(left=left, right=right, attributes=attributes):
                needed[left] |= wanted
                needed[right] |= wanted
                node = replace(node, attributes=_only(attributes, wanted))
            case Next(left=left, right=right, columns=columns):
                node = replace(node, columns=tuple(column for column in columns if column.name in wanted))
                needed[left] |= _sources(node, FIRST)
                needed[right] |= _sources(node, SECOND)
            case Fold(left=left, right=right, columns=columns):
                node = _only_read(replace(node, columns=tuple(c for c in columns if c.name in wanted)))
                own = {name for name, _ in attributes_of(nodes[right])}
                needed[left] |= _sources(node, FIRST) | {value.name for value in node.values}
                needed[left] |= _sources(node, NOW)
                needed[right] |= _sources(node, SECOND) | _sources(node, NOW) & own
        result.append(node)
    return tuple(reversed(result))


def _only(attributes: Attributes, names: set[str]) -> Attributes:
    return tuple(pair for pair in attributes if pair[0] in names)


def _sources(node: Next | Fold, side: str) -> set[str]:
    """The attributes of one of its streams that it reads."""
    read = {column.source for column in node.columns if column.side == side}
    return read | {name for one in expressions(node) for name in reads(one, side)}


def _only_read(node: Fold) -> Fold:
    """Without values that neither the output nor a condition reads, nor a value that one of these does."""
    conditions = [one for one in (node.keep, node.go) if one is not None]
    read = {column.source for column in node.columns if column.side == NOW}
    read |= {name for one in conditions for name in reads(one, NOW)}
    while True:
        values = tuple(value for value in node.values if value.name in read)
        more = read | {name for value in values for name in reads(value.expression, NOW)}
        if more == read:
            return replace(node, values=values)
        read = more
