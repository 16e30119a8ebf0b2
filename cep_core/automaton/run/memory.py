"""The kernel's memory: small at first, grown when `active_runs.advance` asks for more, which then goes on where it
was."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core.automaton.compile.encode import Assembly
from trendlake.cep_core.automaton.kernels import alive_groups as places
from trendlake.cep_core.automaton.kernels.active_runs import advance
from trendlake.cep_core.automaton.kernels.arguments import (
    LOG_REGISTER,
    REGISTER,
    Events,
    Given,
    Goals,
    Groups,
    Lists,
    Rules,
    Sets,
    Tables,
    Verdicts,
    Written,
)
from trendlake.cep_core.automaton.kernels.start_sets import tidy
from trendlake.cep_core.automaton.run.events import Stream, Values
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.kernels.register_programs import Leaves, Programs
from trendlake.cep_core.kernels.run_groups import rehash

MOST_VERDICTS = 1 << 20
"""Bytes for what events do to states, known beforehand for each combination of conditions."""


class OverflowedAt(Exception):  # noqa: N818 - it says where
    """A whole number overflows: `row` of the table of arcs and `event` (position in the stream)."""

    def __init__(self, row: int, event: int) -> None:
        super().__init__(row, event)
        self.row = row
        self.event = event


def drive(
    stream: Stream,
    values: Values,
    assembly: Assembly,
    starts: tuple[int, int],
    watermark: int,
    *,
    intervals: bool,
    keep: bool,
) -> tuple[Int64s, Int64s, Int64s]:
    """Rows (first, last, state, register), the log of partial runs and its sets of firsts (both empty unless `keep`).

    Raises OverflowedAt.
    """
    plan, n, width = stream.plan, stream.length, values.init.shape[1]
    arcs, moves, code = assembly.programs
    tables = _tables(assembly)
    leaves = Leaves(values.leaves, values.leaf_null, values.leaf_slots)
    events = Events(stream.time, stream.partition, stream.bits(assembly))
    rules = Rules(
        plan.start, *starts, plan.within, watermark, intervals, keep, bool(tables.loose.any()), bool(tables.ends.any())
    )
    given = Given(tables, Programs(arcs, moves, code, *values.machine), events, rules)
    groups, verdicts = _groups(len(plan.states), width), _verdicts(assembly, len(plan.states))
    memory = groups.memory
    sets = Sets(*(np.zeros(shape, np.int64) for shape in ((1024, 5), 1026, n, n)))
    (goal, states), (begun, begun_at) = ((np.zeros((16, width), np.int64), np.zeros(16, np.int64)) for _ in range(2))
    goals = Goals(goal, states, begun, begun_at, values.init, np.zeros(2, np.int64))
    sizes = (1024, REGISTER + width), (1024 if keep else 1, LOG_REGISTER + width)
    written = Written(*(np.zeros(size, np.int64) for size in sizes))
    while True:
        reason = advance(given, leaves, groups, sets, goals, verdicts, written)
        if reason == places.DONE:
            unions = memory[places.UNIONS] if keep else 0
            return written.rows[: memory[places.USED]], written.log[: memory[places.LOGGED]], sets.nodes[:unions]
        if reason == places.OVERFLOWED:
            raise OverflowedAt(int(goals.alarm[0]), int(goals.alarm[1]))
        if reason == places.MORE_GROUPS:
            meta = _doubled(groups.meta)
            buckets = np.full(2 * len(meta), -1, np.int64)
            groups = groups._replace(meta=meta, registers=_doubled(groups.registers), buckets=buckets)
            rehash(meta, buckets, groups.lists[:2])
        elif reason == places.MORE_NODES:
            if not keep:
                lists = groups.lists[:2]
                memory[places.UNIONS] = tidy(
                    sets.nodes, memory[places.UNIONS], groups.meta, lists, memory[places.GROUPS], memory[places.LOW]
                )
            if 2 * memory[places.UNIONS] > len(sets.nodes):
                nodes = _doubled(sets.nodes)
                sets = sets._replace(nodes=nodes, stack=np.zeros(len(nodes) + 2, np.int64))
        elif reason == places.MORE_LOG:
            written = written._replace(log=_doubled(written.log))
        else:  # rows may want for goals, and goals for those that begin
            if reason == places.MORE_ROWS:
                written = written._replace(rows=_doubled(written.rows))
            names = ("registers", "states", "begun", "begun_at")
            goals = goals._replace(**{name: _doubled(getattr(goals, name)) for name in names})


def _tables(assembly: Assembly) -> Tables:
    (taking, taken), (epsilon, settled), (ending, ended) = (assembly.lists[i : i + 2] for i in (0, 2, 4))
    return Tables(
        Lists(taking, taken),
        Lists(epsilon, settled),
        Lists(ending, ended),
        assembly.is_final,
        assembly.ends,
        assembly.is_loose,
        np.flatnonzero(assembly.is_final),
        assembly.bounds,
        assembly.live,
    )


def _groups(states: int, width: int) -> Groups:
    """No groups; room for 64."""
    memory = np.zeros(17, np.int64)
    memory[[places.FREE, places.G]] = -1
    lists = np.full((5, states), -1, np.int64)
    lists[places.LIST_AGE :] = 0
    return Groups(
        memory, np.zeros((64, 7), np.int64), np.zeros((64, width), np.int64), np.full(128, -1, np.int64), lists
    )


def _verdicts(assembly: Assembly, states: int) -> Verdicts:
    """A row for each set of arcs and combination of conditions, where they are few."""
    combinations = len(assembly.lists[0]) << max(2, len(assembly.conditions))
    judged = np.zeros(combinations if combinations * states <= MOST_VERDICTS else 2, np.bool_)
    return Verdicts(np.zeros((len(judged), states), np.int8), judged)


def _doubled(array: Int64s) -> Int64s:
    return np.concatenate((array, np.zeros_like(array)))
