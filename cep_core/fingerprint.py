"""The hash of a plan: the same for equal plans in every process, another one for others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from typing import Any

ADDED: Mapping[str, bool] = {"added": True}
"""Metadata of a field that came later than hashes that are stored: left out where it has its default, so that plans
which do not need it keep their hash."""


def added(value: tuple[Any, ...]) -> tuple[Any, ...]:
    """A part of a plan that came later than hashes that are stored: nothing where there is none of it."""
    return (value,) if value else ()


def digest(data: object) -> str:
    """A text that identifies frozen data in one process (SHA-256)."""
    return hashlib.sha256(canonical(data).encode()).hexdigest()


def fingerprint(plan: object, version: int) -> str:
    """16 hex digits of frozen data. `version` is raised when the meaning of a plan that stays the same changes."""
    return hashlib.sha256(f"{version}\n{canonical(plan)}".encode()).hexdigest()[:16]


def canonical(node: object) -> str:
    """A text that equal data share, stable between processes (sets sorted). Left out are fields that are not compared,
    such as spans."""
    if isinstance(node, frozenset):
        return "{" + ",".join(sorted(canonical(x) for x in node)) + "}"
    if isinstance(node, tuple):
        return "(" + ",".join(canonical(x) for x in node) + ")"
    if is_dataclass(node):
        named = ((field.name, getattr(node, field.name)) for field in fields(node) if _counts(field, node))
        return f"{type(node).__name__}({','.join(f'{name}={canonical(value)}' for name, value in named)})"
    return repr(node)


def _counts(field: Field[Any], node: object) -> bool:
    if field.metadata.get("added") and getattr(node, field.name) == field.default:
        return False
    return field.compare
