"""The state of the automaton, event by event: every partial run with the stretch of events in which it stayed what it
was.

The paper's operator keeps these (section 5.1, Content) and stores ignored stretches as intervals (appendix D). Here
they answer why a run died or never began; results do not need them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trendlake.cep_core.automaton.compile.plan import AutomatonPlan
from trendlake.cep_core.automaton.kernels.arguments import LOG_FIRSTS, LOG_REGISTER, LOG_SINCE, LOG_STATE, LOG_UNTIL
from trendlake.cep_core.automaton.run.events import Stream
from trendlake.cep_core.automaton.run.run import Ran, run_stream


def trace(plan: AutomatonPlan, events: pa.Table, *, intervals: bool = True) -> pa.Table:
    """Columns `first`, `since`, `until` (event ids), `state` and the register: a run that began with `first` was in
    that state with that register after each event from `since` to `until`. `intervals` False: one row an event
    instead."""
    ran = run_stream(Stream(plan, events), intervals=intervals, keep=True)
    stream, log = ran.stream, ran.log
    entries, firsts = [], []
    for row, node in enumerate(log[:, LOG_FIRSTS]):
        members = _members(ran, int(node))
        entries += [row] * len(members)
        firsts += members
    entry, first = np.array(entries, np.int64), np.array(firsts, np.int64)
    ends = np.zeros(len(first), np.int64)
    for x, f in enumerate(first):
        low, high = log[entry[x], LOG_SINCE], log[entry[x], LOG_UNTIL]
        ends[x] = low + np.searchsorted(stream.time[low : high + 1] - stream.time[f], plan.within) - 1
    alive = ends >= log[entry, LOG_SINCE]
    entry, first, ends = entry[alive], first[alive], ends[alive]
    ids = events.column(plan.schema.event_id)
    places = {"first": first, "since": log[entry, LOG_SINCE], "until": ends}
    columns = {name: ids.take(stream.rows[at]) for name, at in places.items()}
    columns["state"] = pa.array([plan.states[q] for q in log[entry, LOG_STATE]], pa.string())
    for k, field in enumerate(plan.register):
        columns[field.name] = ran.values.decoded(k, log[entry, LOG_REGISTER + k], (log[entry, -1] >> k) & 1 == 1)
    return pa.table(columns)


def stored(plan: AutomatonPlan, events: pa.Table, *, intervals: bool = True) -> int:
    """Bytes of the partial runs, as the kernel keeps them: records and the shared sets of first events."""
    ran = run_stream(Stream(plan, events), intervals=intervals, keep=True)
    return int(ran.log.nbytes + ran.nodes.nbytes)


def _members(ran: Ran, node: int) -> list[int]:
    events, stack, seen = set(), [node], set()
    while stack:
        one = stack.pop()
        if one >= 0:
            events.add(one)
        elif one < -1 and one not in seen:
            seen.add(one)
            stack += [int(ran.nodes[-2 - one, 0]), int(ran.nodes[-2 - one, 1])]
    return sorted(events)
