"""The meaning of an expectation: one group's windows in order, each compared with those before it. Exact, and without
Spark.

A group is looked at in a window where it has a row, or had one in the windows before. Memory goes with `of_last`.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

from trendlake.cep_core.patterns.expectations import ExpectationModel

Stretch = tuple[int, int]
"""Windows from the first to the last of two."""


class Number(NamedTuple):
    """An exact value (whole numbers as such: they are compared fast); or one `beyond` what a count's column holds,
    larger than any other, with its decimal logarithm. They are ordered as they should be."""

    beyond: bool
    value: int | float | Fraction

    @property
    def log10(self) -> float:
        if self.beyond:
            return float(self.value)
        exact = Fraction(self.value)
        if not exact:
            return -math.inf
        return math.log10(exact.numerator) - math.log10(exact.denominator)

    def __str__(self) -> str:
        if self.beyond:
            return f"10^{self.value:.6g}"
        exact = Fraction(self.value)
        return str(exact.numerator) if exact.denominator == 1 else f"{float(exact):.6g}"


ZERO = Number(False, 0)


class Row(NamedTuple):
    """The row of a group in a window. `value`: of the measure; None where it has none (NULL, or no finite number)."""

    window: int
    value: Number | None


class Outcome(NamedTuple):
    """Of a group in a window. `value` and `usual`, what it is compared with, are None where there are none."""

    window: int
    word: Literal["kept", "broken", "unjudged"]
    value: Number | None = None
    usual: Number | None = None


@dataclass(frozen=True)
class Judged:
    """The windows that can be judged, stretches in order: all that they are compared with are known."""

    stretches: tuple[Stretch, ...]

    def __contains__(self, window: int) -> bool:
        i = bisect_right(self.stretches, window, key=lambda stretch: stretch[0])
        return i > 0 and window <= self.stretches[i - 1][1]

    def between(self, first: int, last: int) -> Iterator[int]:
        """Those from `first` to `last`, in order."""
        i = max(0, bisect_right(self.stretches, first, key=lambda stretch: stretch[0]) - 1)
        while i < len(self.stretches) and self.stretches[i][0] <= last:
            yield from range(max(first, self.stretches[i][0]), min(last, self.stretches[i][1]) + 1)
            i += 1

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.stretches)


def judged_of(wanted: Iterable[Stretch], covered: Sequence[Stretch], of_last: int) -> Judged:
    """Those of the windows `wanted` (stretches in order) whose `of_last` windows before are all `covered` (stretches in
    order that do not touch)."""
    intervals = [
        (max(first, start + of_last), min(last, end + 1))
        for first, last in wanted
        for start, end in covered
        if max(first, start + of_last) <= min(last, end + 1)
    ]
    return Judged(tuple(intervals))


class _Before:
    """The rows of a group in the last windows. `missing`: the value where it has no row."""

    def __init__(self, length: int, missing: Number | None) -> None:
        self.length, self.missing = length, missing
        self.rows: deque[Row] = deque()
        self.values: list[Number] = []

    def forget(self, until: int) -> None:
        """Windows before `until`."""
        while self.rows and self.rows[0].window < until:
            value = self.rows.popleft().value
            if value is not None:
                self.values.pop(bisect_left(self.values, value))

    def add(self, row: Row) -> None:
        self.rows.append(row)
        if row.value is not None:
            insort(self.values, row.value)

    def median(self) -> Number | None:
        """Of the values there are, those of windows without a row among them; between two, their mean."""
        absent = 0 if self.missing is None else self.length - len(self.rows)
        number = absent + len(self.values)
        if not number:
            return None
        # A missing value is 0, and only a count has one: none is less.
        low, high = (self.values[i - absent] if i >= absent else ZERO for i in ((number - 1) // 2, number // 2))
        return low if low == high else mean(low, high)


def mean(low: Number, high: Number) -> Number:
    """Of two numbers, the smaller one first."""
    if not high.beyond:
        return Number(False, (Fraction(low.value) + Fraction(high.value)) / 2)
    return Number(True, high.log10 + math.log10((1 + 10 ** (low.log10 - high.log10)) / 2))


def keeps(value: Number, usual: Number, low: Fraction | None, high: Fraction | None) -> bool:
    """Whether value / usual (which is not 0) is in the bounds; where one is beyond, by the logarithms."""
    if value.beyond or usual.beyond:
        ratio = value.log10 - usual.log10
        least, most = (None if bound is None else Number(False, bound).log10 for bound in (low, high))
        return (least is None or least <= ratio) and (most is None or ratio <= most)
    # low <= a / b is low * b <= a where b > 0: no fraction is made of whole numbers
    a, b = (x.value if isinstance(x.value, int) else Fraction(x.value) for x in (value, usual))
    if b < 0:
        a, b = -a, -b
    above = low is None or low.numerator * b <= a * low.denominator
    return above and (high is None or a * high.denominator <= high.numerator * b)


def judge(expected: ExpectationModel, rows: Iterable[Row], judged: Judged, missing: Number | None) -> Iterator[Outcome]:
    """The outcomes of one group, window by window. `rows`: all it has in the windows judged and those before, a window
    once, in order (else RuntimeError); `missing`: the measure's value where a group has no row.

    A measure without a value, or whose median is 0 or not there, is unjudged. Of groups that may not vanish only those
    that were there in each of the windows before have an outcome.
    """
    before = _Before(expected.of_last, missing)
    for window, row in _walk(rows, judged, expected.of_last):
        before.forget(window - expected.of_last)
        if window in judged:
            outcome = _outcome(expected, before, window, row)
            if outcome is not None:
                yield outcome
        if row is not None:
            before.add(row)


def _outcome(expected: ExpectationModel, before: _Before, window: int, row: Row | None) -> Outcome | None:
    if expected.between is None:
        if len(before.rows) < expected.of_last:
            return None
        return Outcome(window, "broken" if row is None else "kept")
    value = before.missing if row is None else row.value
    usual = before.median()
    if value is None or usual is None or usual == ZERO:
        return Outcome(window, "unjudged", value, usual)
    return Outcome(window, "kept" if keeps(value, usual, *expected.between) else "broken", value, usual)


def _walk(rows: Iterable[Row], judged: Judged, of_last: int) -> Iterator[tuple[int, Row | None]]:
    """The windows of the rows, and those judged in which there is none, as long as there was one before."""
    last: int | None = None
    for row in rows:
        if last is not None:
            if row.window <= last:
                raise RuntimeError(f"a group's rows are not in order: window {row.window} after {last}")
            yield from ((window, None) for window in judged.between(last + 1, min(row.window - 1, last + of_last)))
        yield row.window, row
        last = row.window
    if last is not None:
        yield from ((window, None) for window in judged.between(last + 1, last + of_last))
