"""Cells of result rows on pages: which come first, and what each says."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from trendlake.cep_core import AnyPlan
from trendlake.pipelines.report.amounts import Amount, amount_of
from trendlake.pipelines.results.columns import Reading


@dataclass(frozen=True)
class Cells:
    """`reading`: of the plan, where it is known; `lists`: the columns of lists."""

    reading: Reading | None
    lists: frozenset[str]

    @classmethod
    def of(cls, plan: AnyPlan | None, lists: Collection[str]) -> Cells:
        return cls(None if plan is None else Reading.of(plan), frozenset(lists))

    def in_order(self, names: Sequence[str]) -> tuple[str, ...]:
        """`names` as people read them, ids last."""
        if self.reading is None:
            return tuple(sorted(names, key=lambda name: name in self.lists))
        known = self.reading.every
        return (*(name for name in known if name in names), *(name for name in names if name not in known))

    def ids(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of `names` that name events or rows."""
        known = self.lists if self.reading is None else self.reading.ids
        return tuple(name for name in names if name in known)

    def unit(self, name: str) -> int:
        """As `Reading.unit`; 0 where the plan is not known."""
        return 0 if self.reading is None else self.reading.unit(name)

    def amount(self, name: str, value: object, log10: float | None = None) -> Amount | str:
        """A value of the column. Without a plan, all lists are of ids."""
        ids = self.reading is None or name in self.reading.listed_ids
        return amount_of(value, log10, self.unit(name), ids=ids)
