"""Instance aggregation: all events of one end and partition become a point. Sums are exact, then rounded once."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile.aggregates import AVG, COUNT, MAX, MAX_BY, MIN, MIN_BY, SUM
from trendlake.cep_core.algebra.kernels import totals as k
from trendlake.cep_core.algebra.run.context import Context
from trendlake.cep_core.algebra.run.singles import values_of
from trendlake.cep_core.algebra.run.tables import Table, Words, sortable
from trendlake.cep_core.events.array_types import Bools, Float64s, Int64s
from trendlake.cep_core.expressions.types import infer
from trendlake.cep_core.language import syntax as s


def aggregated(context: Context, node: n.Aggregate, table: Table) -> Table:
    """A point for each end. `table`: each event once, where it matters. Raises BadEventsError."""
    order = np.lexsort((table.end, table.part))
    part, end = table.part[order], table.end[order]
    begins = np.flatnonzero(np.append(True, (part[1:] != part[:-1]) | (end[1:] != end[:-1]))) if len(table) else order
    bounds = np.append(begins, len(table)).astype(np.int64)
    columns = {item.name: _total(context, node, item, table, order, bounds) for item in node.items}
    return Table(part[begins], end[begins], end[begins], columns)


def _total(context: Context, node: n.Aggregate, item: n.Total, table: Table, order: Int64s, bounds: Int64s) -> Words:
    family = context.family(node)
    where = f"SELECT ... AS {item.name}"
    if item.function == COUNT and not item.arguments:
        counts = np.diff(bounds)
        return counts, np.zeros(len(counts), np.bool_)
    columns = []
    for argument in item.arguments:
        words, null = values_of(context, table, argument, family, where)
        columns.append((words[order], null[order]))
    kinds = [infer(argument, family) for argument in item.arguments]
    words, null = columns[0]
    counts = k.counted(null, bounds)
    nothing = counts == 0
    if item.function == COUNT:
        return counts, np.zeros(len(counts), np.bool_)
    if item.function in (MIN, MAX):
        keys = sortable(words, kinds[0])
        best = k.extreme(keys, null, bounds, item.function == MAX)
        return np.where(nothing, 0, words[best]), nothing
    if item.function in (MIN_BY, MAX_BY):
        by, by_null = columns[1]
        least, most = sortable(words, kinds[0]), item.function == MAX_BY
        best = k.extreme_by(sortable(by, kinds[1]), by_null, least, null, bounds, most)
        return np.where(best < 0, 0, words[best]), best < 0
    if kinds[0] == "double":
        return _reals(words.view(np.float64), null, bounds, counts, average=item.function == AVG)
    high, low = k.whole_sums(words, null, bounds)
    if item.function == SUM:
        top = high + (low >> 32)
        if ((top < -(2**31)) | (top >= 2**31)).any():
            raise context.overflow(where, s.Call(item.function, item.arguments))
        return np.where(nothing, 0, (top << 32) + (low & 0xFFFFFFFF)), nothing
    means = [((int(h) << 32) + int(w)) / max(1, int(c)) for h, w, c in zip(high, low, counts, strict=True)]
    return np.array(means, np.float64).view(np.int64), nothing


def _reals(values: Float64s, null: Bools, bounds: Int64s, counts: Int64s, *, average: bool) -> Words:
    """Of each group the exact sum, rounded once; of several infinities NULL. Two values are one addition."""
    sums = k.short_sums(values, null, bounds)
    for group in np.flatnonzero(counts > 2):
        low, high = bounds[group], bounds[group + 1]
        sums[group] = exact_sum(values[low:high][~null[low:high]])
    if average:
        sums = sums / np.maximum(counts, 1)
    nothing = (counts == 0) | np.isnan(sums)
    return np.where(nothing, 0.0, sums + 0.0).view(np.int64), nothing


def exact_sum(values: Float64s) -> float:
    """The nearest double of an exact sum; an infinity if it is beyond all, NaN of infinities that cancel."""
    numbers: list[float] = values.tolist()
    if not all(map(math.isfinite, numbers)):
        return sum(number for number in numbers if not math.isfinite(number))
    try:
        return math.fsum(numbers)
    except OverflowError:
        exact = sum(map(Fraction, numbers))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
