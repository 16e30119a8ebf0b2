"""The events of one longest trend of each task, by a walk back from its last event.

A pass has best how long the longest way to each event in each state is. On a longest trend of n events the event k
steps before the end is reached by n - k events, so the walk looks at each event once: among those that are reached by
one event fewer. Of several it takes the first in order (time, then `sequence` or id), of one event under several
variables the variable that stands first in the pattern. States of one variable are followed together: which of them the
trend was in shows further back.
"""

from __future__ import annotations

from typing import NamedTuple

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Float64s, Int64s
from trendlake.cep_core.kernels.uncounted_arrays import borrowed
from trendlake.cep_core.trends.kernels import columns as c
from trendlake.cep_core.trends.kernels.arguments import Events, Guards, Links, Nfa, Tasks
from trendlake.cep_core.trends.kernels.pair_predicates import Predicates
from trendlake.cep_core.trends.kernels.paths import ends, follows


class Walk(NamedTuple):
    """`reach` (n, S): the most events that lead to an event in a state, it included (-inf: none). `order` (n): places
    in the order of events. `head` (events + 1), `link` (events * S), `here` (S): work space. Results: `path` and
    `variable` (n), the events of a longest trend of each task and their variables, from the task's first event on;
    `length` (T), how many they are."""

    reach: Float64s
    order: Int64s
    head: Int64s
    link: Int64s
    here: Bools
    path: Int64s
    variable: Int64s
    length: Int64s


@compiled.entry
def longest_trends(
    tasks_: Tasks,
    events_: Events,
    nfa_: Nfa,
    guards_: Guards,
    links_: Links,
    predicates_: Predicates,
    linking: int,
    walk: Walk,
) -> None:
    """Fill the results of `walk`, for tasks that do not overlap."""
    tasks, nfa, guards = borrowed(tasks_), borrowed(nfa_), borrowed(guards_)
    links, predicates, time = borrowed(links_), borrowed(predicates_), borrowed(events_).time
    reach, order, head, link, here, path, variable, length = borrowed(walk)
    states = nfa.variable.shape[0]
    for task in range(tasks.lo.shape[0]):
        lo, hi, we = tasks.lo[task], tasks.hi[task], tasks.we[task]
        most, at, under = 0, -1, -1
        for e in range(lo, hi):
            for q in range(states):
                n = int(max(reach[e, q], 0.0))
                if n == 0 or n < most or not ends(nfa, guards, e, q, we):
                    continue
                sooner = at < 0 or order[e] < order[at] or (e == at and nfa.variable[q] < under)
                if n > most or sooner:
                    most, at, under = n, e, nfa.variable[q]
        length[task] = most
        if most == 0:
            continue
        # 1. the events and states by how many events lead to them, in order of position
        for n in range(most + 1):
            head[n] = -1
        for e in range(hi - 1, lo - 1, -1):
            for q in range(states):
                n = int(max(reach[e, q], 0.0))
                if 0 < n < most:
                    row = (e - lo) * states + q
                    link[row] = head[n]
                    head[n] = row
        # 2. back from the last event
        for q in range(states):
            fits = nfa.variable[q] == under and reach[at, q] == most
            here[q] = fits and ends(nfa, guards, at, q, we)
        path[lo + most - 1], variable[lo + most - 1] = at, under
        for n in range(most - 1, 0, -1):
            best, below = -1, -1
            row = head[n]
            while row >= 0:
                v, p = row // states + lo, row % states
                row = link[row]
                if best >= 0 and time[v] > time[best]:
                    break
                same = v == best and nfa.variable[p] == below
                sooner = best < 0 or order[v] < order[best] or (v == best and nfa.variable[p] < below)
                if not (same or sooner):
                    continue
                may = False
                for q in range(states):
                    if not here[q]:
                        continue
                    for t in range(nfa.into_of[q], nfa.into_of[q + 1]):
                        may = may or (
                            nfa.into[t, c.SOURCE] == p
                            and follows(nfa, guards, links, predicates, time, linking, t, v, at)
                        )
                if may:
                    best, below = v, nfa.variable[p]
                    link[(v - lo) * states + p] = -2 - n  # it is among those of the next step
            for q in range(states):
                chosen = nfa.variable[q] == below and reach[best, q] == n
                here[q] = chosen and link[(best - lo) * states + q] == -2 - n
            at, under = best, below
            path[lo + n - 1], variable[lo + n - 1] = at, under
