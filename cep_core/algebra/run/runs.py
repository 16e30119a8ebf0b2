"""FOLDs whose instances are runs of neighbours: when a FOLD is one, and its pass (see `kernels.runs`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile.pairing import Bound, Pairing, neighbours
from trendlake.cep_core.algebra.kernels import pairs as k
from trendlake.cep_core.algebra.kernels.arguments import USED
from trendlake.cep_core.algebra.kernels.runs import Keys, Left, Order, Stream, follow_runs, last_of_runs
from trendlake.cep_core.algebra.run.candidates import Candidates
from trendlake.cep_core.algebra.run.context import Context
from trendlake.cep_core.algebra.run.ordered import Sorted
from trendlake.cep_core.algebra.run.tables import Table, Words, as_real, sortable
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.expressions.types import Resolve


def runs_of(
    context: Context, node: n.Fold, plan: Pairing, family: Resolve, places: Candidates, left: Table, right: Table
) -> tuple[Int64s, Int64s] | None:
    """(rows of the left stream, positions in the right one), an instance each; None where a FOLD is of another sort.

    It is of this sort by its text (`neighbours`), and if the right stream's events are points, of different ends in
    each group. Then an instance at position p goes on to p + 1 or ends, whatever it began with.
    """
    kinds = dict(n.attributes_of(context.plan.nodes[node.left])), dict(n.attributes_of(context.plan.nodes[node.right]))
    taken = neighbours(node, plan, family, kinds[1])
    stream = places.sorted()
    if taken is None or stream.ties or not stream.points:
        return None
    order = Order(
        np.array([bound.op in (">", ">=") for bound in taken], np.bool_),
        np.array([bound.op in ("<", ">") for bound in taken], np.bool_),
    )
    place = node.right, tuple((bound.op, bound.right.name, bound.left.name, bound.real) for bound in taken)
    if places.whole and place in context.runs:
        keys, last = context.runs[place]
    else:
        keys = _of_positions(stream, taken, [bound.right.name for bound in taken], right, kinds[1])
        now = _of_positions(stream, taken, [bound.left.name for bound in taken], right, kinds[1])
        last = last_of_runs(keys, now, order, stream.groups)
        if places.whole:
            context.runs[place] = keys, last
    first = _keys([_sortable(left, bound, bound.left.name, kinds[0]) for bound in taken], len(left))
    longest = min(context.plan.within - 1, plan.high)
    out_left, out_right = (np.empty(max(1024, 2 * len(left)), np.int64) for _ in range(2))
    state, near = np.zeros(3, np.int64), stream.bounds[:-1].copy()
    of_left = Left(places.left_codes, left.start, left.end)
    of_right = Stream(stream.ends, stream.groups, stream.bounds, last)
    while follow_runs(of_left, first, of_right, keys, order, longest, near, out_left, out_right, state) != k.DONE:
        out_left, out_right = context.doubled(out_left), context.doubled(out_right)
    return out_left[: state[USED]], out_right[: state[USED]]


def _of_positions(
    stream: Sorted, taken: Sequence[Bound], names: Sequence[str], table: Table, kinds: dict[str, str]
) -> Keys:
    """Keys of the right stream."""
    columns = [_sortable(table, bound, name, kinds) for bound, name in zip(taken, names, strict=True)]
    return _keys([(stream.by_position(words), stream.by_position(null)) for words, null in columns], len(stream.rows))


def _sortable(table: Table, bound: Bound, name: str, kinds: dict[str, str]) -> Words:
    words, null = table.columns[name]
    return (sortable(as_real(words, kinds[name]), "double") if bound.real else words), null


def _keys(columns: Sequence[Words], length: int) -> Keys:
    if len(columns) == 1:
        return Keys(columns[0][0].reshape(-1, 1), columns[0][1])
    words, missing = np.zeros((length, len(columns)), np.int64), np.zeros(length, np.bool_)
    for x, (values, null) in enumerate(columns):
        words[:, x] = values
        missing |= null
    return Keys(words, missing)
