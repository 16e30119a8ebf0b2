"""The hash of a plan: the same for equal plans in every process, another one for others."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass


def fingerprint(plan: object, version: int) -> str:
    """16 hex digits of frozen data. `version` is raised when the meaning of a plan that stays the same changes."""
    return hashlib.sha256(f"{version}\n{canonical(plan)}".encode()).hexdigest()[:16]


def canonical(node: object) -> str:
    """A text that equal data share, stable between processes (sets sorted). Spans say where, not what: left out."""
    if isinstance(node, frozenset):
        return "{" + ",".join(sorted(canonical(x) for x in node)) + "}"
    if isinstance(node, tuple):
        return "(" + ",".join(canonical(x) for x in node) + ")"
    if is_dataclass(node):
        named = ((field.name, getattr(node, field.name)) for field in fields(node) if field.name != "span")
        return f"{type(node).__name__}({','.join(f'{name}={canonical(value)}' for name, value in named)})"
    return repr(node)
