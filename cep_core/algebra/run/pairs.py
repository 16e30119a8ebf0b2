"""NEXT and FOLD: the right stream sorted by group and end, and one compiled pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cep_core.algebra.compile import nodes as n
from cep_core.algebra.compile.pairing import Bound, Key, Pairing, pairing, parted
from cep_core.algebra.compile.syntax import FIRST, NOW, SECOND
from cep_core.algebra.kernels import pairs as k
from cep_core.algebra.kernels import rows as row_kernels
from cep_core.algebra.kernels.instances import fold_instances
from cep_core.algebra.run.context import Context
from cep_core.algebra.run.programs import Program
from cep_core.algebra.run.singles import column_of, holding
from cep_core.algebra.run.steps import steps_of
from cep_core.algebra.run.tables import Table, Words, as_real, leaves, sortable
from cep_core.errors import WindowTooLargeError
from cep_core.events.codes import dense_ranks
from cep_core.expressions.types import Resolve
from cep_core.language import syntax as s

Array = Any

MOST_ROWS = 400_000_000
"""Rows of one operator; more are refused."""


@dataclass(frozen=True)
class Sorted:
    """The right stream: `rows` by group and end, what is of the rows by position; bounds[g]: where group g begins."""

    rows: Array
    ends: Array
    starts: Array
    bounds: Array

    @property
    def points(self) -> bool:
        return bool((self.starts == self.ends).all())


def _ordered(end: Array) -> Array:
    """The rows by end."""
    return np.arange(len(end)) if row_kernels.ascending(end) else np.argsort(end, kind="stable")


def by_group(groups: Array, count: int, end: Array) -> tuple[Array, Array]:
    """The rows by group and end, those of group -1 left out; and where groups begin."""
    order = _ordered(end)
    bounds = np.zeros(count + 1, np.int64)
    result = np.empty(int((groups >= 0).sum()), np.int64)
    row_kernels.counting_order(groups, count, order, result, bounds)
    return result, bounds


class Candidates:
    """Where the candidates of a left row, and of an instance, are: groups of the right stream."""

    def __init__(self, context: Context, plan: Pairing, family: Resolve, left: Table, right: Table) -> None:
        self.context = context
        self.plan = plan
        self.family = family
        self.left = left
        self.right = right
        rows = np.arange(len(right))
        self.right_rows = holding(context, right, [_as_single(p) for p in plan.right], self._right, "a condition", rows)
        rows = np.arange(len(left))
        self.left_rows = holding(context, left, list(map(_as_single, plan.left)), self._left, "a condition", rows)
        if plan.bound is not None:
            self.right_rows = self._not_null(right, plan.bound.right, self.right_rows)
            self.left_rows = self._not_null(left, plan.bound.left, self.left_rows)
        columns = [self._key_columns(key) for key in plan.keys]
        # codes of left rows, of right rows, and of what an instance looks for when a right row is its last
        parts = [left.part, right.part, right.part]
        if columns:
            codes, count = _codes(np.concatenate(parts))
            null = np.zeros(len(codes), np.bool_)
            for triple in columns:
                ranks, size = _codes(np.concatenate([words for words, _ in triple]))
                codes, count = _codes(codes * max(1, size) + ranks)
                null |= np.concatenate([missing for _, missing in triple])
            codes[null] = -1
            parts = np.split(codes, np.cumsum([len(one) for one in parts])[:-1])
        else:
            count = max(1, len(context.source.first))
        self.count = count
        self.whole = not columns and len(self.right_rows) == len(right)
        self.left_codes, own, self.now_codes = parts
        self.own_codes = np.full(len(right), -1, np.int64)
        self.own_codes[self.right_rows] = own[self.right_rows]
        asked = np.full(len(left), -1, np.int64)
        asked[self.left_rows] = self.left_codes[self.left_rows]
        self.left_codes = asked

    def _right(self, read: s.Attribute) -> str:
        return self.family(_of_side(read, SECOND))

    def _left(self, read: s.Attribute) -> str:
        return self.family(_of_side(read, FIRST))

    def _not_null(self, table: Table, read: s.Attribute, rows: Array) -> Array:
        _, null = column_of(self.context, table, read)
        return rows[~null[rows]]

    def _key_columns(self, key: Key) -> tuple[Words, Words, Words]:
        def words(table: Table, read: s.Attribute) -> Words:
            values, null = column_of(self.context, table, read)
            return (as_real(values, self.family(read)) if key.real else values), null

        right = words(self.right, key.right)
        if key.left.variable != NOW:
            return words(self.left, key.left), right, right
        left = column_of(self.context, self.left, key.left)
        now = column_of(self.context, self.right, key.left)
        if key.real:
            kinds = dict(n.attributes_of(self.context.plan.nodes[self._node().left]))
            others = dict(n.attributes_of(self.context.plan.nodes[self._node().right]))
            left = as_real(left[0], kinds[key.left.name]), left[1]
            now = as_real(now[0], others[key.left.name]), now[1]
        return left, right, now

    def _node(self) -> Any:
        return self.context.plan.nodes[self.context.place]

    def sorted(self) -> Sorted:
        """The right stream. Operators that read all of one, by its partitions, sort it once."""
        place = self._node().right
        if self.whole and place in self.context.ordered:
            ready: Sorted = self.context.ordered[place]
            return ready
        rows, bounds = by_group(self.own_codes, self.count, self.right.end)
        result = Sorted(rows, self.right.end[rows], self.right.start[rows], bounds)
        if self.whole:
            self.context.ordered[place] = result
        return result


def _codes(values: Array) -> tuple[Array, int]:
    """Dense codes 0.. of whole numbers, and how many."""
    if not len(values):
        return np.zeros(0, np.int64), 1
    ranks, size = _dense(values)
    return ranks, max(1, size)


def _dense(values: Array) -> tuple[Array, int]:
    low, high = int(values.min()), int(values.max())
    if low == high:
        return np.zeros(len(values), np.int64), 1
    if low > -(2**52) and high < 2**52:
        ranks, size = dense_ranks(values)
        return ranks.astype(np.int64), size
    known, inverse = np.unique(values, return_inverse=True)
    return inverse.astype(np.int64), len(known)


def _of_side(read: s.Attribute, side: str) -> s.Attribute:
    return type(read)(side, read.name, False, read.span)


def _as_single(node: s.Expr) -> s.Expr:
    """A part of one stream's events as it is of a stream by itself."""
    return n.mapped(node, lambda read: _of_side(read, ""))


def _leaves(context: Context, table: Table, reads: dict[str, int]) -> tuple[Array, Array, Array]:
    """(slots, words, nulls) of attributes of one stream."""
    columns = [column_of(context, table, s.Attribute("", name)) for name in reads]
    return np.array(list(reads.values()), np.int64), *leaves(columns, len(table))


def next_stream(context: Context, node: n.Next, left: Table, right: Table) -> Table:
    """NEXT."""
    family = context.family(node)
    plan = pairing(node, family, right.columns)
    places = Candidates(context, plan, family, left, right)
    order, _ = by_group(places.left_codes, places.count, left.end)
    stream = places.sorted()
    tree, least, strict = _tree(context, plan.bound, family, left, right, stream)
    program = Program(family)
    programs = np.array([program.all_of(plan.safe), program.all_of(plan.risky)], np.int64)
    spans = np.array([program.span(side) for side in ("", FIRST, SECOND, NOW)], np.int64)
    firsts = _leaves(context, left, program.attributes_of(FIRST))
    seconds = _leaves(context, right, program.attributes_of(SECOND))
    tables = program.tables(context.source.strings)
    out, state = np.zeros((max(1024, len(order)), 2), np.int64), np.zeros(3, np.int64)
    fixed = (
        order, places.left_codes, left.start, left.end, stream.rows, stream.ends, stream.starts, stream.bounds,
        context.plan.within, plan.low, plan.high, stream.points, tree, least, strict, programs, *tables, spans,
        *firsts, *seconds,
    )  # fmt: skip
    run: Any = k.next_pairs
    while (reason := run(*fixed, out, state)) != k.DONE:
        if reason == k.OVERFLOWED:
            raise context.overflow("NEXT's condition", node.condition or s.Literal(True, "boolean"))
        out = _doubled(out)
    r, t = out[: state[k.USED], 0], out[: state[k.USED], 1]
    columns = {}
    for column in node.columns:
        words, null = (left if column.side == FIRST else right).columns[column.source]
        at = r if column.side == FIRST else t
        columns[column.name] = words[at], null[at]
    return Table(left.part[r], left.start[r], right.end[t], columns)


def _tree(
    context: Context, bound: Bound | None, family: Resolve, left: Table, right: Table, stream: Sorted
) -> tuple[Array, Array, bool]:  # fmt: skip
    """The tree over the right stream's keys, what each left row needs of them, and whether more than that."""
    if bound is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), False

    def keys(table: Table, read: s.Attribute) -> Array:
        kind = family(read)
        words = column_of(context, table, read)[0]
        words = sortable(as_real(words, kind), "double") if bound.real else words
        return ~words if bound.op in ("<", "<=") else words

    size = 1 << max(0, int(len(stream.rows) - 1).bit_length())
    return k.tree_of(keys(right, bound.right)[stream.rows], size), keys(left, bound.left), bound.op in ("<", ">")


def fold_stream(context: Context, node: n.Fold, left: Table, right: Table) -> Table:
    """FOLD."""
    family = context.family(node)
    plan = pairing(node, family, right.columns)
    places = Candidates(context, plan, family, left, right)
    stream = places.sorted()
    go = parted(node.go, family)
    kinds = dict(n.attributes_of(context.plan.nodes[node.left])), dict(n.attributes_of(context.plan.nodes[node.right]))
    keeps, goes = (steps_of(parts, family, left, right, kinds, stream.rows) for parts in (plan.safe, go[0]))
    program = Program(family)
    ranges = [program.all_of(parts) for parts in (keeps.rest, plan.risky, goes.rest, go[1])]
    ranges += [program.value(value.expression, value.family) for value in node.values]
    spans = np.array([program.span(side) for side in ("", FIRST, SECOND, NOW)], np.int64)
    firsts = _leaves(context, left, program.attributes_of(FIRST))
    seconds = _leaves(context, right, program.attributes_of(SECOND))
    names = [value.name for value in node.values]
    now = {name: slot for name, slot in program.attributes_of(NOW).items() if name not in names}
    begins = _now_leaves(context, node, left, now, node.left)
    goes_on = _now_leaves(context, node, right, now, node.right)
    slots = np.array([program.load(s.Attribute(NOW, name)) for name in names], np.int64)
    held = [_widened(left.columns[value.name], kinds[0][value.name], value.family) for value in node.values]
    v_words, v_null = leaves(held, len(left))
    tables = program.tables(context.source.strings)
    chosen = np.flatnonzero(places.left_codes >= 0)
    ties = bool((stream.ends[1:] == stream.ends[:-1]).any())
    out, words = (
        np.zeros((max(1024, 2 * len(chosen)), 2), np.int64),
        np.zeros((max(1024, 2 * len(chosen)), len(names) + 1), np.int64),
    )
    queue, queued = np.zeros((64, 3), np.int64), np.zeros((64, len(names) + 1), np.int64)
    heads, stamps = np.zeros(256, np.int64), np.zeros(256, np.int64)
    state = np.zeros(3, np.int64)
    fixed = (
        chosen, places.left_codes, left.start, left.end, stream.rows, stream.ends, stream.starts, stream.bounds,
        places.own_codes[stream.rows], places.now_codes[stream.rows], context.plan.within, plan.low, plan.high,
        stream.points, ties, np.array(ranges, np.int64), *tables, spans, *firsts, *begins[1:], *goes_on, *seconds,
        slots, v_words, v_null, *keeps.arrays, *goes.arrays,
    )  # fmt: skip
    run: Any = fold_instances
    while (reason := run(*fixed, queue, queued, heads, stamps, out, words, state)) != k.DONE:
        if reason == k.OVERFLOWED:
            raise _fold_overflow(context, node, int(state[k.AT_PROGRAM]))
        stamps[:] = 0
        if reason == k.MORE_ROWS:
            out, words = _doubled(out), _doubled(words)
        else:
            queue, queued = _doubled(queue), _doubled(queued)
            heads, stamps = np.zeros(4 * len(queue), np.int64), np.zeros(4 * len(queue), np.int64)
    used = int(state[k.USED])
    r, t, words = out[:used, 0], out[:used, 1], words[:used]
    columns: dict[str, Words] = {}
    for column in node.columns:
        if column.side == NOW:
            x = names.index(column.source)
            columns[column.name] = np.ascontiguousarray(words[:, x]), (words[:, -1] >> x) & 1 == 1
            continue
        values, null = (left if column.side == FIRST else right).columns[column.source]
        at = r if column.side == FIRST else t
        columns[column.name] = values[at], null[at]
    return Table(left.part[r], left.start[r], right.end[t], columns)


def _now_leaves(
    context: Context, node: n.Fold, table: Table, reads: dict[str, int], place: int
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Leaves of `$` that are of the first event or of the last, in the family that holds both."""
    kinds = dict(n.attributes_of(context.plan.nodes[place]))
    family = context.family(node)
    columns = []
    for name in reads:
        whole = family(s.Attribute(NOW, name))
        columns.append(_widened(column_of(context, table, s.Attribute("", name)), kinds.get(name, whole), whole))
    return np.array(list(reads.values()), np.int64), *leaves(columns, len(table))


def _widened(words: Words, family: str, wanted: str) -> Words:
    """A column as one of another family: whole numbers as doubles."""
    return (as_real(words[0], family), words[1]) if wanted == "double" else words


def _fold_overflow(context: Context, node: n.Fold, program: int) -> Exception:
    if program < 4:
        condition = (node.keep if program < 2 else node.go) or s.Literal(True, "boolean")
        return context.overflow("FOLD's condition", condition)
    value = node.values[program - 4]
    return context.overflow(f"FOLD's value '{value.name}'", value.expression)


def _doubled(array: Array) -> Array:
    if len(array) > MOST_ROWS:
        message = f"an operator makes more than {MOST_ROWS:,} events of one shard"
        raise WindowTooLargeError(message, hint="shorten within, or give NEXT or FOLD more conditions")
    return np.concatenate((array, np.zeros_like(array)))
