"""The rows of a source that are good by its present contract, against those that published windows show by an earlier
one: what a change of rules changes. In this process, and on Spark."""

from __future__ import annotations

from collections import Counter
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from trendlake.cep_core.events.array_types import Bools
from trendlake.cep_core.events.arrays import arrow, numbers, repeated, valid
from trendlake.pipelines.contracts.column_names import REASONS
from trendlake.pipelines.lake.here.read import inside, table_here
from trendlake.pipelines.lake.lake import read_at
from trendlake.pipelines.lake.road import refuse
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.quality.quarantine_counts import Broken, broken_rows
from trendlake.pipelines.quality.uniqueness import BROKEN
from trendlake.pipelines.results.windows import united
from trendlake.pipelines.revision.affected import Affected
from trendlake.pipelines.revision.change_feed import Changes, summed_rows
from trendlake.pipelines.revision.changed_rows import WHY, ChangedRows, bad_rows, difference_of
from trendlake.pipelines.revision.matching import summed
from trendlake.pipelines.revision.scope import Task
from trendlake.pipelines.revision.source_changes import NET
from trendlake.pipelines.rules.split import split
from trendlake.pipelines.rules.unique import EQUAL, OLDER
from trendlake.pipelines.runs.events import all_parted
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.spark.columns import column


def judged_again(run: Run, task: Task, most: int) -> ChangedRows:
    """As `changed_rows`, of a table in `task.earlier`. `bad`: all rows in the published windows that break the present
    contract, or have no time, as a run would quarantine them; `source_rows`: how many rows these windows have. Raises
    NotHereError, also where the table has more than `most` rows."""
    contract, path = run.contract, run.warehouse.source(run.contract.name)
    source = table_here(run.lake, path, task.sources.at(run.key).version)
    names = [item.name for item in contract.columns]
    rows, parted = all_parted(run, source, most)
    every = rows.filter(arrow(parted.broken < 0))
    versions = {task.sources.at(run.key).version: rows}
    differences = []
    for version, then in task.earlier[run.key]:
        if version not in versions:
            versions[version], _ = all_parted(run, table_here(run.lake, path, version), most)
        before = versions[version]
        differences.append(difference_of(every, before.filter(arrow(split(before, then).broken < 0)), names))
    good = differences[0]
    if len(differences) > 1:
        each = pa.concat_tables([one.drop_columns([NET]) for one in differences])
        good = summed(each.append_column(NET, repeated(1, each.num_rows)), tuple(names))
    shown = _published(run, task, rows)
    bad = bad_rows(rows, parted, contract, shown)
    more = len(source.schema.names) > len(names)
    refuse({"rows for the quarantine with columns which the contract does not have": more and bad.num_rows > 0})
    repeats = int(np.isin(numbers(bad[WHY].combine_chunks()), (EQUAL, OLDER)).sum())
    broken = Broken(Counter(bad["rule"].to_pylist()), repeats)
    bad, unique = bad.select([*names, *REASONS]), not parted.repeats.any()
    return ChangedRows(source, int(shown.sum()), good.num_rows, good, bad, broken, unique, every)


def _published(run: Run, task: Task, rows: pa.Table) -> Bools:
    """Which rows are in the published windows, or have no time."""
    if not run.contract.event_time:
        return np.ones(rows.num_rows, np.bool_)
    spans = [run.plan.windows.span(range(first, last + 1)) for first, last in task.published]
    time = rows[run.contract.event_time].combine_chunks()
    there = numbers(inside(pa.table({"": time}), "", united(spans)).combine_chunks())
    result: Bools = there | ~valid(time)
    return result


def judged_again_by_spark(part: Run, task: Task) -> Changes:
    """As `judged_again`; raises what Spark raises where a version can no longer be read."""
    contract, path, upto = part.contract, part.warehouse.source(part.contract.name), task.sources.at(part.key).version
    names = [item.name for item in contract.columns]
    held = [q.annotate(read_at(part.lake, path, upto), contract.rules).persist(StorageLevel.MEMORY_AND_DISK)]
    now = q.good_rows(held[0]).select(*names).withColumn(NET, sf.lit(1))
    different: list[DataFrame] = []
    for version, then in task.earlier[part.key]:
        annotated = q.annotate(read_at(part.lake, path, version), then.rules)
        before = q.good_rows(annotated).select(*names).withColumn(NET, sf.lit(-1))
        different.append(summed_rows(now.unionByName(before), names))
    every = reduce(DataFrame.unionByName, different).persist(StorageLevel.MEMORY_AND_DISK)
    shown = shown_on_spark(part, task)
    repeats = held[0].agg(*broken_rows(contract)).collect()[0][1]
    bad = held[0].where(shown & (sf.size(BROKEN) > 0))
    return Changes(every, len(different) == 1, bad, every.count(), not repeats, (*held, every))


def shown_on_spark(part: Run, task: Task) -> Column:
    """As `_published`."""
    time = part.contract.event_time
    return Affected(part.plan, task.published).events(time) | column(time).isNull()
