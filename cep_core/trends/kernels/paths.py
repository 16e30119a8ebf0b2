"""Whether a trend may begin with an event, go on from one to another, or end: for `maximal` and `witness`."""

from __future__ import annotations

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.trends.kernels import columns as c
from trendlake.cep_core.trends.kernels.arguments import Guards, Links, Nfa
from trendlake.cep_core.trends.kernels.general import ANY, NEXT, bound_of
from trendlake.cep_core.trends.kernels.pair_predicates import Predicates, pair_true


@compiled.part
def begins(nfa: Nfa, guards: Guards, e: int, q: int, ws: int) -> bool:
    """Whether a trend of a window from `ws` on may begin with event e in state q."""
    for t in range(nfa.start_of[q], nfa.start_of[q + 1]):
        may = True
        for g in range(nfa.start[t, c.HOLDS], nfa.start[t, c.HOLDS_END]):
            may = may and guards.bounds[guards.lists[g], e] < ws
        for g in range(nfa.start[t, c.FAILS], nfa.start[t, c.FAILS_END]):
            may = may and guards.bounds[guards.lists[g], e] >= ws
        if may:
            return True
    return False


@compiled.part
def ends(nfa: Nfa, guards: Guards, e: int, q: int, we: int) -> bool:
    """Whether a trend of a window that ends at `we` may end with event e in state q."""
    for t in range(nfa.accept_of[q], nfa.accept_of[q + 1]):
        may = True
        for g in range(nfa.accept[t, c.HOLDS], nfa.accept[t, c.HOLDS_END]):
            may = may and guards.after[guards.lists[g], e] >= we
        if may:
            return True
    return False


@compiled.part
def follows(
    nfa: Nfa, guards: Guards, links: Links, predicates: Predicates, time: Int64s, linking: int, t: int, v: int, w: int
) -> bool:
    """Whether event w may follow event v by transition t, whose conditions are tried pair by pair."""
    into = nfa.into
    if not time[v] < time[w]:
        return False
    if linking != ANY:
        target = w
        if linking == NEXT:
            target = links.following[links.lists[into[t, c.LINKS_TO]], v]
            if target < 0 or time[target] != time[w]:
                return False
        for g in range(into[t, c.LINKS_TO], into[t, c.LINKS_TO_END]):
            if links.following[links.lists[g], v] != target:
                return False
        for g in range(into[t, c.LINKS_PAST], into[t, c.LINKS_PAST_END]):
            if links.following[links.lists[g], v] == target:
                return False
    if time[v] < bound_of(guards.lists, into[t, c.HOLDS], into[t, c.HOLDS_END], guards.bounds, w):
        return False
    for g in range(into[t, c.FAILS], into[t, c.FAILS_END]):
        if not time[v] < guards.bounds[guards.lists[g], w]:
            return False
    return pair_true(predicates, nfa.conditions[t], v, w)
