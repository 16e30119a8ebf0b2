"""A plan of kind algebra in words: the operators, what each runs as and why, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile.pairing import FOREVER, Pairing, compared, neighbours, pairing, parted
from trendlake.cep_core.algebra.compile.plan import AlgebraPlan
from trendlake.cep_core.algebra.compile.syntax import NOW
from trendlake.cep_core.expressions.types import Resolve
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.unparse import duration, expression


def explain_algebra(plan: AlgebraPlan) -> str:
    """Text for a terminal."""
    return "\n".join(_lines(plan))


def _lines(plan: AlgebraPlan) -> Iterator[str]:
    yield f"plan {plan.hash}, algebra"
    yield f"within    {duration(plan.within)}: every event that NEXT or FOLD makes, and every row, is shorter"
    yield f"reads     {', '.join(plan.columns)}"
    kinds = plan.event_types
    yield f"events    {', '.join(kinds) if kinds else 'all types'}"
    yield f"interval  {_interval(plan)}{plan.schema.event_time}"
    yield f"partition {', '.join(plan.partition_by) or 'none: all events may meet'}"
    yield f"shards    by {', '.join(plan.shard_key)} and time" if plan.shard_key else "shards    by time only"
    yield f"panes     {duration(plan.pane)} by the end of rows; each reads {duration(plan.reach)} before it"
    names = {place: name for name, place in plan.published}
    for place, node in enumerate(plan.nodes):
        called = f", published as {names[place]}" if place in names else ""
        yield f"[{place + 1}] {operator(node)}{called}"
        yield from (f"    {line}" for line in method(plan, node))
    yield f"rows      {', '.join(plan.result_schema.names)}: the events of [{len(plan.nodes)}], each once"
    yield f"limit     {plan.limit:,} rows of a partition in a pane"
    yield from plan.warnings


def _interval(plan: AlgebraPlan) -> str:
    if plan.begins is None:
        return "points at "
    column, less = plan.begins
    return f"from {column}{f' - {duration(less)}' if less else ''} to "


def operator(node: n.Node) -> str:
    """One operator as CEL, its inputs by number."""
    match node:
        case n.Base(type_name=name):
            return name or "EVENTS"
        case n.Filter(source=source, condition=condition):
            return f"FILTER{{{expression(condition)}}}([{source + 1}])"
        case n.Select(source=source, items=items):
            return f"SELECT {', '.join(map(_item, items)) or 'the partition'} FROM [{source + 1}]"
        case n.Aggregate(source=source, items=totals):
            listed = ", ".join(f"{_total(item)} AS {item.name}" for item in totals)
            return f"SELECT {listed or 'nothing'} FROM [{source + 1}]"
        case n.Union(left=left, right=right):
            return f"[{left + 1}] UNION [{right + 1}]"
        case n.Next(left=left, right=right, condition=asked):
            return f"[{left + 1}] NEXT{'' if asked is None else f'{{{expression(asked)}}}'} [{right + 1}]"
        case n.Fold(left=left, right=right):
            parts = ["" if one is None else expression(one) for one in (node.keep, node.go)]
            parts.append(", ".join(f"{expression(value.expression)} AS {value.name}" for value in node.values))
            return f"[{left + 1}] FOLD{{{', '.join(parts)}}} [{right + 1}]"


def _item(item: n.Value) -> str:
    same = isinstance(item.expression, s.Attribute) and item.expression.name == item.name
    return item.name if same else f"{expression(item.expression)} AS {item.name}"


def _total(item: n.Total) -> str:
    return f"{item.function.upper()}({', '.join(map(expression, item.arguments)) or '*'})"


def method(plan: AlgebraPlan, node: n.Node) -> Iterator[str]:
    """The method by which an operator runs, the reason, and its cost."""
    partition = {name: plan.schema.families[name] for name in plan.partition_by}
    family = n.families_of(plan.nodes, node, partition)
    match node:
        case n.Base():
            yield f"{', '.join(name for name, _ in node.attributes) or 'no attributes'}; O(1) an event"
        case n.Filter():
            yield "a compiled condition, O(1) an event"
            yield from _risks(parted(node.condition, family)[1])
        case n.Select():
            yield "compiled values; events that have become equal are one (hashing): O(1) an event"
        case n.Aggregate():
            once = "each event once, " if n.counts_events(node) else ""
            yield f"sorted by end, {once}one point for each end: O(n log n)"
        case n.Union():
            yield "both tables, O(1) an event"
        case n.Next() | n.Fold():
            held = frozenset(name for name, _ in n.attributes_of(plan.nodes[node.right]))
            ways = pairing(node, family, held)
            yield from _candidates(ways)
            if isinstance(node, n.Next):
                yield f"cost: {_next_cost(ways)}"
            else:
                for parts in (ways.safe, parted(node.go, family)[0]):
                    for bound in compared(parts, family, held)[0]:
                        asked = f"{expression(bound.right)} {bound.op} {expression(bound.left)}"
                        yield f"{asked}: two whole numbers compared, without a program"
                yield from _fold_cost(node, ways, family, held)
            yield from _risks(ways.risky)


def _candidates(ways: Pairing) -> Iterator[str]:
    if ways.left:
        yield f"left events without {_all(ways.left)} begin nothing"
    if ways.right:
        yield f"right events without {_all(ways.right)} are left out before"
    if ways.keys:
        keys = " AND ".join(f"{expression(key.left)} = {expression(key.right)}" for key in ways.keys)
        yield f"groups by {keys}: the right stream is sorted by group and end, a search finds the place"
    else:
        yield "the right stream is sorted by end, a search finds the place"
    if ways.low or ways.high < FOREVER:
        low = f"at least {duration(ways.low)}" if ways.low else ""
        high = f"at most {duration(ways.high)}" if ways.high < FOREVER else ""
        yield f"the search is bounded: {' and '.join(part for part in (low, high) if part)} from the start"
    if ways.bound is not None:
        asked = f"{expression(ways.bound.right)} {ways.bound.op} {expression(ways.bound.left)}"
        yield f"{asked}: the next such event by a tree of extremes"


def _all(parts: list[s.Expr]) -> str:
    return " AND ".join(map(expression, parts))


def _next_cost(ways: Pairing) -> str:
    parts = [*ways.safe, *ways.risky]
    if parts:
        return f"{_all(parts)} is asked pair by pair until it is true: O(n) an event at worst, those of `within`"
    return "O(log n) an event, and O(1) a row"


def _fold_cost(node: n.Fold, ways: Pairing, family: Resolve, held: frozenset[str]) -> Iterator[str]:
    if neighbours(node, ways, family, held) is not None:
        yield "where right events are points of different ends, each event's run of next ones is found once: O(1) a row"
    reads_now = {read.variable for one in n.expressions(node) for read in s.attributes(one)} & {NOW}
    yield f"a walk for each first event{' with what the instance has' if reads_now else ''}: O(log n) a step"
    if ways.safe or ways.risky:
        yield f"{_all([*ways.safe, *ways.risky])} is asked of events in between: O(n) a step at worst"
    if node.go is None:
        yield "warning: only `within` ends an instance: up to O(n^2) rows, n the events of a partition in `within`"


def _risks(parts: list[s.Expr]) -> Iterator[str]:
    if parts:
        yield f"{_all(parts)} may leave 64 bits, which is an error: asked only where all else is true"
