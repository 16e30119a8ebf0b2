"""The arguments of the kernels of kind automaton: named tuples of arrays, which numba passes as they are.

Sizes: n events in order of (partition, time, tie); S states; registers are rows of int64, the fields and then a mask of
those that are NULL (0 then). Arrays of groups, sets, goals and rows begin small, and grow when a kernel asks for it.
"""

from __future__ import annotations

from typing import NamedTuple

from trendlake.cep_core.events.array_types import Bools, Int8s, Int64s, UInt64s
from trendlake.cep_core.kernels.register_programs import Programs

FIRST, LAST, FINAL, REGISTER = range(4)
"""Columns of `Written.rows`: first and last event, the state, and from REGISTER on the register."""
LOG_FIRSTS, LOG_STATE, LOG_SINCE, LOG_UNTIL, LOG_REGISTER = range(5)
"""Columns of `Written.log`: the set of first events, the state, the events since and until when, the register."""


class Lists(NamedTuple):
    """Arcs by state: those of state q in set x of arcs that live are listed[at[x, q] : at[x, q + 1]], rows of the
    table of arcs. (sets, S + 1) and flat."""

    at: Int64s
    listed: Int64s


class Tables(NamedTuple):
    """A plan. Lists of the arcs that take an event, of epsilon arcs, and of those at a window's end; by state, whether
    it is final, has arcs at the window's end, has epsilon arcs; the numbers of those that are final. Set sets[x] of
    arcs lives between bounds[x - 1] and bounds[x], in microseconds."""

    taking: Lists
    epsilon: Lists
    ending: Lists
    final: Bools
    ends: Bools
    loose: Bools
    finals: Int64s
    bounds: Int64s
    sets: Int64s


class Events(NamedTuple):
    """n each: microseconds; the partition; `bits` (n, words): the conditions on events that hold."""

    time: Int64s
    partition: Int64s
    bits: UInt64s


class Rules(NamedTuple):
    """`start`: the state that runs begin in, at events with first <= time < last. `within` and `watermark` in
    microseconds. `rests`: ignored events leave groups untouched. `keep`: log all partial runs. `epsilon` and `ends`:
    whether any state has epsilon arcs, arcs at the window's end."""

    start: int
    first: int
    last: int
    within: int
    watermark: int
    rests: bool
    keep: bool
    epsilon: bool
    ends: bool


class Given(NamedTuple):
    """The arguments that stay as they are while the runs are moved."""

    tables: Tables
    programs: Programs
    events: Events
    rules: Rules


class Verdicts(NamedTuple):
    """The effects of events on states, DIES .. STEPS: (rows, S), and which rows are filled. See `arcs.judge`."""

    verdicts: Int8s
    judged: Bools


class Groups(NamedTuple):
    """`memory`: see `alive_groups.AT` .. `FOLLOWING`. `meta` (groups, 7), `registers` (groups, width), `buckets`:
    see `run_groups`. `lists` (5, S): each state's groups, those put aside, the age of the list, the event at which it
    last stepped, how many groups it has."""

    memory: Int64s
    meta: Int64s
    registers: Int64s
    buckets: Int64s
    lists: Int64s


class Sets(NamedTuple):
    """Sets of first events, see `start_sets`: `nodes` (unions, 5); work space for `members`: `stack` (unions + 2),
    `marks` and `members` (n)."""

    nodes: Int64s
    stack: Int64s
    marks: Int64s
    members: Int64s


class Goals(NamedTuple):
    """The runs that an event leads to: registers (goals, width) and their states. `begun`, `begun_at`: the same of runs
    that begin, `init` (1, width) being the first register. `alarm`: the arc that overflowed, and at which event."""

    registers: Int64s
    states: Int64s
    begun: Int64s
    begun_at: Int64s
    init: Int64s
    alarm: Int64s


class Written(NamedTuple):
    """`rows`: of runs that ended. `log`: of partial runs."""

    rows: Int64s
    log: Int64s
