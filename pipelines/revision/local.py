"""A small revision in this process: it reads what the feed tells, the touched windows' events and rows, runs the
kernels, judges what they give and writes it; only the commit is Delta's.

Of a few thousand changed events Spark takes seconds to plan its sixty jobs, and a tenth of one to do them. What is made
here is what the jobs would have made: the touched windows are computed whole, for every unit, and what is there already
makes no difference. Where a row would go to quarantine, a key be repeated, a rule be Spark's alone to judge, or there
is more to hold than a worker would be given, `NotHereError` leaves it to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cep_core import AnyPlan, run_plan
from cep_core.errors import TrendlakeError
from cep_core.events.arrays import arrow, numbers, repeated
from cep_core.events.codes import group_codes
from pipelines.check import Check
from pipelines.contracts.contract import Contract
from pipelines.contracts.results import contract_name, results_contract
from pipelines.contracts.rules import Rule, unique_rules
from pipelines.delta.local_commit import shaped
from pipelines.delta.local_reader import CHANGE, ROWS, NotHereError, TableHere, here, table_here
from pipelines.quality import quarantine as q
from pipelines.quality.arrow_split import split_alone
from pipelines.quality.local_verdicts import judge_local
from pipelines.results.coverage import slice_of
from pipelines.results.staging import with_origin
from pipelines.results.windows import MOST, Stretch, united
from pipelines.revision.affected import Affected
from pipelines.revision.local_rewrite import Published, Rewrite
from pipelines.revision.row_diff import differing, exact
from pipelines.revision.scope import Task
from pipelines.runs.run import Run
from pipelines.spark.frames import frame_of

Array = Any
KEYS = 20_000_000
"""Rows of a source among whose keys those that came are looked for."""
NET = "__trendlake_net"


@dataclass(frozen=True)
class Small:
    """The windows that changed rows touch, and all `rows` that these should have (`plan.result_schema` and the origin).
    `changed`: rows of the source that came or went. `checks`: those of the results contract on `rows`.
    `published`: the rows that these windows have."""

    run: Run
    found: Affected
    rows: pa.Table
    changed: int
    checks: tuple[Check, ...] = ()
    published: Published | None = None

    @property
    def interval(self) -> Stretch:
        """From the first touched window's start to the last one's end, microseconds."""
        windows = self.run.plan.windows
        return windows.start(self.found.windows[0]), windows.end(self.found.windows[-1])

    def difference(self, results_version: int) -> Rewrite:
        """Against a version of the results. Raises NotHereError."""
        there = self.published
        with here():
            if there is None or there.table.version != results_version:
                there = _published(self.run, results_version, self.found)
            old, plan = there.rows, self.found.plan
            return Rewrite(self.run, plan, there, differing(old, shaped(self.rows, old.schema), plan.key))


def small_revision(run: Run, task: Task, results_version: int) -> Small:
    """What a revision would publish. Raises NotHereError, before anything is written."""
    with here():
        return _small(run, task, results_version)


def _small(run: Run, task: Task, results_version: int) -> Small:
    plan, contract = run.plan, run.contract
    keyed = unique_rules(contract.rules)
    if task.reason is not None or task.due or not task.settled or plan.waits or run.pattern.expect:
        raise NotHereError("more than the change feed decides about the rows")
    if (contract.made_id and plan.schema.event_id in plan.columns) or (keyed and not (task.unique and len(keyed) == 1)):
        raise NotHereError("ids that are made of keys, or keys that may be repeated")
    source = table_here(run.spark, run.warehouse.source(contract.name), task.version)
    told = source.feed([item.name for item in contract.columns], task.after, ROWS)
    net = net_changes(told, [item.name for item in contract.columns])
    good = _good(run, net)
    for rule in keyed:
        _refuse_repeated(source, good, contract, rule)
    wanted = [item.name for item in contract.columns if item.name in plan.columns]
    found = Affected(plan, touched(plan, _summed(good, wanted), task.published))
    if not found.stretches:
        return Small(run, found, plan.result_schema.empty_table(), net.num_rows)
    if len(found.stretches) > MOST:
        raise NotHereError("windows all over the place")
    there = _published(run, results_version, found)
    rows = with_origin(_hull(run, found), _computed(run, source, found), task.version)
    checks = _judged(run, rows)
    return Small(run, found, rows, net.num_rows, checks, there)


def _judged(run: Run, rows: pa.Table) -> tuple[Check, ...]:
    """The checks of the results contract. Raises NotHereError if one fails."""
    if rows.num_rows > ROWS:
        raise NotHereError("too many rows")
    contract = results_contract(run.project.contract_path(contract_name(run.plan)), run.plan, run.name)
    checks = judge_local(run.spark, rows, contract)
    warnings = {rule.name for rule in contract.rules if rule.warning}
    if any(not check.success and check.name not in warnings for check in checks):
        raise NotHereError("rows that are not published: they are staged, to be looked at")
    return tuple(checks)


def _published(run: Run, version: int, found: Affected) -> Published:
    """Raises NotHereError where the rows are too many to be held: then a kernel would have much to do, too."""
    table = table_here(run.spark, run.warehouse.results(run.name), version)
    slices = [slice_of(found.plan, *stretch) for stretch in found.stretches]
    return Published.of(table, found.plan.owned(range(1))[0], slices, ROWS)


def _hull(run: Run, found: Affected) -> Run:
    """The run of the windows from the first to the last that are touched."""
    windows = run.plan.windows
    return replace(run, start_us=windows.end(found.windows[0]) - 1, end_us=windows.end(found.windows[-1]))


def net_changes(told: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows that came more often than they went, or less, each once, with `NET`."""
    came = pc.is_in(told[CHANGE], pa.array(["insert", "update_postimage"]))
    signs = pc.if_else(came, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
    return _summed(told.select(list(names)).append_column(NET, signs), names)


def _summed(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    with here():  # lists cannot be told apart
        summed = rows.group_by(list(names)).aggregate([(NET, "sum")]).rename_columns([*names, NET])
    return summed.filter(pc.not_equal(summed[NET], 0))


def _good(run: Run, net: pa.Table) -> pa.Table:
    """Those that keep the rules of single rows."""
    kept = _kept(run, net)
    if (~kept & (numbers(net[NET].combine_chunks()) > 0)).any():
        raise NotHereError("rows for the quarantine")
    return net.filter(arrow(kept))


def _kept(run: Run, rows: pa.Table) -> Array:
    """Which rows keep the rules of single rows. No row is dropped on this process's word alone: Spark is shown those
    that break a rule, and where it keeps one of them, the revision is Spark's. Raises NotHereError."""
    parted = split_alone(rows.combine_chunks(), run.contract)
    if parted.unjudged:
        raise NotHereError(f"rules that Spark judges: {', '.join(parted.unjudged)}")
    kept = parted.broken < 0
    dropped = rows.filter(arrow(~kept))
    if dropped.num_rows and not q.keeping(frame_of(run.spark, dropped), run.contract.rules).isEmpty():
        raise NotHereError("rows that Spark keeps")
    return kept


def _refuse_repeated(source: TableHere, good: pa.Table, contract: Contract, rule: Rule) -> None:
    """Raises NotHereError where a row that came may repeat a key. One that comes for another of its key and time, as
    when a price is corrected, repeats none."""
    place = list(dict.fromkeys((*rule.columns, contract.event_time)))
    fresh = _summed(good, place)
    fresh = fresh.filter(pc.greater(fresh[NET], 0)).select(list(rule.columns))
    if len(rule.columns) == 1:  # a single column's NULL is no key
        fresh = fresh.drop_null()
    if not fresh.num_rows:
        return
    if source.row_count is None or source.row_count > KEYS:
        raise NotHereError("a table of many keys")
    if any(pa.types.is_floating(kind) for kind in fresh.schema.types):
        raise NotHereError("doubles as keys: Arrow looks for 0.0 and for -0.0")
    there = source.rows_with(rule.columns, fresh[rule.columns[0]].combine_chunks(), KEYS)
    both = pa.concat_tables([there, fresh])
    codes = group_codes([exact(column) for column in both.columns], both.num_rows)
    mine = np.isin(codes[: there.num_rows], codes[there.num_rows :])
    if len(np.unique(codes[: there.num_rows][mine])) < mine.sum():
        raise NotHereError("a key is repeated")


def touched(plan: AnyPlan, changed: pa.Table, spans: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """The windows among `spans` that hold an event of `changed`, which may matter to the plan."""
    kind = plan.schema.event_type
    if plan.event_types is not None and kind in changed.column_names:
        changed = changed.filter(pc.is_in(changed[kind], pa.array(plan.event_types)))
    time = numbers(changed[plan.schema.event_time].drop_null().combine_chunks().cast(pa.int64()))
    windows = plan.windows
    first = (time - (windows.origin + windows.within)) // windows.slide + 1
    last = (time - windows.origin) // windows.slide
    held = np.unique(np.stack([first, last + 1], axis=1), axis=0)
    inside = [
        (max(a, first), min(b, last + 1))
        for a, b in united((int(a), int(b)) for a, b in held if a < b)
        for first, last in spans
        if a <= last and b > first
    ]
    return tuple(united(inside, last=True))


def _computed(run: Run, source: TableHere, found: Affected) -> pa.Table:
    """The rows of the touched windows, of all units."""
    plan, windows, contract = run.plan, run.plan.windows, run.contract
    slices = [(windows.start(first), windows.end(last)) for first, last in found.stretches]
    events = source.rows([item.name for item in contract.columns], contract.event_time, slices, ROWS)
    events = _needed(plan, contract, events.filter(arrow(_kept(run, events))))
    try:
        parts = [
            run_plan(plan, _within(events, contract.event_time, span), range(first, last + 1)).cast(plan.result_schema)
            for (first, last), span in zip(found.stretches, slices, strict=True)
        ]
    except TrendlakeError as error:
        raise NotHereError(str(error)) from error
    return pa.concat_tables(parts)


def _needed(plan: AnyPlan, contract: Contract, good: pa.Table) -> pa.Table:
    """As `steps.compute.needed`."""
    kind = plan.schema.event_type
    if contract.constant_type is not None:
        good = good.append_column(kind, repeated(contract.constant_type, good.num_rows))
    if plan.event_types is not None:
        good = good.filter(pc.is_in(good[kind], pa.array(plan.event_types)))
    return good.select(list(plan.columns))


def _within(events: pa.Table, time: str, span: Stretch) -> pa.Table:
    moment = events[time].cast(pa.int64())
    return events.filter(pc.and_(pc.greater_equal(moment, span[0]), pc.less(moment, span[1])))
