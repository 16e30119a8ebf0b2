"""Running plans over one table of events: each has its own rows or its own error.

A plan run alone is the case of one, by the same code, so that its rows do not depend on the plans that run with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from trendlake.cep_core.derived import derive, one_table
from trendlake.cep_core.errors import BadEventsError, EngineFailureError, TrendlakeError
from trendlake.cep_core.events.arrays import numbers
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.lookup import References
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.events.union import columns_read, read_together
from trendlake.cep_core.having import rows_that_hold
from trendlake.cep_core.kinds import KINDS
from trendlake.cep_core.plan import AnyPlan
from trendlake.cep_core.sharing.batches import Batch, Batches
from trendlake.cep_core.sharing.families import Answer, Unfolded
from trendlake.cep_core.sharing.interest import Interest, Interests
from trendlake.cep_core.sharing.lanes import Lane, Lanes, masks_of

LOWEST = -(2**63)


def run_plans(
    plans: Sequence[AnyPlan],
    events: pa.Table | Mapping[str, pa.Table],
    windows: Sequence[range | None] | None = None,
    watermark: int | None = None,
    reference: Mapping[str, pa.Table] | None = None,
) -> Iterator[tuple[int, Answer]]:
    """The number of each plan with its rows (`plan.result_schema`, of all keys, in any order) or its error; plans in
    any order. A plan's rows, or its error, are those of `run_plan`.

    `events`: a table, or for plans of several tables each by its name, or their union (see `cep_core.events.tables`).
    They may have columns and event types beyond those that a plan reads. `windows`: of each plan those that are
    computed (None: all). `watermark`: how far time is known to have come, microseconds, for rows that wait; else the
    latest event of all, or the end of a plan's windows. `reference`: the tables that lookups read, by name.

    An error of one plan does not stop the others. An error that no user can fix is an `EngineFailureError` with the
    exception as its cause. Raises ValueError where `windows` are not as many as plans.
    """
    wanted = list(windows) if windows is not None else [None] * len(plans)
    if len(wanted) != len(plans):
        raise ValueError(f"{len(plans)} plans, and windows of {len(wanted)}")
    several, reference = isinstance(events, Mapping), References.of(reference)
    taken = {name: _taken(table) for name, table in events.items()} if isinstance(events, Mapping) else _taken(events)
    for group, schema in read_together([plan.schema for plan in plans]):
        if several and schema.tables is None:
            message = "the pattern reads one table, and several are given"
            yield from ((number, BadEventsError(message, hint="give the one that it reads")) for number in group)
        else:
            yield from _run_group(plans, group, schema, taken, wanted, watermark, reference)


def _run_group(
    plans: Sequence[AnyPlan],
    group: Sequence[int],
    schema: EventSchema,
    events: pa.Table | Mapping[str, pa.Table],
    windows: Sequence[range | None],
    watermark: int | None,
    reference: Mapping[str, pa.Table] | None,
) -> Iterator[tuple[int, Answer]]:
    """`run_plans` for the plans of these numbers, which derive and look up the same columns of the same tables."""
    try:
        table = _one_table(plans, group, schema, events, reference)
    except TrendlakeError as error:
        if isinstance(events, Mapping) and len(group) > 1:  # a column that one of them does not read may be wrong
            for number in group:
                yield from _run_group(plans, [number], plans[number].schema, events, windows, watermark, reference)
        else:
            yield from ((number, error) for number in group)
        return
    with_members = Unfolded([plans[number] for number in group])
    windows_of = [windows[group[owner]] for owner in with_members.owners]
    shared = _Shared(columns_read(table, schema), with_members.plans, windows_of, watermark)
    for number, answer in shared.answers():
        answer = _kept(with_members.plans[number], answer)
        for member in shared.equal[number]:
            for owner, folded in with_members.folded(member, answer):
                yield group[owner], folded


def _one_table(
    plans: Sequence[AnyPlan],
    group: Sequence[int],
    schema: EventSchema,
    events: pa.Table | Mapping[str, pa.Table],
    reference: Mapping[str, pa.Table] | None,
) -> pa.Table:
    """The events of plans, of several tables their union, with the columns that they derive and look up."""
    names = (name for number in group for name in plans[number].columns)
    return derive(one_table(events, schema, names), schema, reference)


def run_plan(
    plan: AnyPlan,
    events: pa.Table | Mapping[str, pa.Table],
    windows: range | None = None,
    watermark: int | None = None,
    reference: Mapping[str, pa.Table] | None = None,
) -> pa.Table:
    """Results (`plan.result_schema`) of a plan over `events`, of all keys, in any order; of `windows` only, if
    given. `watermark`, `reference`: as of `run_plans`; this is its case of one plan. Raises TrendlakeError, and what
    else a failure of the engine raises."""
    ((_, answer),) = run_plans([plan], events, [windows], watermark, reference)
    if isinstance(answer, EngineFailureError) and answer.__cause__ is not None:
        raise answer.__cause__
    if isinstance(answer, TrendlakeError):
        raise answer
    return answer


def _kept(plan: AnyPlan, answer: Answer) -> Answer:
    """The rows for which `having` is true, or the error."""
    if isinstance(answer, TrendlakeError):
        return answer
    try:
        return rows_that_hold(plan.having, answer)
    except TrendlakeError as error:
        return error


class _Shared:
    """Plans over the events of `columns`. `equal`: by the number of a plan those of all that are equal to it, warnings
    aside, and are asked for the same windows; of several the first alone is run."""

    def __init__(
        self, columns: Columns, plans: Sequence[AnyPlan], windows: Sequence[range | None], watermark: int | None
    ) -> None:
        self.columns, self.plans, self.windows, self.watermark = columns, plans, windows, watermark
        self._latest: dict[str, int | None] = {}
        first: dict[Any, int] = {}
        self.equal: dict[int, list[int]] = {}
        if len(plans) == 1:  # to hash a plan of 10,000 arcs takes as long as to run it
            self.equal[0] = [0]
            return
        for number, (plan, own) in enumerate(zip(plans, windows, strict=True)):
            key = template_of(plan) or bare(plan), plan.having
            self.equal.setdefault(first.setdefault((key, own), number), []).append(number)

    def answers(self) -> Iterator[tuple[int, Answer]]:
        """Each plan's own rows or error. Plans of one template are run as one. Plans of one form are collected and run
        as one: those whose events are few, as members; those that want many, as lanes."""
        numbers = []
        for several in self._by_template():
            if len(several) > 1:
                yield from self._of_template(several)
            else:
                numbers += several
        plans = [self.plans[number] for number in numbers]
        interests = Interests(self.columns, plans, [KINDS[plan.kind].bindings(plan) for plan in plans])
        batches, lanes = Batches(), Lanes()
        for at, (number, plan) in enumerate(zip(numbers, plans, strict=True)):
            members, lane = KINDS[plan.kind].members, interests.lane(at)
            form = members.form(_of_all_rows(plan), lane.left) if lane is not None and members is not None else None
            key = (form, self.windows[number])
            many = lane is not None and not batches.small(lane.most)
            if many and lane is not None and members is not None and form is not None and members.has_lanes(form):
                lanes.add(key, number, lane)
                continue
            interest = None if lane is None else interests.of_lane(lane)
            if interest is None or form is None or not batches.small(len(interest.rows)):
                yield number, self._alone(number, interest)
                continue
            for batch in batches.add(key, number, interest):
                yield from self._together(batch)
        for batch in batches.rest():
            yield from self._together(batch)
        for form, windows, numbered in lanes.passes():
            for number, lane, table in self._in_lanes(form, windows, numbered):
                yield number, self._alone(number, interests.of_lane(lane)) if table is None else table

    def _by_template(self) -> Iterator[list[int]]:
        """The different plans, those of one template and windows together."""
        groups: dict[Any, list[int]] = {}
        for number in self.equal:
            template = template_of(self.plans[number])
            key = number if template is None else (template[0], self.windows[number])
            groups.setdefault(key, []).append(number)
        yield from groups.values()

    def _of_template(self, numbers: list[int]) -> Iterator[tuple[int, Answer]]:
        """Of plans of one template. Where one is in error, or they have too many events together, by halves."""
        if len(numbers) == 1:
            yield numbers[0], self._alone(numbers[0], None)
            return
        first = self.plans[numbers[0]]
        templates = KINDS[first.kind].templates
        members = [template_of(self.plans[number]) for number in numbers]
        try:
            constants = [one[1] for one in members if one is not None]
            tables = templates.run(first, constants, self.columns, self.windows[numbers[0]]) if templates else []
        except Exception:  # whose it is, and which, shows when each runs by itself
            half = len(numbers) // 2
            yield from self._of_template(numbers[:half])
            yield from self._of_template(numbers[half:])
            return
        yield from zip(numbers, tables, strict=True)

    def _alone(self, number: int, interest: Interest | None) -> Answer:
        """Of the events that a plan may bind. Where they are an error, all events say which."""
        if interest is not None:
            answer = self._run(number, self.columns.chosen(interest.rows))
            if not isinstance(answer, TrendlakeError):
                return answer
        return self._run(number, self.columns)

    def _together(self, batch: Batch) -> Iterator[tuple[int, Answer]]:
        """Of plans of one form. Where one is in error, each is run by itself."""
        members = KINDS[self.plans[batch.numbers[0]].kind].members
        if len(batch.numbers) > 1 and members is not None:
            parts = [(interest.rows, interest.bits) for interest in batch.interests]
            try:
                tables = members.run(batch.form, self.columns, parts, batch.windows)
            except Exception:  # whose it is, and which, shows when each runs by itself
                tables = None
            if tables is not None:
                yield from zip(batch.numbers, tables, strict=True)
                return
        for number, interest in zip(batch.numbers, batch.interests, strict=True):
            yield number, self._alone(number, interest)

    def _in_lanes(
        self, form: Any, windows: range | None, lanes: list[tuple[int, Lane]]
    ) -> Iterator[tuple[int, Lane, pa.Table | None]]:
        """The rows of plans that share a pass; None for those that are to run alone: all of them where one is in
        error."""
        run = KINDS[form.kind].members
        tables: list[pa.Table | None] = [None] * len(lanes)
        if len(lanes) > 1 and run is not None and run.lanes is not None:
            masks = masks_of([lane for _, lane in lanes], self.columns.length)
            with suppress(Exception):  # whose it is, and which, shows when each runs by itself
                tables = run.lanes(form, self.columns, masks, len(lanes), windows)
        for (number, lane), table in zip(lanes, tables, strict=True):
            yield number, lane, table

    def _reached(self, number: int) -> int | None:
        """The watermark of a plan; None: the end of its windows."""
        plan = self.plans[number]
        if self.watermark is not None or self.windows[number] is not None:
            return self.watermark
        name = plan.schema.event_time
        if name not in self._latest:
            times = self.columns.column(name) if self.columns.has(name) and self.columns.length else None
            latest = None if times is None or times.null_count == len(times) else numbers(times, LOWEST).max()
            self._latest[name] = None if latest is None else int(latest)
        return self._latest[name]

    def _run(self, number: int, columns: Columns) -> Answer:
        plan = self.plans[number]
        try:
            return KINDS[plan.kind].run(plan, columns, self.windows[number], self._reached(number))
        except TrendlakeError as error:
            return error
        except Exception as failure:
            other_text = columns.other_text() if isinstance(failure, UnicodeDecodeError) else None
            if other_text is not None:
                return other_text
            answer = EngineFailureError(f"the engine failed: {type(failure).__name__}: {failure}")
            answer.__cause__ = failure
            return answer


def template_of(plan: AnyPlan) -> tuple[Any, tuple[Any, ...]] | None:
    """A plan's template and constants: plans of one kind that are equal in both are equal."""
    templates = KINDS[plan.kind].templates
    return None if templates is None else templates.of(plan)


def bare(plan: Any) -> AnyPlan:
    """A plan without its warnings: plans that are equal then have the same rows."""
    same: AnyPlan = replace(plan, warnings=()) if plan.warnings else plan
    return same


def _of_all_rows(plan: Any) -> AnyPlan:
    """A plan without `having`, which is asked of its rows: plans that differ in it only are of one form."""
    same: AnyPlan = replace(plan, having=()) if plan.having else plan
    return same


def _taken(events: pa.Table) -> pa.Table:
    """`events` with the strings that Arrow's own functions cannot yet choose rows of (views, as polars gives) as
    plain ones."""
    for number, field in enumerate(events.schema):
        if pa.types.is_string_view(field.type):
            events = events.set_column(number, field.name, events.column(number).cast(pa.string()))
    return events
