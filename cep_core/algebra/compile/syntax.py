"""The syntax tree of CEL text. Frozen data; every node knows its span in the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from trendlake.cep_core.language import syntax as s

_NOWHERE: s.Span = (0, 0)

DURATION = "DUR"
"""The word for the duration of an event."""
FIRST, NOW, SECOND = "$1", "$", "$2"
"""Decorators: the left or first event, the instance before a step, the right event."""


@dataclass(frozen=True)
class Dur(s.Attribute):
    """`DUR`, `$1.DUR` ...: the duration of an event, microseconds. `variable` is the decorator, "" for none."""


@dataclass(frozen=True)
class Name:
    """A word of the text: an attribute that is set, a stream that is published."""

    text: str
    span: s.Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Item:
    """An item of SELECT's list: `*` (no value), or a value and its name (None: the attribute's own)."""

    value: s.Expr | None
    name: Name | None
    span: s.Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Statement:
    """`[SELECT items] FROM source [PUBLISH published]`."""

    items: tuple[Item, ...] | None
    source: Stream
    published: Name | None
    span: s.Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Named:
    """An event type, EVENTS, or a published stream."""

    name: str
    span: s.Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Filtered:
    """`FILTER{condition}(source)`."""

    condition: s.Expr
    source: Stream
    span: s.Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class United:
    """`left UNION right`."""

    left: Stream
    right: Stream
    span: s.Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Nexted:
    """`left NEXT{condition} right`."""

    left: Stream
    right: Stream
    condition: s.Expr | None
    span: s.Span = field(default=_NOWHERE, compare=False)


@dataclass(frozen=True)
class Folded:
    """`left FOLD{keep, go, values} right`: what is looked at, how long it goes on, what is computed."""

    left: Stream
    right: Stream
    keep: s.Expr | None
    go: s.Expr | None
    values: tuple[tuple[s.Expr, Name], ...]
    span: s.Span = field(default=_NOWHERE, compare=False)


Stream: TypeAlias = Statement | Named | Filtered | United | Nexted | Folded
