"""The stretches of a stream that are the events of a maximal trend, by a contiguous selection.

An event has one event that may follow it, so the events of a trend are a stretch of a chain. far(e, q), the last event
that a trend which has come to event e in state q can end with, is known from the event after e. The stretch that begins
with event i ends at far(i), the latest of its states; it is part of no other if that is later than far of every earlier
start of the chain. Between two events the future depends on the state alone, so at most S of these stretches hold one
event, and the sum of their lengths is linear in the events.
"""

from __future__ import annotations

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.trends.kernels import columns as c
from trendlake.cep_core.trends.kernels.arguments import Events, Guards, Links, Nfa, Tasks
from trendlake.cep_core.trends.kernels.general import CONTIGUOUS
from trendlake.cep_core.trends.kernels.pair_predicates import Predicates
from trendlake.cep_core.trends.kernels.paths import begins, ends, follows


@compiled.entry
def maximal_stretches(
    tasks_: Tasks,
    events_: Events,
    nfa_: Nfa,
    guards_: Guards,
    links_: Links,
    predicates_: Predicates,
    far: Int64s,
    best: Int64s,
    out: Int64s,
) -> int:
    """How many maximal stretches there are: (first event, event after the last, task), written to `out` (.., 3) as far
    as it has room. `far` (events * S), `best` (events): work space for the events of a task."""
    tasks, events, nfa, guards = borrowed(tasks_), borrowed(events_), borrowed(nfa_), borrowed(guards_)
    links, predicates, time, ok = borrowed(links_), borrowed(predicates_), events.time, events.ok
    states, count = nfa.variable.shape[0], 0
    for task in range(tasks.lo.shape[0]):
        lo, hi, ws, we = tasks.lo[task], tasks.hi[task], tasks.ws[task], tasks.we[task]
        for e in range(hi - 1, lo - 1, -1):
            best[e - lo] = -1
            after = links.following[0, e]
            goes_on = lo <= after < hi
            for q in range(states):
                last = -1
                if (ok[e] >> np.uint64(nfa.variable[q])) & np.uint64(1):
                    if ends(nfa, guards, e, q, we):
                        last = e
                    if goes_on:
                        for r in range(states):
                            if far[(after - lo) * states + r] <= last:
                                continue
                            for t in range(nfa.into_of[r], nfa.into_of[r + 1]):
                                if nfa.into[t, c.SOURCE] == q and follows(
                                    nfa, guards, links, predicates, time, CONTIGUOUS, t, e, after
                                ):
                                    last = far[(after - lo) * states + r]
                                    break
                far[(e - lo) * states + q] = last
        for e in range(lo, hi):
            last = -1
            for q in range(states):
                if far[(e - lo) * states + q] > last and begins(nfa, guards, e, q, ws):
                    last = far[(e - lo) * states + q]
            if last > best[e - lo]:
                best[e - lo] = last
                if count < out.shape[0]:
                    out[count, 0], out[count, 1], out[count, 2] = e, last + 1, task
                count += 1
            after = links.following[0, e]
            if lo <= after < hi:
                best[after - lo] = max(best[after - lo], best[e - lo])
    return count
