"""The changes of each publication to the results: from their log, and for some of the rows from their change feed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as sf

from trendlake.cep_core import AnyPlan
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.commits import recent_commits
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import either, refuse
from trendlake.pipelines.report.amounts import Amount, text
from trendlake.pipelines.report.cells import Cells
from trendlake.pipelines.report.on_clock import local
from trendlake.pipelines.report.words import NO_VALUE, stamp
from trendlake.pipelines.results.columns import Reading
from trendlake.pipelines.results.history import (
    ADDED,
    AFTER,
    BEFORE,
    CHANGE,
    CHANGED,
    COMMIT,
    RETRACTED,
    differences,
    differences_by_spark,
)
from trendlake.pipelines.results.notes import Note
from trendlake.pipelines.results.provenance import PLAN_HASH, PROVENANCE, identity
from trendlake.pipelines.revision.change_feed import lost
from trendlake.pipelines.site.facts import ChangeFacts, ChangesFacts, RowChange
from trendlake.pipelines.spark.columns import column

CHANGES_SHOWN = 20
SAMPLED = 5
"""Of so many publications, the newest that changed existing rows, rows are shown;"""
ROWS_SHOWN = 8
"""of each so many,"""
OLD = ("update_preimage", "delete")
"""Delta's types of changes whose row is the one before."""
TURN = "__trendlake_turn"
CELL = 60
"""Characters of a value that are shown."""


def _read(note: Note) -> str:
    """The version of the one source, or those of several tables, as a sentence has them after the source's name."""
    return "" if note.sources is None else str(note.sources)


def read_changes(lake: Lake, path: str, plan: AnyPlan | None, zone: str | None = None) -> ChangesFacts:
    """The newest publications of the results at `path`; without `plan` no rows are shown. `zone`: of the clock of times
    in rows."""
    publications = [
        ChangeFacts(commit.version, commit.at, note.by.stage, note.by.run_id, _read(note), commit.changed)
        for commit in recent_commits(lake, path)
        if (note := Note.of_commit(commit.note)) is not None and note.by is not None and note.sources is not None
    ]
    newest = publications[:CHANGES_SHOWN]
    rewrites = [change for change in newest if any(change.changed) and change.rewrites][:SAMPLED]
    few = [change.version for change in rewrites if sum(change.changed) <= limits.CHANGES_SAMPLED]
    if plan is None or not rewrites:
        return ChangesFacts(tuple(newest), len(publications))
    unread = {
        change.version: f"more than {limits.CHANGES_SAMPLED:,} rows" for change in rewrites if change.version not in few
    }
    samples: Mapping[int, list[RowChange]] = {}
    try:
        samples = _samples(lake, path, plan, zone, few) if few else {}
    except (PySparkException, Py4JJavaError) as error:
        if lost(error) is None:
            raise
        unread |= dict.fromkeys(few, "its files have been removed")
    return ChangesFacts(
        tuple(
            replace(change, samples=tuple(samples.get(change.version, ())), unread=unread.get(change.version, ""))
            for change in newest
        ),
        len(publications),
    )


Samples = dict[int, list[RowChange]]
"""By version the first rows, in the order of the key, that it changed."""


def _samples(lake: Lake, path: str, plan: AnyPlan, zone: str | None, versions: Sequence[int]) -> Samples:
    about = lake, path, plan, zone, versions
    return either(lambda: _samples_here(*about), lambda: _samples_by_spark(*about))


def _samples_here(lake: Lake, path: str, plan: AnyPlan, zone: str | None, versions: Sequence[int]) -> Samples:
    """Raises NotHereError, also where the changes are more than `limits.CHANGES_READ`."""
    there = _columns(plan, table_here(lake, path).schema.names)
    samples: Samples = {}
    for version in versions if there else ():
        table = table_here(lake, path, version)
        refuse({f"version {version} has other columns": not set(there) <= set(table.schema.names)})
        _, (_, feed) = table.feed_by_version([*there, PLAN_HASH], version - 1, limits.CHANGES_READ)
        rows = feed.to_pylist()
        old, new = ([row for row in rows if (row[CHANGE] in OLD) == is_old] for is_old in (True, False))
        changes = differences(old, new, identity(plan), there)[:ROWS_SHOWN]
        if changes:
            samples[version] = [_change(plan, zone, there, item.before, item.after) for item in changes]
    return samples


def _samples_by_spark(lake: Lake, path: str, plan: AnyPlan, zone: str | None, versions: Sequence[int]) -> Samples:
    reader = lake.spark.read.format("delta").option("readChangeFeed", "true")
    feed = reader.option("startingVersion", min(versions)).option("endingVersion", max(versions)).load(path)
    there = _columns(plan, feed.columns)
    if not there:
        return {}
    feed = feed.where(sf.col(COMMIT).isin(list(versions)))
    is_old = sf.col(CHANGE).isin(*OLD)
    old, new = (feed.where(of).select(COMMIT, *map(column, [*there, PLAN_HASH])) for of in (is_old, ~is_old))
    changes, order = differences_by_spark(old, new, (COMMIT, *identity(plan)), there)
    turn = sf.row_number().over(SqlWindow.partitionBy(order[0]).orderBy(*order))
    picked = changes.withColumn(TURN, turn).where(sf.col(TURN) <= ROWS_SHOWN).orderBy(order[0], TURN).collect()
    samples: Samples = {}
    for item in picked:
        before, after = (item[side].asDict(recursive=True) if item[side] else None for side in (BEFORE, AFTER))
        samples.setdefault(item[order[0]], []).append(_change(plan, zone, there, before, after))
    return samples


def _columns(plan: AnyPlan, names: Sequence[str]) -> list[str]:
    """Those of the results' columns that the table has and that are shown; none where it lacks one of the key."""
    there = [name for name in plan.result_schema.names if name in names and name not in PROVENANCE]
    return there if set(plan.key) <= set(there) else []


def _change(
    plan: AnyPlan,
    zone: str | None,
    there: Sequence[str],
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
) -> RowChange:
    def said(row: Mapping[str, Any] | None, name: str) -> str | None:
        return None if row is None else cell(row, name, plan, zone)

    reading = Reading.of(plan)
    names = [name for name in reading.shown if name in there and name not in plan.key]
    kind = ADDED if before is None else RETRACTED if after is None else CHANGED
    of = after or before or {}
    values = [
        (name, old, new if new != old else f"{new}, others")  # as many events
        for name in names
        if before is None or after is None or before[name] != after[name]
        for old, new in [(said(before, name), said(after, name))]
    ]
    key = tuple((name, cell(of, name, plan, zone)) for name in reading.chosen(plan.key))
    return RowChange(kind, key, tuple(values))


def cell(row: Mapping[str, Any], name: str, plan: AnyPlan, zone: str | None = None) -> str:
    """A value as a person reads it; of a count beyond 38 digits its magnitude, of a long text its beginning."""
    value, log10 = row[name], row.get(f"{name}_log10")
    if value is None:
        return NO_VALUE if log10 is None else text(Amount(None, log10))
    if isinstance(value, datetime):
        return stamp(local(value.astimezone(UTC), zone))
    amount = Cells.of(plan, ()).amount(name, value, log10)
    if isinstance(amount, Amount):
        return text(amount)
    return amount if len(amount) <= CELL else amount[:CELL] + "…"
