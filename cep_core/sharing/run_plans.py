"""Running plans over one table of events: each has its own rows or its own error.

A plan run alone is the case of one, by the same code, so that its rows do not depend on the plans beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from cep_core.errors import EngineFailureError, TrendlakeError
from cep_core.kinds import KINDS
from cep_core.plan import AnyPlan

Answer: TypeAlias = pa.Table | TrendlakeError


def run_plans(
    plans: Sequence[AnyPlan],
    events: pa.Table,
    windows: Sequence[range | None] | None = None,
    watermark: int | None = None,
) -> Iterator[tuple[int, Answer]]:
    """The number of each plan with its rows (`plan.result_schema`, of all keys, in any order) or its error; plans in
    any order. A plan's rows, or its error, are those of `run_plan`.

    `events` may have columns and event types beyond those that a plan reads. `windows`: of each plan those that are
    computed (None: all). `watermark`: how far time is known to have come, microseconds, for plans that wait; else the
    latest event, or the end of a plan's windows, says it.

    An error of one plan does not stop the others. What no user can mend is an `EngineFailureError` with the exception
    as its cause. Raises ValueError where `windows` are not as many as plans.
    """
    wanted = list(windows) if windows is not None else [None] * len(plans)
    if len(wanted) != len(plans):
        raise ValueError(f"{len(plans)} plans, and windows of {len(wanted)}")
    table = _taken(events)
    for members in _equal(plans, wanted):
        plan, own = plans[members[0]], wanted[members[0]]
        answer = _answer(plan, table, own, watermark)
        yield from ((member, answer) for member in members)


def run_plan(plan: AnyPlan, events: pa.Table, windows: range | None = None, watermark: int | None = None) -> pa.Table:
    """Results (`plan.result_schema`) of a plan over `events`, of all keys, in any order; of `windows` only, if
    given. `watermark`: as of `run_plans`, of which this is the case of one. Raises TrendlakeError, and what else a
    failure of the engine raises."""
    ((_, answer),) = run_plans([plan], events, [windows], watermark)
    if isinstance(answer, EngineFailureError) and answer.__cause__ is not None:
        raise answer.__cause__
    if isinstance(answer, TrendlakeError):
        raise answer
    return answer


def _answer(plan: AnyPlan, events: pa.Table, windows: range | None, watermark: int | None) -> Answer:
    try:
        return KINDS[plan.kind].run(plan, events, windows, watermark)
    except TrendlakeError as error:
        return error
    except Exception as failure:
        answer = EngineFailureError(f"the engine failed: {type(failure).__name__}: {failure}")
        answer.__cause__ = failure
        return answer


def _equal(plans: Sequence[AnyPlan], windows: Sequence[range | None]) -> list[list[int]]:
    """The numbers of plans that are equal, warnings aside, and are asked for the same windows."""
    members: dict[Any, list[int]] = {}
    for number, (plan, own) in enumerate(zip(plans, windows, strict=True)):
        members.setdefault((_bare(plan), own), []).append(number)
    return list(members.values())


def _bare(plan: Any) -> AnyPlan:
    bare: AnyPlan = replace(plan, warnings=()) if plan.warnings else plan
    return bare


def _taken(events: pa.Table) -> pa.Table:
    """`events` with the strings that Arrow's own functions cannot yet choose rows of (views, as polars gives) as
    plain ones."""
    for number, field in enumerate(events.schema):
        if pa.types.is_string_view(field.type):
            events = events.set_column(number, field.name, events.column(number).cast(pa.string()))
    return events
