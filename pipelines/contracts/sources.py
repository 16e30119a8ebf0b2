"""The tables that a pattern reads, with their contracts: those of its events, one with `source` or those of `sources`,
and the reference tables of `lookup`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from trendlake.cep_core.errors import NotSupportedError
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.plan import AnyPlan
from trendlake.pipelines.contracts.contract import Contract

SOURCE = ""
"""The key of the table of a pattern that has `source`: what is stored of it does not repeat its name."""


@dataclass(frozen=True)
class SourceTable:
    """A table. `key`: its name in what is stored, `SOURCE` of a pattern that has `source` and reads no other table.
    `idle_us`: the table counts as at least so far behind the newest of all tables, microseconds; None: it holds the
    others."""

    key: str
    contract: Contract
    idle_us: int | None = None


@dataclass(frozen=True)
class Sources:
    """`tables`: those of events, by name. `united`: whether the events are a union of them, in the columns of the
    pattern's `sources`, though it may be of one table. `references`: the tables that lookups read, by name; one of them
    may be a table of events, too."""

    tables: tuple[SourceTable, ...]
    united: bool = False
    references: tuple[SourceTable, ...] = ()

    @classmethod
    def of(cls, contract: Contract, references: tuple[SourceTable, ...] = ()) -> Sources:
        """Of a pattern that has `source`."""
        return cls((SourceTable(contract.name if references else SOURCE, contract),), references=references)

    def of_plan(self, plan: AnyPlan) -> Sources:
        """Without the reference tables that the plan does not read."""
        read = {one.table for one in plan.schema.lookups}
        references = tuple(table for table in self.references if table.key in read)
        if self.united or references == self.references:
            return replace(self, references=references)
        return Sources.of(self.contract, references)

    @property
    def named(self) -> bool:
        """Whether what is stored of the tables has their names, as there are several or may be."""
        return self.united or bool(self.references)

    @property
    def every(self) -> tuple[SourceTable, ...]:
        """All tables, each once: those of events first."""
        events = {table.key for table in self.tables}
        return (*self.tables, *(table for table in self.references if table.key not in events))

    @property
    def contract(self) -> Contract:
        """That of the one table, whose rows are the events. Raises NotSupportedError for those of `sources`."""
        if self.united:
            raise NotSupportedError(
                f"this is not done yet for patterns with `sources` (here: {', '.join(self.names)})",
                hint="docs/limits.md lists what is",
            )
        return self.tables[0].contract

    @property
    def parts(self) -> tuple[Sources, ...]:
        """Each table by itself."""
        return tuple(Sources((table,)) for table in self.tables)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(table.contract.name for table in self.tables)

    @property
    def name(self) -> str:
        """`orders,payments`."""
        return ",".join(self.names)

    @property
    def fingerprint(self) -> str:
        """16 hex digits of what decides which rows of all tables pass, and which of them move the watermark."""
        if not self.named:
            return self.tables[0].contract.fingerprint
        return hashlib.sha256(repr(sorted(self.fingerprints.items())).encode()).hexdigest()[:16]

    @property
    def fingerprints(self) -> dict[str, str]:
        """Of the contract of each table, by its key."""
        return {table.key: table.contract.fingerprint for table in self.every}

    @property
    def lateness_us(self) -> int | None:
        """The longest that any contract allows; None where none does."""
        return max((late for one in self.tables if (late := one.contract.lateness_us) is not None), default=None)

    @property
    def max_future_us(self) -> int | None:
        """The farthest that any contract allows; None where each has the default."""
        stated = [table.contract.max_future_us for table in self.tables]
        if all(one is None for one in stated):
            return None
        return max(table.contract.future_us - table.contract.ahead_us for table in self.tables)

    @property
    def ahead_us(self) -> int:
        """The most by which events of a table are ahead by nature."""
        return max(table.contract.ahead_us for table in self.tables)

    @property
    def schema(self) -> EventSchema | Mapping[str, EventSchema]:
        """The events as `cep_core.compile_plan` takes them."""
        if self.united:
            return {table.contract.name: table.contract.event_schema(alone=False) for table in self.tables}
        return self.tables[0].contract.event_schema()

    @property
    def reference_columns(self) -> dict[str, dict[str, str]]:
        """The columns of the reference tables as `cep_core.compile_plan` takes them."""
        return {table.contract.name: table.contract.columns_with_derived for table in self.references}

    def table(self, key: str) -> SourceTable:
        """Raises LookupError."""
        for table in self.every:
            if table.key == key:
                return table
        raise LookupError(key)
