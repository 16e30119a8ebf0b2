"""Plans of one form that want many events each: which of them bind an event is a mask, and one pass serves all.

Cutting their events out, plan by plan, would copy most of the table for each. Instead each event finds the comparisons
that it satisfies, by the rank of its value (Hong 2009, chapter 5: the predicate index, and a channel, whose tuples bear
the queries they are for).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from trendlake.cep_core.events.array_types import UInt64s
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.sharing.index import Index

LEAST = 3
"""Fewer plans are run one by one."""
WIDTH = 64
"""Plans of one pass, at most: bits of a mask."""

Path = tuple[Index, list[tuple[int, int]]]
"""An index's answer about a binding's events: ranges of ranks."""


@dataclass(frozen=True)
class Lane:
    """The indexes' answer about each binding of a plan, and the conditions that are not asked yet."""

    paths: tuple[tuple[Path, ...], ...]
    """Of each binding, the path to the fewest events first."""
    left: tuple[tuple[s.Expr, ...], ...]

    @cached_property
    def most(self) -> int:
        """How many events the plan may bind at most."""
        return sum(min(index.count(stretches) for index, stretches in paths) for paths in self.paths)


@dataclass
class Lanes:
    """Plans by form and windows: number and lane of each."""

    waiting: dict[tuple[Any, range | None], list[tuple[int, Lane]]] = field(default_factory=dict)

    def add(self, key: tuple[Any, range | None], number: int, lane: Lane) -> None:
        self.waiting.setdefault(key, []).append((number, lane))

    def passes(self) -> Iterator[tuple[Any, range | None, list[tuple[int, Lane]]]]:
        """Form, windows and plans of each pass; one plan where they are too few."""
        for (form, windows), members in self.waiting.items():
            width = WIDTH if len(members) >= LEAST else 1
            for low in range(0, len(members), width):
                yield form, windows, members[low : low + width]


def masks_of(lanes: Sequence[Lane], length: int) -> UInt64s:
    """(bindings, `length` rows): bit l where the conditions of lane l that indexes answer are true of the row."""
    bindings = len(lanes[0].paths)
    masks = np.full((bindings, length), np.uint64((1 << len(lanes)) - 1), np.uint64)
    for b in range(bindings):
        by_index: dict[int, tuple[Index, list[tuple[int, list[tuple[int, int]]]]]] = {}
        for bit, lane in enumerate(lanes):
            for index, stretches in lane.paths[b]:
                by_index.setdefault(id(index), (index, []))[1].append((bit, stretches))
        for index, asked in by_index.values():
            masks[b] &= _by_rank(index, asked)[index.ranks]
    return masks


def _by_rank(index: Index, asked: list[tuple[int, list[tuple[int, int]]]]) -> UInt64s:
    """By rank, NULL's last: the lanes all of whose comparisons with the index are true of it, and those that ask it
    nothing."""
    every = np.uint64((1 << WIDTH) - 1)
    table = np.full(len(index.values) + 1, every)
    for bit, stretches in asked:
        inside = np.full(len(table), every ^ np.uint64(1 << bit))
        for low, high in stretches:
            inside[low:high] = every
        table &= inside
    return table
