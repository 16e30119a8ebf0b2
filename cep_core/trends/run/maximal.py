"""`output: maximal`: the stretches of events that are a trend and no proper part of another one."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core.trends.compile.dfa import Automaton
from trendlake.cep_core.trends.kernels.arguments import Guards as KernelGuards
from trendlake.cep_core.trends.kernels.arguments import Links, Tasks
from trendlake.cep_core.trends.kernels.maximal import maximal_stretches
from trendlake.cep_core.trends.run.kernel_pass import check_memory
from trendlake.cep_core.trends.run.kernel_tables import layout, store_table
from trendlake.cep_core.trends.run.ranks import Guarded
from trendlake.cep_core.trends.run.sorted_rows import Slice, check_alarm, make_predicates
from trendlake.cep_core.trends.run.successors import make_links


def maximal_tasks(slice_: Slice, automaton: Automaton, guards: Guarded, tasks: Tasks) -> Tasks:
    """A task for each maximal stretch of each of `tasks`: the trends of it are those that begin with its first event
    and end with its last."""
    if not automaton.states or not len(tasks.lo):
        return tasks.subset(np.zeros(0, np.int64))
    arrays = layout(slice_.events.plan, automaton, linked=True)
    predicates = make_predicates(slice_, arrays.tried)
    links = Links(make_links(slice_, arrays, predicates), arrays.link_of, arrays.link, arrays.link_lists)
    bounds, _, after = guards
    store_of, store, _ = store_table(arrays, ())
    longest = int((tasks.hi - tasks.lo).max(initial=0))
    check_memory(tasks, 8 * longest * len(automaton.states))
    work = np.zeros(longest * len(automaton.states), np.int64), np.zeros(longest, np.int64)
    out, count = np.zeros((slice_.length + 1, 3), np.int64), -1
    while count < 0 or count > len(out):
        out = np.zeros((max(count, len(out)), 3), np.int64)
        count = maximal_stretches(
            tasks,
            slice_.in_kernels,
            arrays.nfa._replace(store_of=store_of, store=store),
            KernelGuards(arrays.guards, bounds, after),
            links,
            predicates,
            *work,
            out,
        )
    check_alarm(predicates)
    first, last, task = (np.ascontiguousarray(out[:count, i]) for i in range(3))
    return Tasks(first, last, tasks.window[task], tasks.ws[task], tasks.we[task])
