"""The search where each condition reads its row and rows near it: conditions as columns, then two compiled passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import AnyArray, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers, read_only, valid
from trendlake.cep_core.expressions.columnar import evaluate, true_rows
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.match_recognize.compile.chain import MOST_PLACES, MOST_VARIABLES
from trendlake.cep_core.match_recognize.compile.classes import class_of_plan, conditions_of
from trendlake.cep_core.match_recognize.compile.leaves import Navigation, whole
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.match_recognize.compile.program import ACCEPT
from trendlake.cep_core.match_recognize.run.matches import Matches, skip_failed
from trendlake.cep_core.match_recognize.run.rows import Rows

MOST_WAYS = 1_000_000
MOST_CELLS = 200_000_000
"""Places times rows of the largest partition that a bound asks to remember."""
MODES = {"past_last": 0, "next": 1, "first": 2, "last": 3}


def matches_by_passes(plan: RowPatternPlan, rows: Rows) -> Matches | None:
    """The matches; None where the search in Python finds them: for other conditions, very large patterns, and
    conditions that cannot be computed at every row."""
    largest = int(np.diff(rows.bounds).max(initial=0))
    program = plan.program
    if class_of_plan(plan) != "local" or is_large(plan) or largest >= 2**31 - 1:
        return None
    if plan.bound is not None and largest * program.length > MOST_CELLS:
        return None
    try:
        true = true_of(plan, rows)
    except BadEventsError:
        return None
    return _searched(plan, rows, true, largest)


def is_large(plan: RowPatternPlan) -> bool:
    """Whether a pattern has too many places or variables for the kernels."""
    return plan.program.length > MOST_PLACES or len(set(plan.program.variables)) > MOST_VARIABLES


def hopeful(plan: RowPatternPlan, rows: Rows) -> Int64s | None:
    """Of each row the places, as bits in words (rows, words), that may take it so that a match can end later, if all
    conditions hold that are not local. None where that is not known."""
    if is_large(plan):
        return None
    ways = ways_of(plan)
    try:
        true = true_of(plan, rows)
    except BadEventsError:
        return None
    if ways is None:
        return None
    from trendlake.cep_core.match_recognize.kernels import local as kernel

    can = np.zeros((rows.length, ways.mask.shape[1]), np.int64)
    kernel.reachable(ways, kernel.Ordered(*map(read_only, (true, rows.bounds, rows.times, rows.begins))), can)
    return can


def true_of(plan: RowPatternPlan, rows: Rows) -> Int64s:
    """Of each row the variables, a bit each in the order of `conditions_of`, whose condition is true, or not local."""
    true = np.zeros(rows.length, np.int64)
    for bit, condition in enumerate(conditions_of(plan)):
        if condition.value is None or condition.cls != "local":
            true |= np.int64(1 << bit)
        else:
            holds = true_rows(evaluate(condition.value, lambda read: near(rows, read), rows.length))
            true |= holds.astype(np.int64) << np.int64(bit)
    return true


def near(rows: Rows, read: s.Attribute) -> pa.Array:
    """A leaf that reads the row or one at a fixed distance, for each row."""
    if isinstance(read, Navigation):
        return rows.once(("near", read), lambda: _shifted(rows, read))
    return rows.column(read.name)


def _shifted(rows: Rows, read: Navigation) -> pa.Array:
    """The value of a navigation from each row to one at a fixed distance, NULL beyond the partition."""
    values = rows.value(read.argument)
    by = read.sign * whole(read.shift)
    if not by:
        return values
    if abs(by) >= rows.length:
        return pa.nulls(rows.length, values.type)
    index = np.arange(rows.length) + by
    sizes = np.diff(rows.bounds)
    missing = (index < np.repeat(rows.bounds[:-1], sizes)) | (index >= np.repeat(rows.bounds[1:], sizes))
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        index[missing] = 0
        return values.take(arrow(index, missing))
    numeric = numbers(values, 0)
    near = np.empty_like(numeric)
    here, there = (slice(-by, None), slice(None, by)) if by < 0 else (slice(None, -by), slice(by, None))
    near[here], known = numeric[there], valid(values)
    near[missing] = 0
    if values.null_count:
        missing[here] |= ~known[there]
    return arrow(near, missing)


def _searched(plan: RowPatternPlan, rows: Rows, true: Int64s, largest: int) -> Matches | None:
    from trendlake.cep_core.match_recognize.kernels import local as kernel  # brings numba

    ways = ways_of(plan)
    if ways is None:
        return None
    bound = plan.bound or 0
    can = np.zeros((largest if not bound else 1, ways.mask.shape[1]), np.int64)
    far = np.zeros((largest if bound else 1, plan.program.length), np.int32)
    ordered = kernel.Ordered(*map(read_only, (true, rows.bounds, rows.times, rows.begins)))
    state = np.zeros(6, np.int64)
    start, number = np.empty(rows.length, np.int64), np.empty(rows.length, np.int64)
    offset, places = np.zeros(rows.length + 1, np.int64), np.empty(max(rows.length, 1), np.int32)
    while True:
        out = kernel.Found(start, number, offset, places, state)
        status = kernel.matches_of(ways, ordered, MODES[plan.onward.mode], bound, can, far, out)
        if status != kernel.MORE_ROOM:
            break
        larger = np.empty(2 * len(places), np.int32)
        larger[: len(places)] = places
        places = larger
    count = int(state[3])
    if status != kernel.DONE:
        raise skip_failed(plan, rows, int(start[count - 1]), missing=status == kernel.NO_TARGET)
    return Matches(start[:count], number[:count], offset[: count + 1], places[: int(offset[count])])


def ways_of(plan: RowPatternPlan) -> Any:
    """The program as arrays (`Ways` of the kernel); None where it has too many ways."""
    from trendlake.cep_core.match_recognize.kernels import local as kernel

    program = plan.program
    names = {name: bit for bit, name in enumerate(dict.fromkeys(program.variables))}
    masks = [program.mask(place) for place in range(program.length)]
    if sum(mask.bit_count() for mask in masks) > MOST_WAYS:
        return None
    behind = [program.behind(place, last=False) for place in range(program.length)]
    mask = np.zeros((program.length, -(-program.length // 64)), np.uint64)
    for place, ways in enumerate(behind):
        for way in ways:
            if way != ACCEPT:
                mask[place, way >> 6] |= np.uint64(1 << (way & 63))
    onward = plan.onward.variables
    arrays: tuple[AnyArray, ...] = (
        np.array([names[name] for name in program.variables], np.int64),
        np.cumsum([0, *map(len, behind)]).astype(np.int64),
        np.array([way for ways in behind for way in ways], np.int32),
        mask.view(np.int64),
        np.array([ACCEPT in ways for ways in behind], np.bool_),
        np.array([program.ends(place) for place in range(program.length)], np.bool_),
        np.array(program.begin(first=True), np.int32),
        np.array(program.begin(first=False), np.int32),
        np.array([name in onward for name in program.variables], np.bool_),
    )
    return kernel.Ways(*map(read_only, arrays))
