"""Steps of FOLD decided by comparisons of what an instance has with the next event, as whole numbers: no program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trendlake.cep_core.algebra.compile.pairing import Bound, compared
from trendlake.cep_core.algebra.kernels.arguments import Steps as Arrays
from trendlake.cep_core.algebra.run.tables import Table, as_real, sortable
from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.expressions.types import Resolve
from trendlake.cep_core.language import syntax as s


@dataclass(frozen=True)
class Steps:
    """Comparisons `$2.x op $.y` of a conjunction, x and y attributes of the right stream; `rest`: its other parts."""

    rest: list[s.Expr]
    arrays: Arrays


def steps_of(
    parts: Sequence[s.Expr],
    family: Resolve,
    left: Table,
    right: Table,
    kinds: tuple[dict[str, str], dict[str, str]],
    rows: Int64s,
) -> Steps:
    """`kinds`: the families of the attributes of both streams; `rows`: of the right stream by position."""
    taken, rest = compared(parts, family, kinds[1])
    keys = _keys(taken, [bound.right.name for bound in taken], right, kinds[1])
    first = _keys(taken, [bound.left.name for bound in taken], left, kinds[0])
    now = _keys(taken, [bound.left.name for bound in taken], right, kinds[1])
    strict = np.array([bound.op in ("<", ">") for bound in taken], np.bool_)
    return Steps(rest, Arrays(keys[0][rows], keys[1][rows], *first, now[0][rows], now[1][rows], strict))


def _keys(taken: Sequence[Bound], names: Sequence[str], table: Table, kinds: dict[str, str]) -> tuple[Int64s, Bools]:
    """Attributes of a stream as whole numbers that must be as much, and whether any is NULL."""
    keys = np.zeros((len(table), len(taken)), np.int64)
    missing = np.zeros(len(table), np.bool_)
    for x, (bound, name) in enumerate(zip(taken, names, strict=True)):
        words, null = table.columns[name]
        if bound.real:
            reals = as_real(words, kinds[name]).view(np.float64) + 0.0  # -0.0 is 0.0
            words = sortable(reals.view(np.int64), "double")
        keys[:, x] = ~words if bound.op in ("<", "<=") else words
        missing |= null
    return keys, missing
