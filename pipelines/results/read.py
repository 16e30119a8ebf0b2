"""Rows of a pattern's results for people: some groups, some time, the greatest or latest first.

A table on this machine's disk is read in this process, so that no Spark has to start; any other by Spark. Both give
the same rows in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_type

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.errors import did_you_mean
from trendlake.cep_core.sharing.family import FamilyPlan
from trendlake.pipelines.errors import BadNumberError, BadTimeError, OtherFormError, ProjectError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import TableHere
from trendlake.pipelines.lake.lake import Lake, exists
from trendlake.pipelines.lake.road import answer_of, either
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.results.columns import rank_of, time_of
from trendlake.pipelines.results.provenance import PLAN_HASH
from trendlake.pipelines.results.reuse import current_hashes
from trendlake.pipelines.results.spark_order import comparable
from trendlake.pipelines.spark.columns import column


@dataclass(frozen=True)
class Selection:
    """Which rows are asked for. `groups`: of key columns, the values that a row may have; `start`, `end`: half-open,
    microseconds, of the time that says which window a row is of; `limit`: how many rows, None for all."""

    groups: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    start: int | None = None
    end: int | None = None
    limit: int | None = None
    latest: bool = False
    """Whether the latest come first, whatever the rows count."""

    def rank(self, plan: AnyPlan) -> str:
        """The column whose greatest values come first."""
        return time_of(plan) if self.latest else rank_of(plan)


@dataclass(frozen=True)
class Rows:
    """`table`: the selected rows, columns of `plan.result_schema`; `selected`: how many there are without the limit;
    `total`: the rows of the table; `stale`: those of another form of the pattern, of all."""

    table: pa.Table
    selected: int
    total: int
    stale: int


def group_values(plan: AnyPlan, texts: Mapping[str, str], option: str) -> dict[str, list[Any]]:
    """The value of each key column, or of the column of queries, that `texts` means; NULL is None. Raises ProjectError:
    no such column, or a text that is no value of its type."""
    return {name: [_value(plan, name, None if text == "NULL" else text, option)] for name, text in texts.items()}


def key_values(plan: AnyPlan, given: Mapping[str, Any]) -> dict[str, list[Any]]:
    """As `group_values`, of values of Python, each one or a list of several; a text is read as in `group_values`, but
    never NULL."""
    several = {name: list(one) if isinstance(one, list | tuple | set) else [one] for name, one in given.items()}
    for name in (name for name, values in several.items() if not values):
        raise ProjectError(f"no value of '{name}' is asked for", hint="leave it out for all rows")
    return {name: [_value(plan, name, one, "where") for one in values] for name, values in several.items()}


def _value(plan: AnyPlan, name: str, value: Any, option: str) -> Any:
    by_query = plan.result_shape.hashed_by
    known = plan.key if by_query is None else (by_query[0], *plan.key)
    if name not in known:
        raise ProjectError(f"'{name}' is no column of the key", hint=did_you_mean(name, known))
    kind = plan.result_schema.field(name).type
    if value is None:
        return None
    try:
        if pa.types.is_timestamp(kind):
            kind = pa.timestamp("us", "UTC")
        return pa.scalar(value).cast(kind).as_py()
    except pa.ArrowException:
        error = BadTimeError if pa.types.is_temporal(kind) else BadNumberError
        raise error(
            f"{option} {name}={value}: '{name}' is {kind}, '{value}' is none", hint="NULL stands for no value"
        ) from None


def read_rows(lake: Lake, path: str, plan: AnyPlan, selection: Selection, version: int | None = None) -> Rows:
    """The selected rows of the results at `path`, as of `version`, the newest where it is None.

    Raises ProjectError: there is no table at `path`, or its rows are of a form of the pattern without some columns.
    """
    if not exists(lake, path):
        raise ProjectError(f"there are no results in {path}")
    table = Table.at(lake, path, version)
    refuse_other_form(plan, table.names)
    return either(
        lambda: _here(answer_of(table.here), plan, selection), lambda: _by_spark(table.frame, plan, selection)
    )


def newest_rows(lake: Lake, path: str, limit: int | None, version: int | None) -> tuple[pa.Table, int]:
    """Rows of a results table whose plan is not known, the last computed first, in no order among those of one run;
    and how many there are in all. `limit`, `version`: None for all rows, for the newest version."""
    table = Table.at(lake, path, version)
    return table.newest("computed_at", limit, limits.RESULTS_READ), table.row_count


def refuse_other_form(plan: AnyPlan, names: Sequence[str]) -> None:
    missing = [name for name in plan.result_schema.names if name not in names]
    if missing:
        message = f"the results are of an earlier form of the pattern, without {', '.join(missing)}"
        raise OtherFormError(message, hint="compute its windows again")


def _here(table: TableHere, plan: AnyPlan, selection: Selection) -> Rows:
    every = table.every([*plan.result_schema.names, PLAN_HASH], limits.RESULTS_READ)
    stale = _stale(every, plan)
    chosen = every.filter(mask(every, plan, selection))
    rows = _greatest(chosen, selection.rank(plan), plan.key, selection.limit)
    return Rows(rows.select(plan.result_schema.names), chosen.num_rows, every.num_rows, stale)


def _stale(rows: pa.Table, plan: AnyPlan) -> int:
    """The rows of another form of the pattern; of a family, those too of members that it has no more."""
    ends = pc.min_max(rows[time_of(plan)].cast(pa.int64()))
    hashes = sorted(_current_hashes(plan, ends["min"].as_py(), ends["max"].as_py()))
    current = rows.filter(pc.is_in(rows[PLAN_HASH], pa.array(hashes, pa.string())))
    if isinstance(plan, FamilyPlan):
        names = list(plan.parameters.names)
        counts = current.group_by(names).aggregate([([], "count_all")])
        rest = zip(*(_plain(counts[name]) for name in names), counts["count_all"].to_pylist(), strict=True)
        return int(rows.num_rows) - _rows_of_members(plan, rest)
    return int(rows.num_rows - current.num_rows)


def _plain(values: pa.ChunkedArray) -> list[Any]:
    """Values as a family's rows have them."""
    times = pa.types.is_timestamp(values.type)
    return list((values.cast(pa.int64()) if times else values).to_pylist())


def _rows_of_members(plan: FamilyPlan, counts: Iterable[tuple[Any, ...]]) -> int:
    """`counts`: the values of the parameters and how many rows have them."""
    members = set(plan.parameters.rows)
    return sum(int(count) for *row, count in counts if tuple(row) in members)


def mask(rows: pa.Table, plan: AnyPlan, selection: Selection) -> Any:
    """For each of `rows` whether it has the groups and times of `selection`: Booleans, not NULL. A row without the time
    of the plan's is of another kind, which the pattern has been of."""
    time = rows[time_of(plan)].cast(pa.int64())
    tests = [pc.is_valid(time), *(_one_of(rows[name], values) for name, values in selection.groups.items())]
    if selection.start is not None:
        tests.append(pc.greater_equal(time, selection.start))
    if selection.end is not None:
        tests.append(pc.less(time, selection.end))
    return reduce(pc.and_, [pc.fill_null(test, False) for test in tests])


def _one_of(column: pa.ChunkedArray, values: Sequence[Any]) -> Any:
    return reduce(pc.or_, [pc.fill_null(_equal(column, value), False) for value in values])


def _equal(values: pa.ChunkedArray, value: Any) -> Any:
    """As Spark's `<=>`: NULL equals NULL, NaN equals NaN."""
    if value is None:
        return pc.is_null(values)
    if isinstance(value, float) and math.isnan(value):
        return pc.is_nan(values)
    return pc.equal(values, pa.scalar(value, values.type))


def _greatest(rows: pa.Table, rank: str, key: Sequence[str], limit: int | None) -> pa.Table:
    """`limit` rows, by `rank` descending (NULL last), then by `key` ascending (NULL first), as Spark orders them."""
    if limit is not None and rows.num_rows > limit:
        ranked = rows.filter(pc.is_valid(rows[rank]))
        if ranked.num_rows >= limit:  # the others are no candidates, and Python does not have to order them
            order = pc.SelectKOptions(limit, [(rank, "descending")])
            least = pc.min(ranked[rank].take(pc.select_k_unstable(ranked.select([rank]), options=order)))
            rows = ranked.filter(pc.greater_equal(ranked[rank], least))
    columns = [rows[name].to_pylist() for name in key]
    ascending = sorted(range(rows.num_rows), key=lambda at: [comparable(values[at]) for values in columns])
    ranks = rows[rank].to_pylist()
    ordered = sorted(ascending, key=lambda at: (ranks[at] is not None, comparable(ranks[at])), reverse=True)
    if rows.num_rows > 1:
        # `reverse` keeps equal ranks in the order of the key
        rows = rows.take(pa.array(ordered, pa.int64()))
    return rows if limit is None else rows.slice(0, limit)


def _by_spark(every: DataFrame, plan: AnyPlan, selection: Selection) -> Rows:
    chosen = every.where(reduce(lambda a, b: a & b, conditions(plan, selection)))
    ordered = chosen.orderBy(column(selection.rank(plan)).desc_nulls_last(), *map(column, plan.key))
    limited = ordered if selection.limit is None else ordered.limit(selection.limit)
    if isinstance(plan, FamilyPlan):
        values = [
            sf.unix_micros(column(name)) if kind == "timestamp" else column(name)
            for name, kind in zip(plan.parameters.names, plan.parameters.kinds, strict=True)
        ]
        current = every.where(column(PLAN_HASH).eqNullSafe(sf.lit(plan.form)))
        counts = current.groupBy(*(value.alias(f"p{i}") for i, value in enumerate(values))).count().collect()
        stale = every.count() - _rows_of_members(plan, map(tuple, counts))
    else:
        forms = {row[PLAN_HASH]: row["count"] for row in every.groupBy(PLAN_HASH).count().collect()}
        moments = sf.unix_micros(column(time_of(plan)))
        hashes = _current_hashes(plan, *every.agg(sf.min(moments), sf.max(moments)).collect()[0])
        stale = sum(count for form, count in forms.items() if form not in hashes)
    rows = limited.select(*map(column, plan.result_schema.names)).toArrow()
    return Rows(rows, chosen.count(), every.count(), stale)


def _current_hashes(plan: AnyPlan, first: int | None, last: int | None) -> set[str]:
    """`first`, `last`: the time of the first and the last row, None where there is none."""
    return set() if first is None or last is None else current_hashes(plan, first, last)


def conditions(plan: AnyPlan, selection: Selection) -> list[Column]:
    """Spark's conditions on rows with the groups and times of `selection`, as `mask`."""
    time = sf.unix_micros(column(time_of(plan)))
    equal = [
        reduce(or_, [column(name).eqNullSafe(_literal(plan, name, value)) for value in values])
        for name, values in selection.groups.items()
    ]
    tests = [time.isNotNull(), *equal]
    if selection.start is not None:
        tests.append(time >= selection.start)
    if selection.end is not None:
        tests.append(time < selection.end)
    return tests


def _literal(plan: AnyPlan, name: str, value: Any) -> Column:
    return sf.lit(value).cast(from_arrow_type(plan.result_schema.field(name).type))
