"""The kernel's memory: small at first, grown when `active_runs.advance` asks for more, which then goes on where it
was."""

from __future__ import annotations

import numpy as np

from cep_core.automaton.compile.encode import Assembly
from cep_core.automaton.kernels import active_runs as f
from cep_core.automaton.kernels.start_sets import tidy
from cep_core.automaton.run.events import Stream, Values
from cep_core.events.array_types import Int64s
from cep_core.kernels.run_groups import rehash

MOST_VERDICTS = 1 << 20
"""Bytes for what events do to states, known beforehand for each combination of conditions."""


class OverflowedAt(Exception):  # noqa: N818 - it says where
    """A whole number overflows: `row` of the table of arcs and `event` (position in the stream)."""

    def __init__(self, row: int, event: int) -> None:
        super().__init__(row, event)
        self.row = row
        self.event = event


def drive(
    stream: Stream, values: Values, assembly: Assembly, starts: tuple[int, int], watermark: int,
    *, intervals: bool, keep: bool,
) -> tuple[Int64s, Int64s, Int64s]:  # fmt: skip
    """Rows (first, last, state, register), the log of partial runs and its sets of firsts (both empty unless `keep`).

    Raises OverflowedAt.
    """
    plan, n, width = stream.plan, stream.length, values.init.shape[1]
    states = len(plan.states)
    memory = np.zeros(17, np.int64)
    memory[[f.FREE, f.G]] = -1
    meta, registers, buckets = np.zeros((64, 7), np.int64), np.zeros((64, width), np.int64), np.full(128, -1, np.int64)
    lists = np.full((5, states), -1, np.int64)
    lists[2:] = 0
    nodes, stack = np.zeros((1024, 5), np.int64), np.zeros(1026, np.int64)
    rows, log = np.zeros((1024, 3 + width), np.int64), np.zeros((1024 if keep else 1, 4 + width), np.int64)
    goal, goals, begun, begun_at = (np.zeros(shape, np.int64) for shape in ((16, width), 16, (16, width), 16))
    alarm = np.zeros(2, np.int64)
    fixed = (
        assembly.tables, values.machine, values.init, plan.start, plan.within, stream.time, stream.partition,
        stream.bits(assembly), values.leaves, values.leaf_null, values.leaf_slots, starts, watermark, intervals, keep,
    )  # fmt: skip
    marks, first_events = np.zeros(n, np.int64), np.zeros(n, np.int64)
    # a row for each set of arcs and combination of conditions, where they are few
    combinations = len(assembly.tables[3]) << max(2, len(assembly.conditions))
    judged = np.zeros(combinations if combinations * states <= MOST_VERDICTS else 2, np.bool_)
    verdicts = np.zeros((len(judged), states), np.int8)
    while True:
        reason = f.advance(
            *fixed, memory, meta, registers, buckets, lists, verdicts, judged, nodes, stack, rows, log,
            goal, goals, begun, begun_at, marks, first_events, alarm,
        )  # fmt: skip
        if reason == f.DONE:
            return rows[: memory[f.USED]], log[: memory[f.LOGGED]], nodes[: memory[f.UNIONS] if keep else 0]
        if reason == f.OVERFLOWED:
            raise OverflowedAt(int(alarm[0]), int(alarm[1]))
        if reason == f.MORE_GROUPS:
            meta, registers = _doubled(meta), _doubled(registers)
            buckets = np.full(2 * len(meta), -1, np.int64)
            rehash(meta, buckets, lists[:2])
        elif reason == f.MORE_NODES:
            if not keep:
                memory[f.UNIONS] = tidy(nodes, memory[f.UNIONS], meta, lists[:2], memory[f.GROUPS], memory[f.LOW])
            if 2 * memory[f.UNIONS] > len(nodes):
                nodes = _doubled(nodes)
                stack = np.zeros(len(nodes) + 2, np.int64)
        elif reason == f.MORE_LOG:
            log = _doubled(log)
        else:  # rows may want for goals, and goals for those that begin
            rows = _doubled(rows) if reason == f.MORE_ROWS else rows
            goal, goals, begun, begun_at = _doubled(goal), _doubled(goals), _doubled(begun), _doubled(begun_at)


def _doubled(array: Int64s) -> Int64s:
    return np.concatenate((array, np.zeros_like(array)))
