"""FOLD: the right stream sorted by group and end, and one compiled pass."""

from __future__ import annotations

import numpy as np

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile.pairing import Pairing, pairing, parted
from trendlake.cep_core.algebra.compile.syntax import FIRST, NOW, SECOND
from trendlake.cep_core.algebra.kernels import arguments as k
from trendlake.cep_core.algebra.kernels.instances import fold_instances
from trendlake.cep_core.algebra.kernels.pairs import DONE, MORE_ROWS, OVERFLOWED
from trendlake.cep_core.algebra.run.candidates import Candidates
from trendlake.cep_core.algebra.run.context import Context
from trendlake.cep_core.algebra.run.next import leaves_of
from trendlake.cep_core.algebra.run.programs import Program
from trendlake.cep_core.algebra.run.runs import runs_of
from trendlake.cep_core.algebra.run.singles import column_of
from trendlake.cep_core.algebra.run.steps import steps_of
from trendlake.cep_core.algebra.run.tables import Late, Table, Words, as_real, leaves
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.language import syntax as s


def fold_stream(context: Context, node: n.Fold, left: Table, right: Table) -> Table:
    """FOLD."""
    family = context.family(node)
    plan = pairing(node, family, right.columns)
    places = Candidates(context, plan, family, left, right)
    runs = runs_of(context, node, plan, family, places, left, right)
    if runs is not None:
        r, t = runs[0], places.sorted().row_at(runs[1])
        return _output(node, left, right, r, t, {})
    return _walked(context, node, plan, places, left, right)


def _walked(context: Context, node: n.Fold, plan: Pairing, places: Candidates, left: Table, right: Table) -> Table:
    """Each instance by itself."""
    family = context.family(node)
    stream = places.sorted()
    go = parted(node.go, family)
    kinds = dict(n.attributes_of(context.plan.nodes[node.left])), dict(n.attributes_of(context.plan.nodes[node.right]))
    keeps, goes = (steps_of(parts, family, left, right, kinds, stream.rows) for parts in (plan.safe, go[0]))
    program = Program(family)
    ranges = [program.all_of(parts) for parts in (keeps.rest, plan.risky, goes.rest, go[1])]
    ranges += [program.value(value.expression, value.family) for value in node.values]
    firsts = leaves_of(context, left, program.attributes_of(FIRST))
    seconds = leaves_of(context, right, program.attributes_of(SECOND))
    names = [value.name for value in node.values]
    now = {name: slot for name, slot in program.attributes_of(NOW).items() if name not in names}
    slots = np.array([program.load(s.Attribute(NOW, name)) for name in names], np.int64)
    held = [_widened(left.columns[value.name], kinds[0][value.name], value.family) for value in node.values]
    chosen = np.flatnonzero(places.left_codes >= 0)
    ties = bool((stream.ends[1:] == stream.ends[:-1]).any())
    fixed = (
        k.Left(chosen, places.left_codes, left.start, left.end),
        k.Right(stream.rows, stream.ends, stream.starts, stream.bounds),
        k.Last(places.own_codes[stream.rows], places.now_codes[stream.rows]),
        k.Limits(context.plan.within, plan.low, plan.high, stream.points, ties),
        program.machine(context.source.strings),
        k.Programs(np.array(ranges, np.int64), program.spans()),
        k.FoldLeaves(
            firsts=firsts,
            begins=_now_leaves(context, node, left, now, node.left),
            goes_on=_now_leaves(context, node, right, now, node.right),
            seconds=seconds,
            values=k.Leaves(slots, *leaves(held, len(left))),
        ),
        keeps.arrays,
        goes.arrays,
    )
    shapes = ((64, 3), (64, len(names) + 1), 256, 256)
    queue = k.Queue(*(np.zeros(shape, np.int64) for shape in shapes))
    instances = k.Instances(*(np.zeros((max(1024, 2 * len(chosen)), width), np.int64) for width in (2, len(names) + 1)))
    state = np.zeros(3, np.int64)
    while (reason := fold_instances(*fixed, queue, instances, state)) != DONE:
        if reason == OVERFLOWED:
            raise _fold_overflow(context, node, int(state[k.AT_PROGRAM]))
        queue.stamps[:] = 0
        if reason == MORE_ROWS:
            instances = k.Instances(*map(context.doubled, instances))
        else:
            room = 8 * len(queue.places)
            queue = k.Queue(
                context.doubled(queue.places),
                context.doubled(queue.values),
                heads=np.zeros(room, np.int64),
                stamps=np.zeros(room, np.int64),
            )
    used = int(state[k.USED])
    r, t = instances.rows[:used].T
    words = instances.values[:used]
    computed = {name: (np.ascontiguousarray(words[:, x]), (words[:, -1] >> x) & 1 == 1) for x, name in enumerate(names)}
    return _output(node, left, right, r, t, computed)


def _output(node: n.Fold, left: Table, right: Table, r: Int64s, t: Int64s, computed: dict[str, Words]) -> Table:
    """The events of instances: their rows in both streams, and what they computed."""
    sides = {FIRST: (left.columns, r), SECOND: (right.columns, t), NOW: (computed, None)}
    columns = Late({one.name: (sides[one.side][0], one.source, sides[one.side][1]) for one in node.columns})
    return Table(left.part[r], left.start[r], right.end[t], columns)


def _now_leaves(context: Context, node: n.Fold, table: Table, reads: dict[str, int], place: int) -> k.Leaves:
    """Leaves of `$` that are of the first event or of the last, in the family that holds both."""
    kinds = dict(n.attributes_of(context.plan.nodes[place]))
    family = context.family(node)
    columns = []
    for name in reads:
        whole = family(s.Attribute(NOW, name))
        columns.append(_widened(column_of(context, table, s.Attribute("", name)), kinds.get(name, whole), whole))
    return k.Leaves(np.array(list(reads.values()), np.int64), *leaves(columns, len(table)))


def _widened(words: Words, family: str, wanted: str) -> Words:
    """A column as one of another family: whole numbers as doubles."""
    return (as_real(words[0], family), words[1]) if wanted == "double" else words


def _fold_overflow(context: Context, node: n.Fold, program: int) -> Exception:
    if program < k.VALUES:
        condition = (node.keep if program < k.SAFE_GO else node.go) or s.Literal(True, "boolean")
        return context.overflow("FOLD's condition", condition)
    value = node.values[program - k.VALUES]
    return context.overflow(f"FOLD's value '{value.name}'", value.expression)
