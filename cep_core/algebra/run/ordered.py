"""A stream by group and end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from trendlake.cep_core.events.array_types import AnyArray, Int64s


@dataclass(frozen=True)
class Sorted:
    """`rows` by group and end; ends, starts and groups of the rows by position; bounds[g]: where group g begins."""

    rows: Int64s
    ends: Int64s
    starts: Int64s
    groups: Int64s
    bounds: Int64s

    @cached_property
    def points(self) -> bool:
        return bool((self.starts == self.ends).all())

    @cached_property
    def ties(self) -> bool:
        """Whether two events of one group may have one end."""
        return bool((self.ends[1:] == self.ends[:-1]).any())

    @cached_property
    def in_place(self) -> bool:
        """Whether the stream's rows, all of them, are in this order already."""
        rows = self.rows
        return len(rows) == 0 or bool(rows[-1] == len(rows) - 1 and (rows[1:] > rows[:-1]).all())

    def by_position(self, words: AnyArray) -> AnyArray:
        """Values of the stream's rows, in the order of positions."""
        return words if self.in_place and len(words) == len(self.rows) else words[self.rows]

    def row_at(self, positions: Int64s) -> Int64s:
        """The rows at positions."""
        return positions if self.in_place else self.rows[positions]
