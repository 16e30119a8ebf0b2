"""A family: one pattern for many rows of parameters. It is a plan; its results are those of its members, one for each
row, with the row's values as the first columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from trendlake.cep_core.errors import BadValueError, PatternErrors, TrendlakeError
from trendlake.cep_core.events.names import TakenNames
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.events.windows import Windows
from trendlake.cep_core.expressions.advice import Advice
from trendlake.cep_core.fingerprint import fingerprint
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.patterns.model import PROVENANCE_COLUMNS, Pattern
from trendlake.cep_core.patterns.parameters import Parameters, Row
from trendlake.cep_core.plan import AnyPlan, OneForm, ResultShape
from trendlake.cep_core.sharing.binding import Bind, binder

LANGUAGE_VERSION = 1
"""Part of the hash: raised when the meaning of a family that stays the same changes."""


@dataclass(frozen=True)
class FamilyPlan(OneForm):
    """A plan with parameters (`template`) and the rows of their values; an `AnyPlan`."""

    template: AnyPlan
    parameters: Parameters

    def members(self) -> Iterator[AnyPlan]:
        """The plan of each row, in order. None outlives its turn but with whom takes it."""
        for row in self.parameters.rows:
            yield self.member(row)

    def member(self, row: Row) -> AnyPlan:
        """The plan of a row."""
        plan: AnyPlan = self._bind(self.parameters.literals(row))
        return plan

    @cached_property
    def _bind(self) -> Bind:
        return binder(self.template) or (lambda literals: self.template)

    def __getstate__(self) -> dict[str, Any]:
        """Without the functions that bind, which no process can send to another."""
        return {"template": self.template, "parameters": self.parameters}

    def of(self, rows: Sequence[Row]) -> FamilyPlan:
        """The family of some of the rows."""
        return replace(self, parameters=replace(self.parameters, rows=tuple(rows)))

    def beside(self, rows: Sequence[Row], tables: Sequence[pa.Table]) -> pa.Table:
        """The results of some members as the family's: before each table the values of its row."""
        at = pa.array([i for i, table in enumerate(tables) for _ in range(table.num_rows)], pa.int64())
        values = self.parameters.table(rows).take(at)
        own = pa.concat_tables(tables).cast(self.template.result_schema).combine_chunks()
        return pa.Table.from_arrays([*values.columns, *own.columns], schema=self.result_schema)

    # --- an AnyPlan
    @property
    def kind(self) -> str:
        return self.template.kind

    @cached_property
    def hash(self) -> str:
        """Of the pattern without its rows, and of the rows in any order."""
        known = frozenset(self.parameters.rows)
        return fingerprint((self.form, self.parameters.names, self.parameters.kinds, known), LANGUAGE_VERSION)

    @cached_property
    def form(self) -> str:
        """The hash of the pattern without its rows: by it and its parameters a result row is known."""
        return fingerprint((self.template.hash, self.parameters.names, self.parameters.kinds), LANGUAGE_VERSION)

    @property
    def engine_version(self) -> int:
        return self.template.engine_version

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.template.warnings

    @property
    def advice(self) -> tuple[Advice, ...]:
        return self.template.advice

    @property
    def having(self) -> tuple[s.Expr, ...]:
        return self.template.having

    @property
    def schema(self) -> EventSchema:
        return self.template.schema

    @property
    def columns(self) -> tuple[str, ...]:
        return self.template.columns

    @property
    def event_types(self) -> tuple[str, ...] | None:
        return self.template.event_types

    @property
    def shard_key(self) -> tuple[str, ...]:
        return self.template.shard_key

    @property
    def parts_of_order(self) -> tuple[str, ...] | None:
        return self.template.parts_of_order

    @property
    def unit_key(self) -> tuple[str, ...]:
        return self.template.unit_key

    @property
    def windows(self) -> Windows:
        return self.template.windows

    @property
    def interval_start(self) -> str | None:
        return self.template.interval_start

    @property
    def within(self) -> int:
        return self.template.within

    @property
    def waits(self) -> bool:
        return self.template.waits

    @property
    def held_back(self) -> bool:
        return self.template.held_back

    @property
    def key(self) -> tuple[str, ...]:
        return (*self.parameters.names, *self.template.key)

    @property
    def result_schema(self) -> pa.Schema:
        return pa.schema([*self.parameters.schema, *self.template.result_schema])

    @property
    def result_shape(self) -> ResultShape:
        shape = self.template.result_shape
        return replace(shape, columns={"parameter": self.parameters.names, **shape.columns})

    def owned(self, windows: range) -> tuple[str, int, int]:
        return self.template.owned(windows)


def row_stretches(plan: AnyPlan, windows: range) -> tuple[tuple[range, str], ...]:
    """By which hash the result rows of `windows` (not empty) are labelled: as `stretches`; of a family by its form, so
    that the rows of a member stay as they are when others come and go."""
    return ((windows, plan.form),) if isinstance(plan, FamilyPlan) else plan.stretches(windows)


def row_hash(plan: AnyPlan) -> str:
    """The hash of rows that are labelled by one."""
    return plan.form if isinstance(plan, FamilyPlan) else plan.hash


def family_of(template: AnyPlan, pattern: Pattern, parameters: Parameters) -> FamilyPlan:
    """The family of a pattern that was compiled with parameters in it. Raises PatternErrors: a parameter that no
    condition reads, or with the name of another result column."""
    errors: list[TrendlakeError] = []
    columns = TakenNames((*template.result_schema.names, *PROVENANCE_COLUMNS), "a column of the results already")
    used = {parameter.name for parameter in s.parameters_in(template)}
    for name in parameters.names:
        place = pattern.document.place(("for_each", name if not parameters.origin else "file"), key=True)
        whose = "" if not parameters.origin else f" (a column of {parameters.origin})"
        if taken := columns.take(name, "a parameter already"):
            message = f"for_each: '{name}'{whose} is {taken}"
            errors.append(BadValueError(message, place=place, hint="give the parameter another name"))
        elif name not in used:
            message = f"for_each: no condition reads '{name}'{whose}: its rows would repeat each other"
            rest = ", ".join(one for one in parameters.names if one in used)
            leave = f"name the others: columns: [{rest}]" if parameters.origin and rest else "leave it out"
            errors.append(BadValueError(message, place=place, hint=f"write ${name} in a condition, or {leave}"))
    if errors:
        raise PatternErrors(errors)
    return FamilyPlan(template, parameters)


def explain_family(plan: FamilyPlan) -> str:
    """A description of a family, in words."""
    parameters = plan.parameters
    lines = [f"family {plan.hash}: {len(parameters.rows):,} members, one for each row of for_each"]
    columns = zip(parameters.names, parameters.schema, strict=True)
    for at, (name, field) in enumerate(columns):
        different = len({row[at] for row in parameters.rows})
        lines.append(f"  ${name}: {field.type}, {different:,} different value{'s' if different != 1 else ''}")
    lines.append("  first member: " + parameters.described(parameters.rows[0]))
    lines.append(
        "  shared: one reading of the source, one shuffle, one results table, one commit; the plan is compiled once"
    )
    lines.append("  each member gets the events that its constants leave; members of few events run as one")
    return "\n".join(lines)
