"""A small revision in this process: it reads the change feed and the touched windows' events and rows, runs the
kernels, checks their rows and writes them; only the commit is Delta's.

Of a few thousand changed events Spark takes seconds to plan its sixty jobs, and a tenth of one to do them. The rows
made here are those that the jobs would have made: the touched windows are computed whole, for every unit, and rows that
are published already make no difference. Where a key may be repeated, two whole versions of the source are judged and
compared (`pipelines.revision.changed_rows`), if it is small. Where there is more to hold than a worker would be given,
`revision_here` says why, and Spark computes the revision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core import AnyPlan, run_plan
from trendlake.cep_core.derived import union
from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.events.arrays import numbers
from trendlake.cep_core.events.lookup import References
from trendlake.cep_core.plan import event_windows, times_read
from trendlake.pipelines.check import Check
from trendlake.pipelines.contracts.results import contract_name, results_contract
from trendlake.pipelines.contracts.rules import unique_rules
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import inside, table_here
from trendlake.pipelines.lake.here.write import shaped
from trendlake.pipelines.lake.road import NotHere, NotHereError, either, refuse_more
from trendlake.pipelines.lake.warehouse import with_retries
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.quality.quarantine_counts import Broken
from trendlake.pipelines.results.coverage import slice_of
from trendlake.pipelines.results.provenance import identity
from trendlake.pipelines.results.source_events import reads_id
from trendlake.pipelines.results.staging import with_origin
from trendlake.pipelines.results.union_events import no_rows
from trendlake.pipelines.results.windows import MOST, Stretch, fewer
from trendlake.pipelines.results.windows import united as united_stretches
from trendlake.pipelines.revision.affected import Affected
from trendlake.pipelines.revision.changed_lookups import ChangedLookups, LookupCounts
from trendlake.pipelines.revision.changed_pairs import ChangedPairs, changed_pairs
from trendlake.pipelines.revision.changed_rows import ChangedRows, changed_rows
from trendlake.pipelines.revision.changed_units import ChangedUnits, changed_units
from trendlake.pipelines.revision.judged_again import judged_again
from trendlake.pipelines.revision.matching import matching
from trendlake.pipelines.revision.renewed_rows import RenewedRows, renewed_rows
from trendlake.pipelines.revision.revision import Refused, changes_check, quarantine_key, refuse_too_much
from trendlake.pipelines.revision.rewrite import Published, Rewrite
from trendlake.pipelines.revision.row_diff import differing
from trendlake.pipelines.revision.scope import Task
from trendlake.pipelines.revision.source_changes import SourceChanges
from trendlake.pipelines.rules.great_expectations import judge_without
from trendlake.pipelines.rules.split import needed
from trendlake.pipelines.runs.consistency import of_table
from trendlake.pipelines.runs.events import good_events, good_events_of_all
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record

T = TypeVar("T")
Part = ChangedPairs | ChangedUnits
"""The events whose rows alone can differ."""
NO_LOOKUPS = LookupCounts()
Changed = tuple[tuple[Run, ChangedRows], ...]
"""The rows that came and went in each table that has changed; each with the run as of that table."""


@dataclass(frozen=True)
class RevisionHere:
    """A `Revision`: the windows that changed rows touch, and all rows, `computed`, that these should have
    (`plan.result_schema` and the origin); with `part` those of its events only. `changed`: what came and went in the
    source. `checks`: those of the results contract on `computed`. `rewrite`: the difference from the version of the
    results that was the newest; None if no window is touched."""

    run: Run
    task: Task
    affected: Affected
    computed: pa.Table
    changed: Changed
    source_changes: SourceChanges
    checks: tuple[Check, ...] = ()
    rewrite: Rewrite | None = None
    part: Part | RenewedRows | None = None
    lookups: LookupCounts = NO_LOOKUPS

    local = True

    @property
    def rows(self) -> dict[str, int]:
        return {part.key: changed.rows for part, changed in self.changed if not part.whole}

    @property
    def broken(self) -> dict[str, Broken]:
        return {part.key: changed.broken for part, changed in self.changed}

    @property
    def unique(self) -> bool:
        """Of a table that has not changed, as it was."""
        events = [changed for part, changed in self.changed if not part.whole]
        of_all = len(events) == len(self.run.parts) or self.task.unique
        return of_all and all(changed.unique for changed in events)

    def find_affected(self, record: Record) -> None:
        broken, rows = self.broken, sum(self.rows.values())
        record.rows_in, record.rows_out, record.windows = rows, self.computed.num_rows, self.affected.count
        record.rows_quarantined = sum(one.rows for one in broken.values())
        record.checks.append(changes_check(self.task, rows, self.affected))
        record.checks += [of_table(part, broken.get(part.key, Broken()).check()) for part in self.run.every_part]
        if self.run.references:
            record.checks.append(self.lookups.check())

    def quarantine(self) -> None:
        for part, changed in self.changed:
            if changed.broken.rows:
                about = "bad", part.run_id, *_since(part, self.task)
                self.source_changes.once(about, partial(self._quarantine, part, changed))

    def _quarantine(self, part: Run, changed: ChangedRows) -> None:
        path, version = part.warehouse.quarantine(part.contract.name), self.task.sources.at(part.key).version
        write = partial(q.append_quarantine, part.lake, changed.bad, path, key=quarantine_key(part, self.task))
        with_retries(lambda: write(run_id=part.run_id, source_version=version), "writing the quarantine")

    def refuse(self) -> None:
        refused = Refused(self.task.earlier)
        for part, changed in self.changed:
            refused.ask(part, changed.broken, partial(int, changed.source_rows))
        refused.raise_all()

    def compute(self, record: Record) -> None:
        record.interval_from, record.interval_to = self.affected.interval
        record.checks += self.checks

    def difference(self, results_version: int) -> Rewrite | None:
        if self.rewrite is not None and self.rewrite.there.table.version == results_version:
            return self.rewrite
        if isinstance(part := self.part, RenewedRows):
            return None

        def here() -> Rewrite | NotHere | None:
            published = _published(self.run, results_version, self.affected, part)
            if part is not None and not part.allows(published.near, self.computed.num_rows):
                return None
            return _rewrite(published, self.run, self.computed)

        return either(here, lambda: None)

    def close(self) -> None:
        """Only Spark's frames are to be freed."""


def revision_here(
    run: Run, task: Task, results_version: int, changes: SourceChanges | None = None
) -> RevisionHere | NotHere:
    """The rows that a revision would publish. Writes nothing. `changes`: of revisions that read the same source. Raises
    NotHereError, as what it reads does."""
    plan, changes = run.plan, changes or SourceChanges()
    comparable = task.settled or task.earlier
    if task.reason is not None or task.due or not comparable or plan.waits or run.pattern.expect:
        return NotHere("more than the change feed decides about the rows")
    if any(part.contract.made_id and reads_id(part, plan) for part in run.parts):
        return NotHere("ids that are made of keys")
    of_parts: list[tuple[Run, ChangedRows]] = []
    for one in run.parts:
        if task.changed(one.key):
            reading = judged_again if one.key in task.earlier else changed_rows
            of_parts.append((one, changes.once(_since(one, task), partial(reading, one, task, limits.REVISED))))
    for one in run.references:
        if task.after.at(one.key) != task.sources.at(one.key):
            # a table that is written again as a whole: all its rows go and come
            whole = partial(changed_rows, one, task.of_references(), limits.JUDGED, 2 * limits.JUDGED)
            of_parts.append((one, changes.once(("reference", *_since(one, task)), whole)))
    if run.sources.named:
        return _of_several(run, task, results_version, tuple(of_parts), changes)
    ((_, changed),) = of_parts
    contract, since = run.contract, _since(run, task)
    seen = matching(run, changed.good, changes, since)
    affected = Affected(plan, touched(plan, seen, task.published))
    if not affected.stretches:
        return RevisionHere(run, task, affected, plan.result_schema.empty_table(), tuple(of_parts), changes)
    refuse_more(len(affected.stretches), limits.STRETCHES, "stretches of windows")
    renewal = renewed_rows(run, task, results_version, changed.source, seen) if changed.every is None else None
    if renewal is not None:
        affected = Affected(plan, touched=renewal.touched or affected.stretches)
        return _revision(run, task, affected, tuple(of_parts), changes, renewal.rows, renewal.published, renewal)
    slices = tuple(times_read(plan, range(first, last + 1)) for first, last in affected.stretches)
    part = changed_pairs(run, seen) or changed_units(run, seen) if changed.every is None else None
    if part is not None:
        published = _published(run, results_version, affected, part)
        computed = _computed(run, part.events(changed.source, slices, limits.REVISED), affected, slices)
        computed = computed.filter(part.chosen(computed))
        if part.allows(published.near, computed.num_rows):
            affected = Affected(plan, touched=affected.stretches)
            return _revision(run, task, affected, tuple(of_parts), changes, computed, published, part)
    if contract.documents is not None:
        changed.source.refuse_large()
    published = _published(run, results_version, affected)
    events = changes.once((*since, slices), lambda: _events(run, changed, slices))
    computed = _computed(run, events, affected, slices)
    return _revision(run, task, affected, tuple(of_parts), changes, computed, published)


def _since(run: Run, task: Task) -> tuple[object, ...]:
    """The key of the changes of the run's one table."""
    after, upto = task.after.at(run.key).version, task.sources.at(run.key).version
    path = run.warehouse.source(run.contract.name)
    # what is quarantined of rows that are judged again depends on the windows, which patterns share where they agree
    judged = (task.judged_by(run.key), task.published, run.plan.windows) if run.key in task.earlier else ()
    return run.contract.fingerprint, path, upto, after, task.unique, judged


def _of_several(
    run: Run, task: Task, results_version: int, of_parts: Changed, changes: SourceChanges
) -> RevisionHere | NotHere:
    """As `revision_here`, over a union: some of its tables have changed. Raises NotHereError."""
    plan, known = run.plan, {part.key: changed for part, changed in of_parts if not part.whole}
    came = {part.key: no_rows(part, plan) for part in run.parts if run.sources.united}
    came |= {key: changed.good for key, changed in known.items()}
    seen = [_united(run, came)] if came else []
    lookups = ChangedLookups.of(run, task, {part.key: changed.good for part, changed in of_parts if part.whole})
    of_each = [touched(plan, rows, task.published) for rows in seen]
    counts = lookups.counts
    if counts.rows:
        otherwise = _looked_up_otherwise(run, task, lookups, known, changes)
        of_each.append(touched(plan, otherwise, task.published))
        windows = sum(last - first + 1 for first, last in of_each[-1])
        counts = replace(counts, events=otherwise.num_rows, windows=windows)
    every = sorted({(first, last + 1) for stretches in of_each for first, last in stretches})
    affected = Affected(plan, tuple(united_stretches(every, last=True)))
    if not affected.stretches:
        nothing = plan.result_schema.empty_table()
        return RevisionHere(run, task, affected, nothing, of_parts, changes, lookups=counts)
    refuse_too_much(run, counts.windows)  # before they are computed
    refuse_more(len(affected.stretches), limits.STRETCHES, "stretches of windows")
    slices = tuple(times_read(plan, range(first, last + 1)) for first, last in affected.stretches)
    events = _events_of_all(run, task, known, slices, changes)
    published = _published(run, results_version, affected)
    computed = _computed(run, events, affected, slices, lookups.now)
    revised = _revision(run, task, affected, of_parts, changes, computed, published)
    return revised if isinstance(revised, NotHere) else replace(revised, lookups=counts)


def _events_of_all(
    run: Run, task: Task, known: Mapping[str, ChangedRows], slices: tuple[Stretch, ...], changes: SourceChanges
) -> pa.Table:
    """The good events of all tables in `slices`; `known`: the tables that have changed. Raises NotHereError."""
    events: dict[str, pa.Table] = {}
    for part in run.parts:
        key = (*_since(part, task), slices)
        events[part.key] = changes.once(key, partial(_events_of, part, task, known.get(part.key), slices))
    refuse_more(sum(rows.num_rows for rows in events.values()), limits.REVISED, "events")
    return _united(run, events)


def _looked_up_otherwise(
    run: Run, task: Task, lookups: ChangedLookups, known: Mapping[str, ChangedRows], changes: SourceChanges
) -> pa.Table:
    """The events of the published windows that get other columns by changed reference tables. Raises NotHereError."""
    slices = tuple(times_read(run.plan, range(first, last + 1)) for first, last in task.published)
    few = _of_good_rows(lambda: _possible(run, task, lookups, known, slices))
    events = _united(run, few) if few is not None else _events_of_all(run, task, known, slices, changes)
    return _of_good_rows(lambda: lookups.events_here(run.plan, events))


def _possible(
    run: Run, task: Task, lookups: ChangedLookups, known: Mapping[str, ChangedRows], slices: tuple[Stretch, ...]
) -> dict[str, pa.Table] | None:
    """The good events in `slices`, by table, with a key of a changed row, of tables in which a row is judged alone;
    None where others are among the run's, or a key is computed. Keys and times are read first. Raises NotHereError."""
    events: dict[str, pa.Table] = {}
    for part in run.parts:
        changed, keys = known.get(part.key), lookups.possible(part, run.plan)
        alone = task.unique or not unique_rules(part.contract.rules) if changed is None else changed.every is None
        if keys is None or not alone:
            return None
        path, version = part.warehouse.source(part.contract.name), task.sources.at(part.key).version
        source, time = table_here(part.lake, path, version), part.contract.event_time
        near = united_stretches(slices)
        times = source.rows([time], time, near, limits.REVISED, keys.condition, keys.columns)
        moments = np.unique(numbers(times[time].combine_chunks().cast(pa.int64())))
        few = fewer([(int(moment), int(moment) + 1) for moment in moments], MOST)
        rows = good_events(part, source, few, limits.REVISED, keys.condition)
        events[part.key] = rows.filter(inside(rows, time, near))
    refuse_more(sum(rows.num_rows for rows in events.values()), limits.REVISED, "events")
    return events


def _united(run: Run, rows: Mapping[str, pa.Table]) -> pa.Table:
    """Rows of several tables, by name, as one; of one table what the plan reads. Raises NotHereError."""
    if not run.sources.united:
        return needed(run.plan, run.contract, rows[run.key])
    tables = run.plan.schema.tables
    assert tables is not None
    return _of_good_rows(lambda: union(rows, tables, run.plan.columns))


def _of_good_rows(work: Callable[[], T]) -> T:
    """Raises NotHereError for an error in the rows: Spark's workers tell which row is at fault."""
    try:
        return work()
    except TrendlakeError as error:
        raise NotHereError(str(error)) from error


def _events_of(part: Run, task: Task, changed: ChangedRows | None, slices: tuple[Stretch, ...]) -> pa.Table:
    """The good events in `slices` of one of several tables; `changed`: None where it has not. Raises NotHereError."""
    if changed is not None:
        return _events(part, changed, slices)
    table = table_here(part.lake, part.warehouse.source(part.contract.name), task.sources.at(part.key).version)
    if task.unique or not unique_rules(part.contract.rules):
        return good_events(part, table, united_stretches(slices), limits.REVISED)
    return good_events_of_all(part, table, united_stretches(slices), limits.REVISED)


def _events(run: Run, changed: ChangedRows, slices: tuple[Stretch, ...]) -> pa.Table:
    """The good events in `slices`. Raises NotHereError."""
    if changed.every is None:
        return good_events(run, changed.source, united_stretches(slices), limits.REVISED)
    return changed.every.filter(inside(changed.every, run.contract.event_time, slices))


def _revision(
    run: Run,
    task: Task,
    affected: Affected,
    changed: Changed,
    changes: SourceChanges,
    computed: pa.Table,
    published: Published,
    part: Part | RenewedRows | None = None,
) -> RevisionHere | NotHere:
    """Where the rows may be published."""
    rows = with_origin(_hull(run, affected), computed, task.sources)
    checks = _judged(run, rows)
    rewrite = _rewrite(published, run, rows)
    if isinstance(checks, NotHere):
        return checks
    if isinstance(rewrite, NotHere):
        return rewrite
    return RevisionHere(run, task, affected, rows, changed, changes, checks, rewrite, part)


def _judged(run: Run, rows: pa.Table) -> tuple[Check, ...] | NotHere:
    """The checks of the results contract, if none fails."""
    refuse_more(rows.num_rows, limits.REVISED, "rows")
    contract = results_contract(run.project.contract_path(contract_name(run.plan)), run.plan, run.name)
    checks = judge_without(rows, contract.rules)
    warnings = {rule.name for rule in contract.rules if rule.warning}
    if any(not check.success and check.name not in warnings for check in checks):
        return NotHere("rows that are not published: they are staged, to be looked at")
    return tuple(checks)


def _published(run: Run, version: int, affected: Affected, part: Part | None = None) -> Published:
    """Raises NotHereError where the rows are too many to be held: then a kernel would have much to do, too."""
    table = table_here(run.lake, run.warehouse.results(run.name), version)
    slices = [slice_of(run.plan, *stretch) for stretch in affected.stretches]
    time, most = run.plan.owned(range(1))[0], limits.REVISED
    if isinstance(part, ChangedUnits):
        return Published.among(table, time, slices, most, part.among)
    return Published.of(table, time, slices, most, None if part is None else part.chosen)


def _rewrite(published: Published, run: Run, rows: pa.Table) -> Rewrite | NotHere:
    """`rows` in place of the published ones."""
    old = published.rows
    differences = differing(old, shaped(rows, old.schema), identity(run.plan))
    return differences if isinstance(differences, NotHere) else Rewrite(run, run.plan, published, differences)


def _hull(run: Run, affected: Affected) -> Run:
    """The run of the windows from the first to the last that are touched."""
    windows = run.plan.windows
    return replace(run, start_us=windows.end(affected.windows[0]) - 1, end_us=windows.end(affected.windows[-1]))


def touched(plan: AnyPlan, changed: pa.Table, spans: Sequence[Stretch]) -> tuple[Stretch, ...]:
    """The windows among `spans` that hold an event of `changed`, which may matter to the plan."""
    kind = plan.schema.event_type
    if plan.event_types is not None and kind in changed.column_names:
        changed = changed.filter(pc.is_in(changed[kind], pa.array(plan.event_types)))
    changed = changed.filter(changed[plan.schema.event_time].is_valid())
    time = numbers(changed[plan.schema.event_time].combine_chunks().cast(pa.int64()))
    first, last = event_windows(plan, time, changed)
    ranges = np.unique(np.stack([first, last + 1], axis=1), axis=0)
    inside = [
        (max(a, first), min(b, last + 1))
        for a, b in united_stretches((int(a), int(b)) for a, b in ranges if a < b)
        for first, last in spans
        if a <= last and b > first
    ]
    return tuple(united_stretches(inside, last=True))


def _computed(
    run: Run, good: pa.Table, affected: Affected, slices: Sequence[Stretch], reference: References | None = None
) -> pa.Table:
    """The rows of the touched windows, whose good events are in `slices`, of all units. `reference`: the tables of
    lookups."""
    plan, time = run.plan, run.plan.schema.event_time
    events = good if run.sources.named else needed(plan, run.contract, good)
    few = None if reference is None else _of_good_rows(partial(reference.with_keys_of, events, plan.schema))
    answers = (
        run_plan(plan, _within(events, time, span), range(first, last + 1), None, few)
        for (first, last), span in zip(affected.stretches, slices, strict=True)
    )
    return _of_good_rows(lambda: pa.concat_tables([answer.cast(plan.result_schema) for answer in answers]))


def _within(events: pa.Table, time: str, span: Stretch) -> pa.Table:
    moment = events[time].cast(pa.int64())
    return events.filter(pc.and_(pc.greater_equal(moment, span[0]), pc.less(moment, span[1])))
