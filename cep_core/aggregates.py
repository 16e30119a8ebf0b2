"""What a pass must carry for the measures asked for, and how sums of rows become columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cep_core.buffers import arrow, numbers, valid
from cep_core.check import CheckedMeasure
from cep_core.errors import BadEventsError
from cep_core.kernels.numbers import RADIX, e_add, e_normal
from cep_core.slices import Slice
from cep_core.tasks import Weights

Array = Any

LARGEST_COUNT = 10**38 - 1
LOG10_STEP = RADIX * math.log10(2.0)

TREND = ("trend", None, None)
"""The sum that counts trends: always number 0."""

Sum = tuple[str, str | None, str | None]
"""(what, variable, attribute); what: trend, events, present (attribute not NULL), value, magnitude."""


@dataclass(frozen=True)
class Carried:
    """The sums and extrema a set of measures needs, in the order of a row."""

    sums: tuple[Sum, ...]
    extremes: tuple[tuple[str, str, str], ...]
    """(min or max, variable, attribute)."""

    def index(self, what: str, variable: str | None, attribute: str | None) -> int:
        return self.sums.index((what, variable, attribute))


def carried(measures: tuple[CheckedMeasure, ...]) -> Carried:
    """Number 0 is the trends; SUM and AVG need how many attributes were not NULL too."""
    sums: dict[Sum, None] = {TREND: None}
    extremes: dict[tuple[str, str, str], None] = {}
    for m in measures:
        if m.function == "count" and m.variable is not None:
            sums["events", m.variable, None] = None
        elif m.function in ("sum", "avg"):
            for what in ("present", "value", "magnitude"):
                sums[what, m.variable, m.attribute] = None
        elif m.function in ("min", "max"):
            extremes[m.function, str(m.variable), str(m.attribute)] = None
    return Carried(tuple(sums), tuple(extremes))


class Contributions:
    """What each event of a slice adds: `weights` for the kernel, and the values behind the extrema's codes."""

    def __init__(self, slice_: Slice, wanted: Carried) -> None:
        plan, n = slice_.events.plan, slice_.length
        self.wanted = wanted
        table = np.zeros((len(wanted.sums), n))
        variables = np.full(len(wanted.sums), -1, np.int64)
        self.whole = True
        for k, (what, variable, attribute) in enumerate(wanted.sums):
            if variable is None:
                continue
            variables[k] = plan.variables.index(variable)
            table[k] = self._weights(what, None if attribute is None else slice_.column(attribute))
            if not np.isfinite(table[k]).all():
                self._refuse_infinite(slice_, int(variables[k]), table[k], str(attribute))
        extreme = np.zeros(len(wanted.extremes), np.int64)
        codes = np.full((len(wanted.extremes), n), -np.inf)
        self.values: list[Array] = []
        for m, (function, variable, attribute) in enumerate(wanted.extremes):
            extreme[m] = plan.variables.index(variable)
            column = slice_.column(attribute)
            distinct = pc.unique(column.drop_null())
            distinct = distinct.take(pc.sort_indices(distinct))
            self.values.append(distinct)
            if len(distinct):
                found = pc.index_in(column, distinct)
                known = valid(column)
                ranks = numbers(found, 0).astype(np.float64)
                codes[m, known] = ranks[known] if function == "max" else -ranks[known]
        self.weights = Weights(variables, table, extreme, codes)

    def _refuse_infinite(self, slice_: Slice, variable: int, weights: Array, attribute: str) -> None:
        """Raises BadEventsError where an event that counts has an infinite value: sums of such have no meaning in the
        language, and the kernels take finite ones only. Of events that do not count the value is put to 0."""
        infinite = ~np.isfinite(weights)
        if (infinite & ((slice_.ok & np.uint64(1 << variable)) != 0)).any():
            raise BadEventsError(
                f"'{attribute}' has an infinite value: it has no sum and no mean",
                hint="set such rows apart by the contract (minimum, maximum), or leave them out by a condition",
            )
        weights[infinite] = 0.0

    def _weights(self, what: str, column: Array) -> Array:
        if what == "events" or column is None:
            return 1.0
        if pa.types.is_null(column.type):
            return 0.0
        if what == "present":
            return valid(column).astype(np.float64)
        values = numbers(column, 0).astype(np.float64)
        if not (np.all(values == np.floor(values)) and np.all(np.abs(values) < 2.0**53)):
            self.whole = False
        return np.abs(values) if what == "magnitude" else values

    def extreme_value(self, m: int, code: float) -> Any:
        """The attribute's value behind an extremum's code; None when no event gave one."""
        if code == -np.inf:
            return None
        rank = int(code) if self.wanted.extremes[m][0] == "max" else int(-code)
        return self.values[m][rank].as_py()

    def extreme_values(self, m: int, codes: Array) -> Array:
        """`extreme_value` of many codes, as an Arrow array."""
        known = codes > -np.inf
        ranks = np.where(known, np.abs(np.where(known, codes, 0.0)), 0.0).astype(np.int64)
        return self.values[m].take(arrow(ranks, ~known))


@dataclass(frozen=True)
class Number:
    """A sum of one (group, window): `whole` exactly, when it is known; and m * 2^(RADIX e) within about 1e-12."""

    m: float
    e: float = 0.0
    whole: int | None = None

    def __add__(self, other: Number) -> Number:
        if self.whole is not None and other.whole is not None:
            return Number(self.m + other.m, 0.0, self.whole + other.whole)
        (m, e), (n, f) = self._scaled(), other._scaled()
        return Number(*e_add(m, e, n, f))

    @property
    def is_zero(self) -> bool:
        return self.whole == 0 if self.whole is not None else self.m == 0.0

    def log10(self) -> float | None:
        """Of the magnitude; None for zero."""
        if self.whole is not None:
            return None if self.whole == 0 else math.log10(abs(self.whole))
        return None if self.m == 0.0 else math.log10(abs(self.m)) + self.e * LOG10_STEP

    def double(self) -> float | None:
        """As float64; None when it is too large for one."""
        if self.whole is not None:
            return float(self.whole)
        try:
            value = math.ldexp(self.m, int(RADIX * self.e))
        except OverflowError:
            return None
        return value if math.isfinite(value) else None

    def ratio(self, other: Number) -> float:
        """self / other, for other > 0: finite though both may be past float64."""
        if self.whole is not None and other.whole is not None:
            return self.whole / other.whole
        (m, e), (n, f) = self._scaled(), other._scaled()
        (a, p), (b, q) = math.frexp(m), math.frexp(n)
        return math.ldexp(a / b, int(p - q + RADIX * (e - f)))

    def _scaled(self) -> tuple[float, float]:
        """As (m, e), m within the range of tier E."""
        if self.whole is not None:
            return scaled(self.whole)
        m, e = e_normal(*e_normal(self.m, self.e))
        return m, e

    def count(self) -> int | None:
        """Where a DECIMAL(38,0) holds it; None beyond."""
        return None if self.whole is None or abs(self.whole) > LARGEST_COUNT else self.whole


def scaled(whole: int) -> tuple[float, float]:
    """A whole number as (m, e) of tier E."""
    shift = max(0, whole.bit_length() - 64)
    fraction, power = math.frexp(float(whole >> shift))
    steps = (power + shift + RADIX // 2) // RADIX
    m, e = e_normal(math.ldexp(fraction, power + shift - steps * RADIX), float(steps))
    return float(m), float(e)
