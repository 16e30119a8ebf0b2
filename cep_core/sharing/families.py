"""Families among plans that run together: each is run as its members, whose answers are made its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa

from trendlake.cep_core.errors import EngineFailureError, TrendlakeError
from trendlake.cep_core.plan import AnyPlan
from trendlake.cep_core.sharing.family import FamilyPlan

Answer: TypeAlias = pa.Table | TrendlakeError

JOINED = 1_000
"""Tables of members that wait until they are made one: a small table takes more memory than its rows."""


class Unfolded:
    """`plans`: those given, members in place of families; `owners`: of each the number of the plan given."""

    def __init__(self, given: Sequence[AnyPlan]) -> None:
        self.plans: list[AnyPlan] = []
        self.owners: list[int] = []
        self.families: dict[int, _Family] = {}
        for number, plan in enumerate(given):
            members = plan.members() if isinstance(plan, FamilyPlan) else (plan,)
            if isinstance(plan, FamilyPlan):
                self.families[number] = _Family(plan, len(self.plans))
            self.plans.extend(members)
            self.owners.extend([number] * (len(self.plans) - len(self.owners)))

    def folded(self, number: int, answer: Answer) -> Iterator[tuple[int, Answer]]:
        """The answer of a plan that is no member; of a family once all members have one."""
        owner = self.owners[number]
        family = self.families.get(owner)
        if family is None:
            yield owner, answer
        elif family.complete(number, answer):
            yield owner, self.families.pop(owner).answer()


class _Family:
    """The answers of a family's members; the first member has the number `first`."""

    def __init__(self, plan: FamilyPlan, first: int) -> None:
        self.plan, self.first = plan, first
        self.waiting = len(plan.parameters.rows)
        self.parts: list[pa.Table] = []
        self.numbers: list[int] = []
        self.tables: list[pa.Table] = []
        self.failure: tuple[int, TrendlakeError] | None = None

    def complete(self, number: int, answer: Answer) -> bool:
        """Takes the answer of a member; whether it was the last."""
        self.waiting -= 1
        if isinstance(answer, TrendlakeError):
            if self.failure is None or number < self.failure[0]:
                self.failure = number, answer
        elif answer.num_rows and self.failure is None:
            self.numbers.append(number - self.first)
            self.tables.append(answer)
            if len(self.tables) >= JOINED:
                self._join()
        return self.waiting == 0

    def _join(self) -> None:
        rows = [self.plan.parameters.rows[number] for number in self.numbers]
        self.parts.append(self.plan.beside(rows, self.tables))
        self.numbers, self.tables = [], []

    def answer(self) -> Answer:
        """The rows of all members; or the error of the first that has one, which names its parameters."""
        if self.failure is not None:
            return _named(self.plan, *self.failure, self.first)
        if self.tables:
            self._join()
        return pa.concat_tables(self.parts) if self.parts else self.plan.result_schema.empty_table()


def _named(plan: FamilyPlan, number: int, error: TrendlakeError, first: int) -> TrendlakeError:
    """An error of a member as the family's."""
    which = plan.parameters.described(plan.parameters.rows[number - first])
    if isinstance(error, EngineFailureError):
        named: TrendlakeError = EngineFailureError(
            f"{error.message} (where {which})", place=error.place, hint=error.hint
        )
        named.__cause__ = error.__cause__
        return named
    return type(error)(f"{error.message} (where {which})", place=error.place, hint=error.hint)
