"""The search forward, compiled, for conditions that read more than their row and rows near it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import AnyArray, Int64s
from trendlake.cep_core.events.arrays import read_only
from trendlake.cep_core.expressions.columnar import evaluate
from trendlake.cep_core.expressions.operands import Words
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.match_recognize.compile.classes import conditions_of
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.match_recognize.run.local import MODES, near, ways_of
from trendlake.cep_core.match_recognize.run.matches import Matches, skip_failed
from trendlake.cep_core.match_recognize.run.rows import Rows
from trendlake.cep_core.match_recognize.run.search import search_too_long
from trendlake.cep_core.match_recognize.run.sums import unit_of


def matches_by_search(plan: RowPatternPlan, rows: Rows, can: Int64s | None) -> Matches | None:
    """The matches. `can`: of `hopeful`. None where the search in Python finds them: for very large patterns, conditions
    without a compiled form, and numbers that do not fit. Raises SkipFailedError, SearchTooLongError."""
    if can is None:
        return None
    from trendlake.cep_core.match_recognize.kernels import search as kernel  # brings numba
    from trendlake.cep_core.match_recognize.run.encode import Assembly, NotCompiledError

    try:
        assembly = Assembly(plan.program, conditions_of(plan))
        asked = _asked(rows, assembly)
    except (NotCompiledError, BadEventsError):
        return None
    if asked is None:
        return None
    return _searched(plan, rows, can, asked, kernel)


def _asked(rows: Rows, assembly: Any) -> Any:
    """Conditions and registers over the rows (`Asked` of the kernel); None where a sum of doubles needs more than two
    words. Raises BadEventsError."""
    from trendlake.cep_core.match_recognize.kernels import search as kernel
    from trendlake.cep_core.match_recognize.kernels.exact import in_words

    def value(node: s.Expr) -> pa.Array:
        return evaluate(node, lambda read: near(rows, read), rows.length)

    words = Words(assembly, value, rows.length, assembly.variables)
    units, sums = [], [np.zeros((rows.length, 0), np.int64)]
    for at in assembly.sums:
        column, known = words.leaves[:, at].view(np.float64), ~words.leaf_null[:, at]
        unit = unit_of(column, known)
        if unit is None:
            return None
        units.append(unit)
        sums.append(in_words(read_only(column), read_only(known), unit))
    loads = assembly.loads.copy()
    loads[:, kernel.UNIT] = np.array([*units, 0], np.int64)[loads[:, kernel.UNIT]]
    values, reals, null, cases = words.machine
    code = np.array(assembly.code, np.int64).reshape(len(assembly.code), 4)
    names = np.array([words.codes[name] for name in assembly.variables], np.int64)
    tables = (assembly.conditions, loads, assembly.updates, assembly.start, assembly.live, assembly.live.any(axis=1))
    given: list[Any] = [read_only(one) for one in (*tables, code)]
    given += [
        values,
        reals,
        null,
        *map(read_only, (cases, words.leaves, words.leaf_null, np.concatenate(sums, axis=1), names)),
    ]
    return kernel.Asked(*given)


def _searched(plan: RowPatternPlan, rows: Rows, can: Int64s, asked: Any, kernel: Any) -> Matches | None:
    ways = ways_of(plan)
    listed = (ways.ways, ways.first, ways.other, np.array([kernel.ACCEPT], np.int32), np.zeros(0, np.int32))
    offset = np.concatenate([ways.offset[:-1], np.cumsum([*map(len, listed)])]).astype(np.int64)
    arrays: tuple[AnyArray, ...] = (ways.variable, offset, np.concatenate(listed), ways.last, ways.target)
    program = kernel.Program(*map(read_only, arrays))
    ordered = kernel.Ordered(*map(read_only, (can, rows.bounds, rows.times, rows.begins)))
    rules = kernel.Rules(MODES[plan.onward.mode], plan.bound or 0, min(plan.limit_per_start, 2**62))
    width, largest = len(asked.start), int(np.diff(rows.bounds).max(initial=0))
    path = _path(kernel, min(64, largest + 2), 64, width, can.shape[1])
    start, number = np.empty(rows.length, np.int64), np.empty(rows.length, np.int64)
    offset = np.zeros(rows.length + 1, np.int64)
    places, state = np.empty(max(rows.length, 1), np.int32), np.zeros(6, np.int64)
    while True:
        out = kernel.Found(start, number, offset, places, state)
        status = kernel.matches_of(program, ordered, asked, rules, path, out)
        if status == kernel.MORE_ROOM:
            places = np.concatenate([places, np.empty_like(places)])
        elif status == kernel.MORE_DEPTH:
            path = _path(kernel, min(4 * len(path.place), largest + 2), len(path.keys), width, can.shape[1])
        elif status == kernel.MORE_KEYS:
            path = _path(kernel, len(path.place), 4 * len(path.keys), width, can.shape[1])
        else:
            break
    if status == kernel.OVERFLOWED:
        return None
    count = int(state[3])
    if status == kernel.TOO_LONG:
        raise search_too_long(plan, rows, int(state[1]))
    if status != kernel.DONE:
        raise skip_failed(plan, rows, int(start[count - 1]), missing=status == kernel.NO_TARGET)
    return Matches(start[:count], number[:count], offset[: count + 1], places[: int(offset[count])])


def _path(kernel: Any, depth: int, keys: int, width: int, words: int) -> Any:
    """Memory of a search (`Path` of the kernel): for so many rows and keys."""
    one = (np.zeros(depth, np.int64) for _ in range(3))
    registers, failed = np.zeros((depth, width), np.int64), np.zeros((depth, words), np.int64)
    remembered = np.zeros((keys, kernel.KEY_FIELDS + width), np.int64)
    heads = np.zeros((2 * keys, 2), np.int64)
    return kernel.Path(*one, registers, failed, remembered, heads, np.zeros(2, np.int64))
