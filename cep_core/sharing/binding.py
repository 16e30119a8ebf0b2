"""Values in place of parameters: a plan is compiled once, with `$name` in it, and bound for each row.

`$name` -> a literal, at every place of the plan. Nothing is parsed or checked again: a parameter has one type, by which
the conditions were checked, and no step of compiling asks for a literal's value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeAlias

from trendlake.cep_core.language import syntax as s

Literals: TypeAlias = Mapping[str, s.Expr]
Bind: TypeAlias = Callable[[Literals], Any]


def binder(node: Any) -> Bind | None:
    """A function that copies frozen data with literals for its parameters; None where it has none."""
    if isinstance(node, s.Parameter):
        name = node.name
        return lambda literals: literals[name]
    if isinstance(node, tuple):
        return _tuple(node)
    if is_dataclass(node) and not isinstance(node, type):
        return _data(node)
    return None


def _tuple(node: tuple[Any, ...]) -> Bind | None:
    parts = [(part, binder(part)) for part in node]
    if all(bind is None for _, bind in parts):
        return None
    return lambda literals: tuple(part if bind is None else bind(literals) for part, bind in parts)


def _data(node: Any) -> Bind | None:
    binds = {field.name: bind for field in fields(node) if (bind := binder(getattr(node, field.name))) is not None}
    if not binds:
        return None
    return lambda literals: replace(node, **{name: bind(literals) for name, bind in binds.items()})
