"""Sums as numbers of any size, and the one way in which each is rounded for a result.

A result depends on the true sum only, so that no order of additions shows. Sums that are known exactly are rounded
once. Others are known within an error, and are shown with so few digits that all numbers within the error agree; where
they do not, the caller computes them more exactly (`log10` answers None).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal, localcontext

from trendlake.cep_core.trends.kernels.rounding import DIGITS, LOG10_E
from trendlake.cep_core.trends.kernels.scaled import RADIX

LARGEST_COUNT = 10**38 - 1
KNOWN = 2.0**-60
"""From this relative error down a number is as well known as it can be: by two floats (tier D)."""

_SHIFT = Decimal("0.3183098861837907")
_FRACTION = Decimal("0.4142135623730951")
"""The thresholds of decisions: at no number that values and counts come to by themselves, such as powers of ten or
halves."""
_FINE = Context(prec=80, Emax=MAX_EMAX, Emin=MIN_EMIN)
_LOG10_2 = math.log10(2.0)


@dataclass(frozen=True)
class Number:
    """whole * 2^power, within `error` of the sum of the `magnitudes` that were added (None: its own)."""

    whole: int
    power: int = 0
    error: float = 0.0
    magnitudes: Number | None = None

    @staticmethod
    def of(top: float, low: float = 0.0, e: float = 0.0, error: float = 0.0) -> Number:
        """(top + low) * 2^(RADIX e)."""
        (a, p), (b, q) = math.frexp(top), math.frexp(low)
        high = Number(int(a * 2.0**53), p - 53 + RADIX * int(e), error)
        return high + Number(int(b * 2.0**53), q - 53 + RADIX * int(e), error) if low else high

    def __add__(self, other: Number) -> Number:
        if not other.whole or not self.whole:
            more = other if other.whole else self
            return Number(more.whole, more.power, max(self.error, other.error), more.magnitudes)
        power = min(self.power, other.power)
        whole = (self.whole << (self.power - power)) + (other.whole << (other.power - power))
        magnitudes = None
        if self.magnitudes is not None or other.magnitudes is not None:
            magnitudes = self.size + other.size
        return Number(whole, power, max(self.error, other.error), magnitudes)

    @property
    def size(self) -> Number:
        """The sum of the magnitudes."""
        return self.magnitudes or Number(abs(self.whole), self.power, self.error)

    @property
    def exact(self) -> bool:
        return self.error == 0.0

    @property
    def is_zero(self) -> bool:
        return self.whole == 0

    def count(self) -> int | None:
        """Where a DECIMAL(38,0) holds it; None beyond."""
        if not self.exact or self.whole.bit_length() + self.power > 128:
            return None
        count = self.whole << self.power
        return count if count <= LARGEST_COUNT else None

    def rounded(self) -> tuple[float, int]:
        """(m, e) of the nearest m * 2^e, 0.5 <= |m| < 1, whatever its size; (0.0, 0) of zero."""
        bits = max(0, abs(self.whole).bit_length() - 900)
        whole = self.whole >> bits
        if bits:
            whole |= int(whole << bits != self.whole)  # what is cut off still decides between two halves
        m, e = math.frexp(float(whole))
        return m, e + bits + self.power if m else 0

    def decimal(self) -> Decimal:
        """In the context of the caller."""
        return Decimal(self.whole) * Decimal(2) ** self.power


def count_log10(count: Number) -> float | None:
    """The logarithm of a count, which is not zero: of the nearest float64 while the count is shown as well, else in
    `DIGITS` digits. None where these are not sure."""
    m, e = count.rounded()
    if count.count() is not None:
        return math.log10(math.ldexp(m, e))
    logarithm = math.log10(m) + e * _LOG10_2
    places = DIGITS - len(str(int(logarithm)))
    scaled = logarithm * 10.0**places
    near = math.floor(scaled + 0.5)
    doubt = 10.0**places * (LOG10_E * count.error + 4.0 * math.ulp(logarithm))
    if abs(scaled - near) + doubt < 0.5:
        return near / 10.0**places
    if count.error > KNOWN:
        return None
    with localcontext(_FINE):
        near = int((count.decimal().log10() * 10**places + Decimal("0.5")).to_integral_value(ROUND_FLOOR))
    return near / 10.0**places


def total(value: Number) -> tuple[float, int]:
    """A sum as (m, e) of m * 2^e, past float64's range as well."""
    if value.exact:
        return value.rounded()
    with localcontext(_FINE):
        return _binary(_settled(value.decimal(), value.size.decimal()))


def mean(value: Number, count: Number) -> float:
    """value / count, for count > 0: finite though both may be past float64."""
    if value.exact and count.exact:
        (a, p), (b, q) = value.rounded(), count.rounded()
        return math.ldexp(a / b, p - q)
    with localcontext(_FINE):
        n = count.decimal()
        m, e = _binary(_settled(value.decimal() / n, value.size.decimal() / n))
    return math.ldexp(m, e)


def _settled(value: Decimal, size: Decimal) -> Decimal:
    """`value` to some 17 digits of the mean magnitude or sum of magnitudes behind it."""
    unit = Decimal(10) ** (int((size.log10() + _SHIFT).to_integral_value(ROUND_FLOOR)) - 17)
    return (value / unit + _FRACTION).to_integral_value(ROUND_FLOOR) * unit


def _binary(value: Decimal) -> tuple[float, int]:
    """The (m, e) of a decimal number of any size."""
    if not value:
        return 0.0, 0
    steps = int(value.adjusted() / _LOG10_2)
    m, e = math.frexp(float(value / Decimal(2) ** steps))
    return m, e + steps
