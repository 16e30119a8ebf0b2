"""The state that the operators of one run share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile.plan import AlgebraPlan
from trendlake.cep_core.algebra.compile.pruning import sets
from trendlake.cep_core.algebra.run.events import Source
from trendlake.cep_core.algebra.run.ordered import Sorted
from trendlake.cep_core.algebra.run.tables import MOST_ROWS, Table, distinct
from trendlake.cep_core.errors import BadEventsError, WindowTooLargeError
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.expressions.types import Resolve
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.unparse import expression


@dataclass
class Context:
    """`place`: the operator that runs. `ordered`: streams that were sorted by partition and end, by their place;
    `constants`: families of constants that are attributes of left streams; `most`: rows that an operator may make;
    `runs`: how far the events of a stream go on by comparisons, by its place and these (see `kernels.runs`)."""

    plan: AlgebraPlan
    source: Source
    place: int = 0
    ordered: dict[int, Sorted] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    most: int = MOST_ROWS
    runs: dict[tuple[int, Any], tuple[Any, Int64s]] = field(default_factory=dict)

    def family(self, node: n.Node) -> Resolve:
        """The families of its attributes."""
        return n.families_of(self.plan.nodes, node, {**self.source.partition, **self.constants})

    @cached_property
    def _sets(self) -> list[bool]:
        return sets(self.plan.nodes, self.plan.schema.event_id)

    def distinct(self, place: int, table: Table) -> Table:
        """Each event once of the stream of the operator at `place`."""
        return table if self._sets[place] and self.source.different_ids else distinct(table)

    def doubled(self, array: Int64s, axis: int = 0) -> Int64s:
        """With as many rows again. Raises WindowTooLargeError."""
        if array.shape[axis] > self.most:
            message = f"an operator makes more than {self.most:,} events of one shard"
            raise WindowTooLargeError(message, hint="shorten within, or give NEXT or FOLD more conditions")
        return np.concatenate((array, np.zeros_like(array)), axis)

    def overflow(self, where: str, node: s.Expr) -> BadEventsError:
        """A whole number left 64 bits in `node`."""
        number = self.plan.statements[self.place] if self.plan.statements else 1
        return BadEventsError(
            f"a whole number overflows in {where}, statement {number}: {expression(node)}",
            hint="compute with doubles (1.0 * x), or filter the events before",
        )
