"""Rows sorted by (partition, time) with what the kernel needs of each: matches, comparison codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cep_core.errors import BadEventsError
from cep_core.events.array_types import AnyArray, Float64s, Int32s, Int64s, Positions, UInt64s
from cep_core.events.arrays import arrow, numbers
from cep_core.events.codes import ordered_codes
from cep_core.events.normalise import distinct_reals
from cep_core.expressions.columnar import evaluate
from cep_core.expressions.pair_opcodes import EARLIER, LATER, STACK
from cep_core.language import syntax as s
from cep_core.trends.compile.pair_programs import Program, compile_program
from cep_core.trends.kernels.row_order import by_partition, falls, in_order, mark_partition_ends
from cep_core.trends.run.events import Events


@dataclass(frozen=True)
class Slice:
    """n rows of `events`: `rows` their indices there, `partition` (int64 codes) and `time` ascending. `taken`: columns
    in the slice's order, as far as they were asked for."""

    events: Events
    rows: Int64s
    partition: Int32s
    time: Int64s
    ok: UInt64s
    taken: dict[str, pa.Array]

    @property
    def length(self) -> int:
        return len(self.rows)

    def having(self, variable: str) -> Positions:
        """Positions in the slice that `variable` may bind; a slice(None) when all may."""
        bit = np.uint64(1 << self.events.plan.variables.index(variable))
        bound = (self.ok & bit) != 0
        return slice(None) if bound.all() else np.flatnonzero(bound)

    def column(self, name: str) -> pa.Array:
        """The normalised array of a column, in the slice's order."""
        if name not in self.taken:
            self.taken[name] = self.events.taken(name, self.rows)
        return self.taken[name]

    def value(self, node: s.Expr, positions: Positions) -> pa.Array:
        """An expression over attributes of one event, for `positions` of the slice."""
        if isinstance(positions, slice):
            return evaluate(node, lambda attribute: self.column(attribute.name), self.length)
        return self.events.value(node, self.rows[positions])


def make_slice(events: Events, variables: tuple[str, ...], partition: Int32s) -> Slice:
    """The rows that one of `variables` may bind, by (`partition`, time). `partition`: a code for every row of
    events."""
    bits = np.uint64(sum(1 << events.plan.variables.index(v) for v in variables))
    matches, time = events.matches, events.plan.schema.event_time
    # both arrays are part of what is kept, so that no other can have their identity
    key = (bits, time, id(matches), id(partition))
    _, _, arrays = events.columns.latest(
        "slice", key, lambda: (matches, partition, _sorted_rows(matches & bits, partition, events.time))
    )
    return Slice(events, *arrays)


def _sorted_rows(
    ok: UInt64s, partition: Int32s, time: Int64s
) -> tuple[Int64s, Int32s, Int64s, UInt64s, dict[str, pa.Array]]:
    bound = ok != 0
    rows: Int64s = np.arange(len(ok))
    if not bound.all():
        rows = np.flatnonzero(bound)
        partition, time, ok = partition[rows], time[rows], ok[rows]
    if not in_order(partition, time):
        order = by_partition(partition, _by_time(time))
        rows, partition, time, ok = rows[order], partition[order], time[order], ok[order]
    return rows, np.ascontiguousarray(partition), np.ascontiguousarray(time), ok, {}


RUN = 1_000
"""Rows of a rising run, on average, from which on runs are merged."""
_OPS = {"=": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}


def make_predicates(slice_: Slice, tried: tuple[tuple[str, str], ...]) -> tuple[AnyArray, ...]:
    """What `kernels.predicates.pair_true` reads, for the (V, W) tried pair by pair, in that order."""
    plan, n = slice_.events.plan, slice_.length
    ops: list[int] = []
    codes: list[tuple[Int32s, Int32s]] = []
    code: list[tuple[int, int]] = []
    ends = [0]
    leaves: list[Float64s] = []
    families = plan.schema.families
    for names in tried:
        pair = plan.pair(*names)
        v, w = slice_.having(pair.earlier), slice_.having(pair.later)
        for split in pair.splits:
            left = slice_.value(split.earlier, v)
            right = slice_.value(split.later, w)
            (code_v, code_w), _ = ordered_codes(left, right)
            sides = (np.full(n, -1, np.int32), np.full(n, -1, np.int32))
            sides[0][v], sides[1][w] = code_v, code_w
            ops.append(_OPS[split.op])
            codes.append(sides)
        for condition in pair.mixed:
            program = compile_program(condition, lambda attribute: families[attribute.name])
            code += [(op, leaf + len(leaves) * (op in (EARLIER, LATER))) for op, leaf in program.code]
            ends.append(len(code))
            leaves += _leaves(slice_, program, v, w)
    empty = np.zeros((0, n), np.int32)
    return (
        np.array(ops, dtype=np.int64),
        np.stack([side[0] for side in codes]) if codes else empty,
        np.stack([side[1] for side in codes]) if codes else empty,
        np.array(ends, dtype=np.int64),
        np.array(code, dtype=np.int64).reshape(len(code), 2),
        np.stack(leaves) if leaves else np.zeros((0, n)),
        np.zeros(STACK),
        np.zeros(1, np.int64),
    )


def check_alarm(predicates: tuple[AnyArray, ...]) -> None:
    """Raises BadEventsError when a program met whole numbers past 2^53."""
    if predicates[-1][0]:
        raise BadEventsError("an adjacent condition computes whole numbers past 2^53: they would not be exact")


def _leaves(slice_: Slice, program: Program, v: Positions, w: Positions) -> list[Float64s]:
    """float64 (n) of each leaf, NaN where NULL; strings as codes of one order."""
    values = []
    for node, later in program.leaves:
        values.append(slice_.value(node, w if later else v))
    values = distinct_reals(values, "an adjacent condition")
    strings = [i for i, array in enumerate(values) if pa.types.is_string(array.type)]
    if strings:
        coded, _ = ordered_codes(*(values[i] for i in strings))
        for i, codes in zip(strings, coded, strict=True):
            values[i] = arrow(codes, codes < 0)
    leaves = []
    for (_, later), array in zip(program.leaves, values, strict=True):
        if pa.types.is_integer(array.type) and pc.any(pc.greater_equal(pc.abs(array), 2**53)).as_py():
            raise BadEventsError("an adjacent condition reads whole numbers past 2^53: they would not be exact")
        leaf = np.full(slice_.length, np.nan)
        leaf[w if later else v] = numbers(array.cast(pa.float64(), safe=False), np.nan)
        leaves.append(leaf)
    return leaves


def partition_ends(partition: Int32s) -> Int64s:
    """For each position the end (exclusive) of its partition."""
    ends = np.empty(len(partition), np.int64)
    mark_partition_ends(partition, ends)
    return ends


def _by_time(time: Int64s) -> Int64s:
    """The order of `time`; a stable sort merges rows that come in a few rising runs, as blocks of a stream do."""
    descents = falls(time)
    if not descents:
        return np.arange(len(time))
    return np.argsort(time, kind="stable" if descents * RUN < len(time) else None)
