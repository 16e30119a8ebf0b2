"""Sums by group and window as the columns a user asked for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cep_core.aggregates import Number, carried
from cep_core.buffers import arrow, decimals
from cep_core.plan import COUNT_TYPE, Plan

Array = Any


class Row(NamedTuple):
    """Of one (group, window): the window's index, sums and extreme values in the order of `aggregates.carried`."""

    window: int
    sums: tuple[Number, ...]
    extremes: tuple[Any, ...]


def result_table(plan: Plan, groups: list[Array], rows: list[Row]) -> pa.Table:
    """Rows of numbers of any size as a table of `plan.result_schema`; `groups`: group columns as Arrow arrays."""
    wanted = carried(plan.measures)
    columns = [*groups, *_moments(plan, np.array([row.window for row in rows], np.int64))]
    for m in plan.measures:
        if m.function == "count":
            k = wanted.index("trend" if m.variable is None else "events", m.variable, None)
            columns.append(decimals([row.sums[k].count() for row in rows], COUNT_TYPE))
            columns.append(_doubles([row.sums[k].log10() for row in rows]))
        elif m.function in ("min", "max"):
            x = wanted.extremes.index((m.function, str(m.variable), str(m.attribute)))
            columns.append(pa.array([row.extremes[x] for row in rows]))
        else:
            present = wanted.index("present", m.variable, m.attribute)
            value = wanted.index("value", m.variable, m.attribute)
            some = [None if row.sums[present].is_zero else row for row in rows]
            if m.function == "avg":
                columns.append(_doubles([None if r is None else r.sums[value].ratio(r.sums[present]) for r in some]))
            else:
                columns.append(_doubles([None if r is None else r.sums[value].double() for r in some]))
                columns.append(_doubles([None if r is None else r.sums[value].log10() for r in some]))
    return _table(plan, columns)


def plain_table(plan: Plan, groups: list[Array], windows: Array, sums: Array, extremes: list[Array]) -> pa.Table:
    """A table of `plan.result_schema` of R cells whose numbers float64 holds: group columns and extreme values as Arrow
    arrays; window indices (R); sums (R, K), in the order of `aggregates.carried`."""
    wanted = carried(plan.measures)
    columns = [*groups, *_moments(plan, windows)]
    for m in plan.measures:
        if m.function == "count":
            count = sums[:, wanted.index("trend" if m.variable is None else "events", m.variable, None)]
            columns += [arrow(count.astype(np.int64)), _log10(count, count == 0)]
        elif m.function in ("min", "max"):
            columns.append(extremes[wanted.extremes.index((m.function, str(m.variable), str(m.attribute)))])
        else:
            present = sums[:, wanted.index("present", m.variable, m.attribute)]
            value = sums[:, wanted.index("value", m.variable, m.attribute)]
            none = present == 0
            if m.function == "avg":
                columns.append(arrow(value / np.where(none, 1.0, present), none))
            else:
                columns += [arrow(value, none), _log10(np.abs(value), none | (value == 0))]
    return _table(plan, columns)


def _moments(plan: Plan, windows: Array) -> list[Array]:
    """`window_start` and `window_end`."""
    start = plan.windows.origin + windows * plan.windows.slide
    return [arrow(start), arrow(start + plan.windows.within)]


def _log10(values: Array, none: Array) -> Array:
    return arrow(np.log10(np.where(none, 1.0, values)), none)


def _doubles(values: list[float | None]) -> Array:
    missing = np.array([value is None for value in values], np.bool_)
    return arrow(np.array([value or 0.0 for value in values], np.float64), missing)


def _table(plan: Plan, columns: list[Array]) -> pa.Table:
    schema = plan.result_schema
    return pa.table([_shown(c, field.type) for c, field in zip(columns, schema, strict=True)], schema=schema)


def _shown(column: Array, kind: pa.DataType) -> Array:
    """A column in the type that results show it in; microseconds as a day are that day."""
    if pa.types.is_date(kind) and pa.types.is_integer(column.type):
        column = column.cast(pa.timestamp("us"))
    return column.cast(kind, safe=False)
