"""Sums by group and window as the columns a user asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Bools, Float64s, Int64s, UInt64s
from trendlake.cep_core.events.arrays import arrow, decimals, decimals_of_words
from trendlake.cep_core.events.schema import COUNT_TYPE
from trendlake.cep_core.events.windows import DAY, CalendarWindows
from trendlake.cep_core.trends.compile.check_return import CheckedMeasure
from trendlake.cep_core.trends.compile.plan import Plan
from trendlake.cep_core.trends.kernels.rounding import log10
from trendlake.cep_core.trends.run.aggregates import SECOND, Carried, carried, extreme_of, sums_of
from trendlake.cep_core.trends.run.exact_arithmetic import Number, count_log10, mean, total


class Row(NamedTuple):
    """Of one (group, window): the window's index, sums and extreme values in the order of `aggregates.carried`."""

    window: int
    sums: tuple[Number, ...]
    extremes: tuple[Any, ...]


def result_table(plan: Plan, groups: list[pa.Array], rows: list[Row]) -> pa.Table:
    """Rows of numbers of any size as a table of `plan.result_schema`; `groups`: group columns as Arrow arrays."""
    wanted = carried(plan.measures)
    columns = [*groups, *moments_of(plan, np.array([row.window for row in rows], np.int64))]
    for m in plan.measures:
        if m.counts:
            k = wanted.index(sums_of(m)[-1])
            counts = [row.sums[k] for row in rows]
            columns.append(decimals([count.count() for count in counts], COUNT_TYPE))
            columns.append(_doubles([None if count.is_zero else count_log10(count) for count in counts]))
        elif m.function not in ("sum", "avg"):
            x = _place(wanted, m)
            values = [row.extremes[x] for row in rows]
            if m.ordered:  # what chose them comes first
                values = [None if value is None else value[1] for value in values]
            columns.append(pa.array(values))
        else:
            present, value = (wanted.index(one) for one in sums_of(m))
            some = [None if row.sums[present].is_zero else row for row in rows]
            unit = SECOND if m.of == "duration" else 1.0
            if m.function == "avg":
                means = [None if r is None else mean(r.sums[value], r.sums[present]) / unit for r in some]
                columns.append(_microseconds(means) if m.family == "duration" else _doubles(means))
            elif m.family == "duration":
                columns.append(pa.array([None if r is None else _int64(r.sums[value]) for r in some], pa.int64()))
                columns += _sums([None if r is None else total(r.sums[value]) for r in some], unit)[1:]
            else:
                columns += _sums([None if r is None else total(r.sums[value]) for r in some], unit)
    return _table(plan, columns)


def _place(wanted: Carried, m: CheckedMeasure) -> int:
    """The place of a measure among the extreme values of a row."""
    return len(wanted.extremes) if m.function == "longest" else wanted.extremes.index(extreme_of(m))


def plain_table(
    plan: Plan,
    groups: list[pa.Array],
    windows: Int64s,
    counts: dict[int, Float64s],
    sums: dict[int, tuple[Float64s, Int64s]],
    extremes: list[pa.Array],
) -> pa.Table:
    """A table of `plan.result_schema` of R cells whose numbers float64 holds: group columns and extreme values as Arrow
    arrays; window indices (R); counts (R), and sums of values as mantissas and exponents (R), by their place in
    `aggregates.carried`."""
    shown = {k: [arrow(count.astype(np.int64)), _log10(*_parted(count))] for k, count in counts.items()}
    return _columns_table(plan, groups, windows, shown, counts, sums, extremes)


def counts_table(
    plan: Plan,
    groups: list[pa.Array],
    windows: Int64s,
    counts: dict[int, tuple[UInt64s, Bools, Float64s]],
    extremes: list[pa.Array],
) -> pa.Table:
    """The same of cells with larger counts, and no sums of values. A count: two words (R, 2) where DECIMAL(38,0) holds
    it (R), and logarithms (R), 0 of zero."""
    shown = {
        k: [decimals_of_words(words, ~fits, COUNT_TYPE), arrow(logarithms, fits & ~words.any(axis=1))]
        for k, (words, fits, logarithms) in counts.items()
    }
    return _columns_table(plan, groups, windows, shown, {}, {}, extremes)


def _columns_table(
    plan: Plan,
    groups: list[pa.Array],
    windows: Int64s,
    shown: dict[int, list[pa.Array]],
    counts: dict[int, Float64s],
    sums: dict[int, tuple[Float64s, Int64s]],
    extremes: list[pa.Array],
) -> pa.Table:
    """`shown`: each count and its logarithm."""
    wanted = carried(plan.measures)
    columns = [*groups, *moments_of(plan, windows)]
    for m in plan.measures:
        if m.counts:
            columns += shown[wanted.index(sums_of(m)[-1])]
        elif m.function not in ("sum", "avg"):
            columns.append(extremes[_place(wanted, m)])
        else:
            number, value = (wanted.index(one) for one in sums_of(m))
            present = counts[number]
            mantissa, exponent = _parted(counts[value]) if m.of == "length" else sums[value]
            unit = SECOND if m.of == "duration" else 1.0
            if m.function == "avg":
                a, p = _parted(present)
                ratio = np.ldexp(mantissa / np.where(present == 0, 1.0, a), exponent - p) / unit
                ratio = np.rint(ratio) if m.family == "duration" else ratio
                columns.append(arrow(ratio, present == 0))
            else:
                columns += _summed(mantissa, exponent, present == 0, unit)
    return _table(plan, columns)


def _parted(count: Float64s) -> tuple[Float64s, Int64s]:
    """Mantissa and exponent."""
    m, e = np.frexp(count)
    return m, e.astype(np.int64)


def _sums(sums: Sequence[tuple[float, int] | None], unit: float) -> list[pa.Array]:
    """SUM and its companion; sums are shown in so large units."""
    mantissa = np.array([0.0 if one is None else one[0] for one in sums], np.float64)
    exponent = np.array([0 if one is None else one[1] for one in sums], np.int64)
    return _summed(mantissa, exponent, np.array([one is None for one in sums], np.bool_), unit)


def _summed(mantissa: Float64s, exponent: Int64s, none: Bools, unit: float) -> list[pa.Array]:
    """SUM, NULL where it is past float64, and its companion."""
    if unit != 1.0:
        mantissa, more = np.frexp(mantissa / unit)
        exponent = exponent + more
    with np.errstate(over="ignore"):
        value = np.ldexp(mantissa, exponent)
    return [arrow(value, none | np.isinf(value)), _log10(np.abs(mantissa), exponent)]


def moments_of(plan: Plan, windows: Int64s) -> list[pa.Array]:
    """`window_start`, `window_end` and, of calendar windows, `window_date`."""
    moments = [arrow(plan.windows.starts(windows)), arrow(plan.windows.ends(windows))]
    if isinstance(plan.windows, CalendarWindows):
        moments.append(arrow(plan.windows.dates(windows) * DAY))
    return moments


def _log10(mantissa: Float64s, exponent: Int64s) -> pa.Array:
    """NULL of zero."""
    none = mantissa == 0.0
    logarithms = np.zeros(len(mantissa))
    log10(np.where(none, 0.5, mantissa), exponent, logarithms)
    return arrow(logarithms, none)


def _doubles(values: list[float | None]) -> pa.Array:
    missing = np.array([value is None for value in values], np.bool_)
    return arrow(np.array([value or 0.0 for value in values], np.float64), missing)


def _microseconds(values: list[float | None]) -> pa.Array:
    """Means of durations, as whole numbers."""
    return pa.array([None if value is None else round(value) for value in values], pa.int64())


def _int64(value: Number) -> int | None:
    """A sum of durations; None where 64 bits do not hold it."""
    whole = value.whole << value.power if value.exact and value.whole.bit_length() + value.power < 64 else None
    return 0 if value.is_zero else whole


def _table(plan: Plan, columns: list[pa.Array]) -> pa.Table:
    schema = plan.result_schema
    return pa.table([shown(c, field.type) for c, field in zip(columns, schema, strict=True)], schema=schema)


def shown(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column in the type that results show it in; microseconds as a day are that day."""
    if pa.types.is_date(kind) and pa.types.is_integer(column.type):
        column = column.cast(pa.timestamp("us"))
    return column.cast(kind, safe=False)
