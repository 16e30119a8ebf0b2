"""One query of a file: its two blocks, conditions and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trendlake.cep_core.documents.paths import Path

Form = Literal["text", "normal", "node"]
"""The value that is taken of a node: its string value, that with spaces normalised, or the node itself."""


@dataclass(frozen=True)
class Block:
    """Variables in order, each after its parent (-1: the main one). `paths`: from the parent's node."""

    names: tuple[str, ...]
    parents: tuple[int, ...]
    paths: tuple[Path, ...]


@dataclass(frozen=True)
class Operand:
    """A variable's place in its block, and what is taken of its node."""

    left: bool
    variable: int
    form: Form


@dataclass(frozen=True)
class Query:
    """A query as written. `where`: pairs (of the left block, of the right one)."""

    left: Block
    right: Block
    where: tuple[tuple[Operand, Operand], ...]
    columns: tuple[tuple[str, Operand], ...]
    followed: bool
    within: int
