"""From a pattern file of kind algebra to its plan."""

from __future__ import annotations

import warnings as python_warnings

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile import syntax as c
from trendlake.cep_core.algebra.compile.check import Checker
from trendlake.cep_core.algebra.compile.checking import PATH, Known, described
from trendlake.cep_core.algebra.compile.lineage import advice_on_nodes
from trendlake.cep_core.algebra.compile.model import RESERVED_COLUMNS, AlgebraPattern
from trendlake.cep_core.algebra.compile.parse import parse_cel
from trendlake.cep_core.algebra.compile.plan import AlgebraPlan
from trendlake.cep_core.algebra.compile.pruning import pruned
from trendlake.cep_core.errors import (
    BadPatternError,
    PatternErrors,
    PatternSyntaxError,
    PatternWarning,
    TextError,
    TypeMismatchError,
)
from trendlake.cep_core.events.names import TakenNames
from trendlake.cep_core.events.schema import EventSchema


def _check_result(checker: Checker, stream: Known, statement: c.Statement) -> None:
    """Reports columns that the results cannot have."""
    columns = TakenNames(RESERVED_COLUMNS, "a column of every results table of kind algebra")
    for name in checker.partition:
        columns.take(name, "a partition column already")
    spans = {item.name.text: item.name.span for item in statement.items or () if item.name is not None}
    for name, kind in stream.families.items():
        span = spans.get(name, statement.span)
        hint = f"SELECT it under another name: {name} AS other"
        if taken := columns.take(name, "an attribute already"):
            checker.report(BadPatternError(f"a row cannot have '{name}': it is {taken}", hint=hint), span)
        elif kind == "other":
            hint = "SELECT the attributes that are needed"
            checker.report(TypeMismatchError(f"a row cannot have '{name}': its type is not known", hint=hint), span)


def _check_keys(checker: Checker) -> None:
    """Reports columns of the file's other keys that the source does not have, or not of the right type."""
    families = checker.schema.families
    for i, name in enumerate(checker.pattern.partition_by):
        if name not in families:
            checker.report(checker.schema.unknown(name), (0, 0), ("partition_by", i))
    start = checker.pattern.interval_start
    if start is not None and start not in families:
        checker.report(checker.schema.unknown(start, "column"), (0, 0), ("interval_start",))
    elif start is not None and families[start] not in ("timestamp", "null"):
        message = f"an event starts at a time: '{start}' is {described(families[start])}"
        checker.report(TypeMismatchError(message), (0, 0), ("interval_start",))


def compile_algebra(pattern: AlgebraPattern, schema: EventSchema) -> AlgebraPlan:
    """Check `pattern` against `schema` and compile it. Raises PatternErrors with all mistakes."""
    checker = Checker(pattern, schema)
    _check_keys(checker)
    try:
        statements = parse_cel(pattern.pattern)
    except TextError as error:
        cause = PatternSyntaxError(error.message, hint=error.hint)
        checker.report(cause, (error.offset, error.offset + error.width))
        raise PatternErrors(checker.errors) from None
    result = checker.file(statements)
    _check_result(checker, result, statements[-1])
    if checker.errors or result.node is None:
        raise PatternErrors(checker.errors)
    warnings = [
        f"statement '{name}' is read by nothing"
        for name, stream in checker.published.items()
        if stream.node is not None and stream.node not in _reached(checker.nodes, result.node)
    ]
    for warning in warnings:
        python_warnings.warn(warning, PatternWarning, stacklevel=2)
    nodes, places = _compact(checker.nodes, result.node, schema.event_id)
    for node in nodes:
        other = [name for name, kind in n.attributes_of(node) if kind == "other"]
        if isinstance(node, n.Base) and other:
            message = f"events are compared by '{other[0]}', whose type is not known"
            checker.report(TypeMismatchError(message, hint="SELECT the attributes that are needed"), (0, 0))
            raise PatternErrors(checker.errors)
    numbers = {
        places[place]: number for place, number in reversed(list(enumerate(checker.statements))) if place in places
    }
    named = tuple((name, places[one.node]) for name, one in checker.published.items() if one.node in places)
    begins = schema.begins if pattern.interval_start is None else (pattern.interval_start, 0)
    plan = AlgebraPlan(
        nodes,
        pattern.partition_by,
        pattern.within,
        begins,
        pattern.limit_per_partition,
        schema,
        tuple(numbers[place] for place in range(len(nodes))),
        named,
        tuple(warnings),
        advice_on_nodes(
            nodes,
            checker.partition,
            pattern.parameters.empty if pattern.parameters else {},
            lambda span: pattern.document.place(PATH, offset=span[0], width=span[1] - span[0]),
        ),
    )
    _ = plan.form  # goes with the plan wherever it is sent: a shard of thousands of queries does not make it again
    return plan


def _reached(nodes: list[n.Node], last: int) -> set[int]:
    reached, left = {last}, [last]
    while left:
        for place in n.inputs(nodes[left.pop()]):
            if place not in reached:
                reached.add(place)
                left.append(place)
    return reached


def _compact(nodes: list[n.Node], last: int, event_id: str) -> tuple[tuple[n.Node, ...], dict[int, int]]:
    """The operators that the last one needs, pruned, equal ones once; and the new places of old ones."""
    remaining = sorted(_reached(nodes, last))
    renumbered = {old: new for new, old in enumerate(remaining)}
    small = pruned([n.at(nodes[old], renumbered) for old in remaining], event_id)
    merged: dict[n.Node, int] = {}
    places: dict[int, int] = {}
    for place, node in enumerate(small):
        places[place] = merged.setdefault(n.at(node, places), len(merged))
    return tuple(merged), {old: places[new] for old, new in renumbered.items()}
