"""Results as they were: by version or time, what changed between two versions and why, every value a row has had.

Event time is in the rows; the other clock, when an answer was given, is in the results' Delta versions. A commit's note
says which version of the source it speaks of: that is the reason of a change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from trendlake.cep_core import AnyPlan
from trendlake.pipelines.errors import BadNumberError, BadTimeError, ProjectError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.commit import Commit
from trendlake.pipelines.lake.commits import known_commits, times_in_order
from trendlake.pipelines.lake.here.read import TableHere, table_here
from trendlake.pipelines.lake.lake import Lake, exists, read_at
from trendlake.pipelines.lake.road import either
from trendlake.pipelines.results.coverage import windows_of
from trendlake.pipelines.results.notes import Note
from trendlake.pipelines.results.provenance import PROVENANCE, identity
from trendlake.pipelines.results.read import Selection, conditions, mask
from trendlake.pipelines.results.spark_order import comparable
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.spark.columns import column
from trendlake.pipelines.spark.identifiers import quoted

Change = tuple[int, str, dict[str, Any]]
"""A version of the results, what it did to a row (Delta's change type), and the row."""
CHANGE, COMMIT = "_change_type", "_commit_version"
ADDED, CHANGED, RETRACTED = "added", "changed", "retracted"
KIND, BEFORE, AFTER = "kind", "before", "after"


@dataclass(frozen=True)
class Value:
    """The values of a row from a version of the results on, None where the row did not exist; and the commit that made
    it so."""

    commit: Commit
    row: Mapping[str, Any] | None


def version_of(lake: Lake, path: str, as_of: str) -> int:
    """The version that `as_of` means: itself, or the newest at that time (ISO 8601, UTC where it says no zone).

    Raises ProjectError (there are no results), BadNumberError, BadTimeError.
    """
    if not exists(lake, path):
        raise ProjectError(f"there are no results yet in {path}")
    commits = known_commits(lake, path)
    first, last = commits[-1].version, commits[0].version
    if as_of.isdecimal():
        if not first <= int(as_of) <= last:
            raise BadNumberError(f"version {as_of} does not exist: the results have versions {first} to {last}")
        return int(as_of)
    moment = _moment(as_of)
    version = max((version for version, since in times_in_order(commits) if since <= moment), default=None)
    if version is None:
        raise BadTimeError(f"there were no results at {as_of}", hint=f"version {first} is the oldest that is known")
    return version


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadTimeError(f"'{text}' is neither a version nor a time", hint="12, or 2013-02-01T09:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Difference:
    """A row that two versions of the results do not have alike: `kind` is ADDED, CHANGED or RETRACTED; None where the
    version lacks it."""

    kind: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


def between(
    lake: Lake, path: str, plan: AnyPlan, first: int, last: int, limit: int | None = None
) -> tuple[dict[str, int], list[Difference]]:
    """How many rows were added, changed and retracted from version `first` to `last`, and `limit` of those rows (None:
    all) in the order of the key."""

    def here() -> tuple[dict[str, int], list[Difference]]:
        old, new = table_here(lake, path, first), table_here(lake, path, last)
        rows = differences(_rows(old), _rows(new), identity(plan), _compared(new.schema.names))
        counts = Counter(difference.kind for difference in rows)
        return {kind: counts[kind] for kind in (ADDED, CHANGED, RETRACTED)}, rows[:limit]

    return either(here, lambda: _between_by_spark(lake, path, plan, first, last, limit))


def _rows(table: TableHere) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.every(table.schema.names, limits.COMPARED).to_pylist()
    return rows


def _compared(names: Sequence[str]) -> list[str]:
    """The columns in which rows of one key may differ. In rows from before a column existed, its value is NULL."""
    return [name for name in names if name not in PROVENANCE]


def differences(
    old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]], key: Sequence[str], compared: Sequence[str]
) -> list[Difference]:
    """Where several rows of a version share a `key`, as rows of a form with a longer one do, none of them is the new
    value of another: equal ones are the same row."""

    def of(row: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
        return tuple(comparable(row.get(name)) for name in names)

    counts = (Counter(of(row, key) for row in rows) for rows in (old, new))
    several = {place for count in counts for place, number in count.items() if number > 1}

    def placed(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[Any, ...], Mapping[str, Any]]:
        turns, places = Counter[tuple[Any, ...]](), dict[tuple[Any, ...], Mapping[str, Any]]()
        for row in rows:
            place = of(row, key)
            if place in several:
                place = (*place, *of(row, compared))
                turns[place] += 1
                place = (*place, turns[place])
            places[place] = row
        return places

    befores, afters = placed(old), placed(new)
    rows = []
    for place in sorted(befores.keys() | afters.keys()):
        before, after = befores.get(place), afters.get(place)
        if before is None or after is None:
            rows.append(Difference(ADDED if before is None else RETRACTED, before, after))
        elif of(before, compared) != of(after, compared):
            rows.append(Difference(CHANGED, before, after))
    return rows


def _between_by_spark(
    lake: Lake, path: str, plan: AnyPlan, first: int, last: int, limit: int | None
) -> tuple[dict[str, int], list[Difference]]:
    old, new = read_at(lake, path, first), read_at(lake, path, last)
    changes, order = differences_by_spark(old, new, identity(plan), _compared(new.columns))
    counts = {row[KIND]: row["count"] for row in changes.groupBy(KIND).count().collect()}
    ordered = changes.orderBy(*order)
    documents = [row.asDict(recursive=True) for row in (ordered if limit is None else ordered.limit(limit)).collect()]
    rows = [Difference(item[KIND], item[BEFORE], item[AFTER]) for item in documents]
    return {name: counts.get(name, 0) for name in (ADDED, CHANGED, RETRACTED)}, rows


def differences_by_spark(
    old: DataFrame, new: DataFrame, key: Sequence[str], compared: Sequence[str]
) -> tuple[DataFrame, list[str]]:
    """As `differences`: the columns `KIND`, `BEFORE` and `AFTER`, and the names of those by which the rows are in
    order, those of the `key` first. `compared`: columns of `new`."""
    values = {name: f"value_{i}" for i, name in enumerate(dict.fromkeys((*key, *compared)))}

    def side(table: DataFrame, name: str) -> DataFrame:
        mine = [column(own).alias(value) for own, value in values.items() if own in table.columns]
        return table.select(*mine, sf.struct(*map(column, table.columns)).alias(name), sf.lit(name).alias("side"))

    rows = side(old, BEFORE).unionByName(side(new, AFTER), allowMissingColumns=True)
    by = [value for name in key if (value := values[name]) in rows.columns]
    same = [values[name] for name in compared]
    counts = [sf.count(sf.when(sf.col("side") == name, True)).over(Window.partitionBy(by)) for name in (BEFORE, AFTER)]
    turn = sf.row_number().over(Window.partitionBy(*by, *same, "side").orderBy("side"))
    rows = rows.withColumns({"several": sf.greatest(*counts) > 1, "turn": turn})
    places = {f"of_{name}": sf.when(sf.col("several"), sf.col(name)) for name in (*same, "turn")}
    sides = [sf.first(name, ignorenulls=True).alias(name) for name in (BEFORE, AFTER)]
    pairs = rows.withColumns(places).groupBy(*by, *places).agg(*sides)
    equal = [
        _side_value(BEFORE, name, old.columns).eqNullSafe(_side_value(AFTER, name, new.columns)) for name in compared
    ]
    kind = sf.when(sf.col(BEFORE).isNull(), ADDED).when(sf.col(AFTER).isNull(), RETRACTED)
    kind = kind.when(~reduce(lambda a, b: a & b, equal), CHANGED)
    return pairs.withColumn(KIND, kind).where(sf.col(KIND).isNotNull()), [*by, *places]


def _side_value(side: str, name: str, columns: Sequence[str]) -> Column:
    return sf.col(f"{side}.{quoted(name)}") if name in columns else sf.lit(None)


def reasons(lake: Lake, path: str, first: int, last: int) -> list[Commit]:
    """The publications after version `first` up to `last`, the oldest first."""
    return [
        commit
        for commit in reversed(known_commits(lake, path))
        if first < commit.version <= last and (note := Note.of_commit(commit.note)) and note.sources is not None
    ]


def versions_read(lake: Lake, path: str, version: int) -> Versions | None:
    """The versions of the sources that the newest publication up to `version` has read; None where none is known."""
    for commit in known_commits(lake, path):
        if commit.version <= version and (note := Note.of_commit(commit.note)) and note.sources is not None:
            return note.sources
    return None


def values(lake: Lake, path: str, plan: AnyPlan, groups: Mapping[str, Sequence[Any]], time_us: int) -> list[Value]:
    """Every value that the rows of a group have had in the window that begins at `time_us` (microseconds; of kinds
    whose windows are the pipeline's own, the one whose rows' time it is), the oldest first. `groups`: values of key
    columns, as `pipelines.results.read.group_values` gives them."""
    commits = {commit.version: commit for commit in known_commits(lake, path)}
    window = windows_of(plan, time_us, time_us + 1)[0]
    _, start, end = plan.owned(range(window, window + 1))
    selection = Selection(groups, start, end)
    about = lake, path, plan, selection, min(commits)
    changes = either(lambda: _changes_here(*about), lambda: _changes_by_spark(*about))
    come = {(version, key_of(plan, row)) for version, kind, row in changes if kind == "insert"}
    return [
        Value(commits[version], None if kind == "delete" else row)
        for version, kind, row in changes
        if kind != "delete" or (version, key_of(plan, row)) not in come  # a row of another form took its place
    ]


def key_of(plan: AnyPlan, row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(comparable(row[name]) for name in plan.key)


def _changes_here(lake: Lake, path: str, plan: AnyPlan, selection: Selection, first: int) -> list[Change]:
    """Version, change and row of each change but the images before it, ordered by version, key and change."""
    table = table_here(lake, path)
    changes = []
    for version, feed in table.feed_by_version(table.schema.names, first, limits.COMPARED):
        rows = feed.filter(mask(feed, plan, selection)).to_pylist()
        changes += [(version, row.pop(CHANGE), row) for row in rows]
    ordered = sorted(changes, key=lambda item: (item[0], [comparable(item[2][name]) for name in plan.key], item[1]))
    return [change for change in ordered if change[1] != "update_preimage"]


def _changes_by_spark(lake: Lake, path: str, plan: AnyPlan, selection: Selection, first: int) -> list[Change]:
    feed = lake.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", first).load(path)
    rows = feed.where(reduce(lambda a, b: a & b, conditions(plan, selection))).where(
        sf.col(CHANGE) != "update_preimage"
    )
    changes = []
    for row in rows.orderBy(COMMIT, *map(column, plan.key), sf.col(CHANGE)).collect():
        document = row.asDict(recursive=True)
        values = {name: value for name, value in document.items() if not name.startswith(("_change_", "_commit_"))}
        changes.append((row[COMMIT], row[CHANGE], values))
    return changes
