"""SELECT: projections, and instance aggregation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile import syntax as c
from trendlake.cep_core.algebra.compile.aggregates import AGGREGATES, total_family
from trendlake.cep_core.algebra.compile.checking import UNKNOWN, Checking, Known
from trendlake.cep_core.algebra.compile.scopes import Single
from trendlake.cep_core.errors import BadConditionError, BadPatternError
from trendlake.cep_core.expressions.types import ExpressionError
from trendlake.cep_core.language import syntax as s


def select(checking: Checking, items: tuple[c.Item, ...], source: Known) -> Known:
    totals = [item for item in items if _is_aggregate(item)]
    if totals and len(totals) < len(items):
        other = next(item for item in items if not _is_aggregate(item))
        hint = "an instance aggregation lists aggregates only: they are of all events of one end"
        checking.report(BadConditionError("an attribute beside aggregates", hint=hint), other.span)
        totals = []
    scope = Single(source.families, checking.partition, selects=True)
    result: dict[str, Any] = {}
    failed = False
    for item in items:
        if item.value is None:
            for attribute, kind in source.families.items():
                _output(checking, c.Name(attribute, item.span), result)
                result[attribute] = n.Value(attribute, kind, s.Attribute("", attribute))
            continue
        value = _total(checking, item, scope) if _is_aggregate(item) else _value(checking, item, scope)
        name = _output_name(checking, item)
        if name is None:
            failed = True
        elif name.text in checking.partition:
            _partition_item(checking, item, name, value)
        else:
            _output(checking, name, result)
            result[name.text] = None if value is None else value(name.text)
        failed = failed or value is None
    families = {name: "null" if value is None else value.family for name, value in result.items()}
    if source.open and _star(items):
        return UNKNOWN
    mixed = len(items) != len(totals) and any(_is_aggregate(item) for item in items)
    if failed or mixed or source.node is None:
        return Known(None, families)
    values = tuple(result.values())
    return checking.stream_of(n.Aggregate(source.node, values) if totals else n.Select(source.node, values))


def _output_name(checking: Checking, item: c.Item) -> c.Name | None:
    if item.name is not None:
        if item.name.text == c.DURATION:
            checking.report(
                BadPatternError("DUR is the duration of an event: no attribute can have this name"), item.name.span
            )
            return None
        return item.name
    if isinstance(item.value, s.Attribute) and not isinstance(item.value, c.Dur):
        return c.Name(item.value.name, item.span)
    hint = "write ... AS name"
    checking.report(BadPatternError("what SELECT computes needs a name", hint=hint), item.span)
    return None


def _output(checking: Checking, name: c.Name, before: Mapping[str, Any]) -> None:
    if name.text in before:
        checking.report(BadPatternError(f"SELECT has '{name.text}' twice"), name.span)


def _partition_item(checking: Checking, item: c.Item, name: c.Name, value: Any) -> None:
    """Every event has the partition's columns: SELECT may name them, and nothing may set them."""
    same = isinstance(item.value, s.Attribute) and item.value.name == name.text and not item.value.variable
    if not same and value is not None:
        hint = "every stream keeps it; give what is computed another name"
        error = BadPatternError(f"'{name.text}' is a column of the partition: nothing sets it", hint=hint)
        checking.report(error, name.span)


def _value(checking: Checking, item: c.Item, scope: Single) -> Any:
    """name -> Value; None where it has mistakes."""
    assert item.value is not None
    resolved = checking.expression(item.value, scope)
    kind = None if resolved is None else checking.family(resolved, scope)
    if resolved is None or kind is None:
        return None
    return lambda name: n.Value(name, kind, resolved)


def _total(checking: Checking, item: c.Item, scope: Single) -> Any:
    """name -> Total; None where it has mistakes."""
    call = item.value
    assert isinstance(call, s.Call)
    arguments = [checking.expression(argument, scope) for argument in call.arguments]
    if None in arguments:
        return None
    kinds = [checking.family(argument, scope) for argument in arguments if argument is not None]
    if None in kinds:
        return None
    try:
        kind = total_family(call, [str(one) for one in kinds])
    except ExpressionError as error:
        checking.report(error.cause, (error.offset, error.offset + error.width))
        return None
    whole = tuple(argument for argument in arguments if argument is not None)
    return lambda name: n.Total(name, kind, call.function, whole)


def _is_aggregate(item: c.Item) -> bool:
    return isinstance(item.value, s.Call) and item.value.function in AGGREGATES


def _star(items: tuple[c.Item, ...]) -> bool:
    return any(item.value is None for item in items)
