"""Where candidates are: the right stream of NEXT and FOLD sorted by group and end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile.pairing import Key, Pairing
from trendlake.cep_core.algebra.compile.syntax import FIRST, NOW, SECOND
from trendlake.cep_core.algebra.run.context import Context
from trendlake.cep_core.algebra.run.ordered import Sorted
from trendlake.cep_core.algebra.run.singles import column_of, holding
from trendlake.cep_core.algebra.run.tables import Table, Words, as_real, by_group, in_order
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.events.codes import dense_ranks
from trendlake.cep_core.expressions.types import Resolve
from trendlake.cep_core.language import syntax as s


class Candidates:
    """Where the candidates of a left row, and of an instance, are: groups of the right stream.

    `left_codes`: the group in which each left row looks, -1 for none; `own_codes`: of each right row; `now_codes`:
    where an instance looks whose last event is that row. `whole`: whether all right rows are
    in groups, by partition.
    """

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
        moves = any(key.left.variable == NOW for key in plan.keys)
        parts = [left.part, right.part, right.part] if moves else [left.part, right.part]
        if columns:
            keys = [several[: len(parts)] for several in columns]
            parts, count = _shared_codes(parts, keys)
        else:
            count = max(1, len(context.source.first))
        self.count = count
        self.whole = not columns and len(self.right_rows) == len(right)
        self.left_codes, own, *now = parts
        self.now_codes = now[0] if moves else own
        self.left_codes = _only(self.left_codes, self.left_rows)
        self.own_codes = _only(own, self.right_rows)

    def _right(self, read: s.Attribute) -> str:
        return self.family(_of_side(read, SECOND))

    def _left(self, read: s.Attribute) -> str:
        return self.family(_of_side(read, FIRST))

    def _not_null(self, table: Table, read: s.Attribute, rows: Int64s) -> Int64s:
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

    def _node(self) -> n.Next | n.Fold:
        node = self.context.plan.nodes[self.context.place]
        if not isinstance(node, n.Next | n.Fold):  # pragma: no cover - who else has candidates
            raise AssertionError(node)
        return node

    def sorted(self) -> Sorted:
        """The right stream. Operators that read all of one, by its partitions, sort it once."""
        place = self._node().right
        if self.whole and place in self.context.ordered:
            return self.context.ordered[place]
        rows, bounds = by_group(self.own_codes, self.count, self.right.end)
        columns = self.right.end, self.right.start, self.own_codes
        if not in_order(self.own_codes, self.right.end):
            columns = columns[0][rows], columns[1][rows], columns[2][rows]
        result = Sorted(rows, *columns, bounds)
        if self.whole:
            self.context.ordered[place] = result
        return result


def _only(codes: Int64s, rows: Int64s) -> Int64s:
    """The codes of `rows`, -1 for all others."""
    if len(rows) == len(codes):
        return codes
    result = np.full(len(codes), -1, np.int64)
    result[rows] = codes[rows]
    return result


def _shared_codes(parts: Sequence[Int64s], keys: Sequence[Sequence[Words]]) -> tuple[list[Int64s], int]:
    """Of several lists of rows a code each, equal for rows of one partition (`parts`) and equal values of all `keys`
    (each with the words of every list), -1 for rows with a NULL among these; and how many codes there are. Lists that
    are one, as where a stream meets itself, are coded once."""
    if all(part is parts[0] for part in parts) and all(_same(words, of_key[0]) for of_key in keys for words in of_key):
        codes, count = _codes_of(parts[0], [of_key[0] for of_key in keys])
        return [codes] * len(parts), count
    joined = [
        (np.concatenate([words for words, _ in of_key]), np.concatenate([null for _, null in of_key]))
        for of_key in keys
    ]
    codes, count = _codes_of(np.concatenate(parts), joined)
    return np.split(codes, np.cumsum([len(one) for one in parts])[:-1]), count


def _same(a: Words, b: Words) -> bool:
    """Whether two columns are the same arrays."""
    return a[0] is b[0] and a[1] is b[1]


def _codes_of(part: Int64s, keys: Sequence[Words]) -> tuple[Int64s, int]:
    codes, count = _codes(part)
    null = np.zeros(len(codes), np.bool_)
    for words, missing in keys:
        ranks, size = _codes(words)
        codes, count = (ranks, size) if count == 1 else _codes(codes * max(1, size) + ranks)
        null |= missing
    codes[null] = -1
    return codes, count


def _codes(values: Int64s) -> tuple[Int64s, int]:
    """Dense codes 0.. of whole numbers, and how many."""
    if not len(values):
        return np.zeros(0, np.int64), 1
    ranks, size = _dense(values)
    return ranks, max(1, size)


def _dense(values: Int64s) -> tuple[Int64s, int]:
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
