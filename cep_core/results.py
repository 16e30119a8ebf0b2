"""Sums by group and window as the columns a user asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cep_core.aggregates import Number, carried
from cep_core.plan import Plan

Array = Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Row(NamedTuple):
    """One (group, window): times in microseconds, sums and extreme values in the order of `aggregates.carried`."""

    group: tuple[Any, ...]
    start: int
    end: int
    sums: tuple[Number, ...]
    extremes: tuple[Any, ...]


def result_table(plan: Plan, rows: list[Row]) -> pa.Table:
    """Rows as a table of `plan.result_schema`."""
    wanted = carried(plan.measures)
    columns: list[list[Any]] = [[row.group[i] for row in rows] for i in range(len(plan.group_by))]
    columns.append([row.start for row in rows])
    columns.append([row.end for row in rows])
    for m in plan.measures:
        if m.function == "count":
            k = wanted.index("trend" if m.variable is None else "events", m.variable, None)
            columns.append([row.sums[k].count() for row in rows])
            columns.append([row.sums[k].log10() for row in rows])
        elif m.function in ("min", "max"):
            x = wanted.extremes.index((m.function, str(m.variable), str(m.attribute)))
            columns.append([row.extremes[x] for row in rows])
        else:
            present = wanted.index("present", m.variable, m.attribute)
            value = wanted.index("value", m.variable, m.attribute)
            some = [None if row.sums[present].is_zero else row for row in rows]
            if m.function == "avg":
                columns.append([None if r is None else r.sums[value].ratio(r.sums[present]) for r in some])
            else:
                columns.append([None if r is None else r.sums[value].double() for r in some])
                columns.append([None if r is None else r.sums[value].log10() for r in some])
    schema = plan.result_schema
    arrays = [_array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def plain_table(
    plan: Plan, groups: list[list[Any]], windows: Array, sums: Array, extremes: list[list[Any]]
) -> pa.Table:
    """A table of `plan.result_schema` of R cells whose numbers float64 holds: by group column a list of values; window
    indices (R); sums (R, K), extreme values by extremum, in the order of `aggregates.carried`."""
    wanted = carried(plan.measures)
    start = plan.windows.origin + windows * plan.windows.slide
    columns: list[Any] = [*groups, pa.array(start), pa.array(start + plan.windows.within)]
    for m in plan.measures:
        if m.function == "count":
            count = sums[:, wanted.index("trend" if m.variable is None else "events", m.variable, None)]
            columns += [pa.array(count.astype(np.int64)), _log10(count, count == 0)]
        elif m.function in ("min", "max"):
            columns.append(extremes[wanted.extremes.index((m.function, str(m.variable), str(m.attribute)))])
        else:
            present = sums[:, wanted.index("present", m.variable, m.attribute)]
            value = sums[:, wanted.index("value", m.variable, m.attribute)]
            none = present == 0
            if m.function == "avg":
                columns.append(pa.array(value / np.where(none, 1.0, present), mask=none))
            else:
                columns += [pa.array(value, mask=none), _log10(np.abs(value), none | (value == 0))]
    arrays = [
        _array(column, field.type) if isinstance(column, list) else column.cast(field.type)
        for column, field in zip(columns, plan.result_schema, strict=True)
    ]
    return pa.table(arrays, schema=plan.result_schema)


def _log10(values: Array, none: Array) -> Array:
    return pa.array(np.log10(np.where(none, 1.0, values)), mask=none)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind) and values and any(isinstance(v, int) for v in values):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_date(kind) and any(isinstance(v, int) for v in values):
        return pa.array([None if v is None else (_EPOCH + timedelta(microseconds=v)).date() for v in values], kind)
    if pa.types.is_timestamp(kind) or pa.types.is_floating(kind):
        return pa.array(values).cast(kind) if any(v is not None for v in values) else pa.nulls(len(values), kind)
    return pa.array(values, kind)
