"""Columns of the tables of an automaton (`cep_core.trends.kernels.arguments.Nfa`), and of what is made from them.

A pair of columns X, X_END is a range. Guards: ranges of `Guards.lists`.
"""

from __future__ import annotations

HOLDS, HOLDS_END, FAILS, FAILS_END = range(4)
"""Of `start`, `into` and (the first two) `accept`: guards that must hold, and guards that must fail."""

SOURCE, STORE, HALF = range(4, 7)
"""Of `into`: the state before the transition; the number of the store, or of the half of a divide, that has its
predecessors (-1: not this one)."""
LINKS_TO, LINKS_TO_END, LINKS_PAST, LINKS_PAST_END = range(7, 11)
"""Of `into`, ranges of `Links.lists`: links of a predecessor that lead to the event, and links that do not."""
INTO = 11

COMPARISONS, COMPARISONS_END, PROGRAMS, PROGRAMS_END = range(4)
"""Of `conditions`: ranges of the comparisons and programs of `pair_predicates.Predicates`."""
CODE, CODE_END, SLOT, LEAF, LEAF_END = range(5)
"""Of `Predicates.programs`: ranges of its code and of the leaves that it loads, and the slot of its value."""

EARLIER, LATER, LINK = range(3)
"""Of the `pairs` of `successors.first_true`: variables, and the row of `out`."""

LAYER, NODE = range(2)
"""Of `store`: the layer (-1: a total), and the first node (of a total: its number)."""

HAS_FIRST, HAS_SECOND, ASKS_FIRST, ASKS_SECOND = range(4)
"""Of `Halves.words`: by the rank or the limit of each inequality."""

STATE, DIVIDE = range(2)
"""Of `Halves.halves`: the state with the predecessors, and the number of their divide."""
