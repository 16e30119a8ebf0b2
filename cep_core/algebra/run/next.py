"""NEXT: the right stream sorted by group and end, and one compiled pass."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile.pairing import Bound, pairing
from trendlake.cep_core.algebra.compile.syntax import FIRST, SECOND
from trendlake.cep_core.algebra.kernels import pairs as k
from trendlake.cep_core.algebra.kernels.arguments import USED, Leaves, Left, Limits, Programs, Right, Tree
from trendlake.cep_core.algebra.run.candidates import Candidates
from trendlake.cep_core.algebra.run.context import Context
from trendlake.cep_core.algebra.run.ordered import Sorted
from trendlake.cep_core.algebra.run.programs import Program
from trendlake.cep_core.algebra.run.singles import column_of
from trendlake.cep_core.algebra.run.tables import Late, Table, as_real, by_group, leaves, sortable
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.expressions.types import Resolve
from trendlake.cep_core.language import syntax as s


def leaves_of(context: Context, table: Table, reads: dict[str, int]) -> Leaves:
    """Attributes of one stream and their slots."""
    columns = [column_of(context, table, s.Attribute("", name)) for name in reads]
    return Leaves(np.array(list(reads.values()), np.int64), *leaves(columns, len(table)))


def next_stream(context: Context, node: n.Next, left: Table, right: Table) -> Table:
    """NEXT."""
    family = context.family(node)
    plan = pairing(node, family, right.columns)
    places = Candidates(context, plan, family, left, right)
    stream = places.sorted()
    if places.left_codes is places.own_codes and left.end is right.end:
        order = stream.rows
    else:
        order, _ = by_group(places.left_codes, places.count, left.end)
    tree, strict = _tree(context, plan.bound, family, left, right, stream)
    program = Program(family)
    ranges = np.array([program.all_of(plan.safe), program.all_of(plan.risky)], np.int64)
    firsts = leaves_of(context, left, program.attributes_of(FIRST))
    seconds = leaves_of(context, right, program.attributes_of(SECOND))
    out, state = np.zeros((2, max(1024, len(order))), np.int64), np.zeros(3, np.int64)
    fixed = (
        Left(order, places.left_codes, left.start, left.end),
        Right(stream.rows, stream.ends, stream.starts, stream.bounds),
        Limits(context.plan.within, plan.low, plan.high, stream.points, False),
        tree,
        strict,
        program.machine(context.source.strings),
        Programs(ranges, program.spans()),
        firsts,
        seconds,
    )
    while (reason := k.next_pairs(*fixed, out, state)) != k.DONE:
        if reason == k.OVERFLOWED:
            raise context.overflow("NEXT's condition", node.condition or s.Literal(True, "boolean"))
        out = context.doubled(out, axis=1)
    r, t = out[:, : state[USED]]
    sides = {FIRST: (left.columns, r), SECOND: (right.columns, t)}
    columns = Late({one.name: (sides[one.side][0], one.source, sides[one.side][1]) for one in node.columns})
    return Table(left.part[r], left.start[r], right.end[t], columns)


def _tree(
    context: Context, bound: Bound | None, family: Resolve, left: Table, right: Table, stream: Sorted
) -> tuple[Tree, bool]:
    """The tree over the right stream's keys, and whether they must be more than what is needed."""
    if bound is None:
        return Tree(np.zeros(0, np.int64), np.zeros(0, np.int64)), False

    def keys(table: Table, read: s.Attribute) -> Int64s:
        kind = family(read)
        words = column_of(context, table, read)[0]
        words = sortable(as_real(words, kind), "double") if bound.real else words
        return ~words if bound.op in ("<", "<=") else words

    size = 1 << max(0, int(len(stream.rows) - 1).bit_length())
    nodes = k.tree_of(keys(right, bound.right)[stream.rows], size)
    return Tree(nodes, keys(left, bound.left)), bound.op in ("<", ">")
