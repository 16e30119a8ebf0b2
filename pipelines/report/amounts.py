"""Numbers of any size, and how a person reads them.

A trend count may be 3 or 10^30000. `Amount` carries the exact value where there is one and the base-10
logarithm where that is all there is; the functions here add, order and print such amounts without ever losing
the difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from trendlake.pipelines.error_text import plural

LONGEST_PLAIN = 15
"""Digits up to which an exact count is shown in full; longer ones are shown as a power of ten, with the digits next to
it.
"""

ITEMS_SHOWN = 5
"""Of a list of values, as many are named."""

MICROS = 1_000_000
"""As a `unit`: of microseconds. Of seconds it is 1."""
LONGEST = 10**9 * 86_400
"""Seconds: a length of time that is written as days, hours and minutes is not longer."""

MANTISSA_LIMIT = 1e6
"""A log10 is right to 1e-9 relative: above this the three digits of a mantissa would be invented."""

_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True)
class Amount:
    """A measure's value: `exact` (int for counts, float otherwise; None beyond 38 digits) and `log10` of its
    magnitude.

    `log10` is None for zero and for measures that have no logarithm (an average, say). Both None: no value at
    all. `unit`: of a length of time, how many of it make a second; 0 of another number.
    """

    exact: int | float | None
    log10: float | None = None
    unit: int = 0

    @classmethod
    def of_count(cls, exact: int | Decimal | None, log10: float | None = None) -> Amount:
        """A count; the logarithm is derived where only the exact value is known."""
        whole = None if exact is None else int(exact)
        if log10 is None and whole is not None and whole > 0:
            log10 = math.log10(whole)
        return cls(whole, log10)

    @property
    def is_known(self) -> bool:
        """Whether there is any value to show."""
        return self.exact is not None or self.log10 is not None

    @property
    def order(self) -> tuple[int, float, float]:
        """Sort key: counts by logarithm (zero below all others), other measures by value, NaN as the largest, unknown
        first."""
        if self.log10 is not None:
            return (2, self.log10, 0.0)
        if self.exact is not None:
            return (1, 1.0, 0.0) if math.isnan(self.exact) else (1, 0.0, float(self.exact))
        return (0, 0.0, 0.0)


def amount_of(value: object, log10: float | None, unit: int = 0, *, ids: bool = True) -> Amount | str:
    """A measure's value: a whole number is a count, NULL with a log10 a count or sum too large to hold. A list of `ids`
    is their number, one of other values has few of many; anything else is its text. `unit`: as of `Amount`."""
    if value is None:
        return Amount(None, log10)
    if isinstance(value, list):
        return folded(value) if ids else _listed([amount_of(item, None) for item in value])
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return str(value)
    if unit:
        return Amount(value if isinstance(value, float) else int(value), None, unit)
    if isinstance(value, float):
        return Amount(value, log10)
    return Amount.of_count(value, log10) if value == int(value) else Amount(float(value), log10)


def folded(ids: Sequence[object]) -> str:
    """A list of event ids: `20 events`, of one its id."""
    return str(ids[0]) if len(ids) == 1 else plural(len(ids), "event")


def _listed(items: Sequence[Amount | str]) -> str:
    words = [item if isinstance(item, str) else text(item) for item in items]
    if len(words) <= ITEMS_SHOWN:
        return ", ".join(words)
    return f"{', '.join([*words[: ITEMS_SHOWN - 1], '…', words[-1]])} ({len(words):,})"


def share(part: Amount, whole: Amount) -> float | None:
    """The share of `part` in `whole`, in [0, 1], zero only when `part` is; None when that is unknown."""
    if part.exact == 0:
        return 0.0
    if part.log10 is None or whole.log10 is None:
        return None
    fraction = math.pow(10.0, min(0.0, part.log10 - whole.log10))
    return max(fraction, math.nextafter(0.0, 1.0))


def superscript(number: int) -> str:
    """`-12` as the characters of an exponent."""
    return str(number).translate(_SUPERSCRIPT)


def text(amount: Amount, decimals: int | None = None) -> str:
    """One short form: `1,234`, `0.0312`, `1.23 × 10²⁷`, `≈ 2.41 × 10³⁰⁰⁰` (only the log10 is known), `–`.

    `decimals` fixes how many a fraction shows; by default four digits of it count.
    """
    exact = amount.exact
    if amount.unit and exact is not None:
        return time_text(exact, amount.unit)
    if exact is None:
        return "–" if amount.log10 is None else "≈ " + _power(amount.log10)
    if isinstance(exact, float):
        return _float(exact, decimals)
    if len(str(abs(exact))) <= LONGEST_PLAIN:
        return f"{exact:,}"
    return _scientific(Decimal(exact))


def digits(amount: Amount) -> str | None:
    """All digits of an exact count that `text` shortens, with thousands separators; None where nothing is
    hidden.
    """
    if amount.unit:
        return None
    if isinstance(amount.exact, int) and len(str(abs(amount.exact))) > LONGEST_PLAIN:
        return f"{amount.exact:,}"
    return None


def length(micros: int) -> str:
    """A measured time to its last digit: `2:49:00`, `0:00:00.5`, `3 days 2:49:00`."""
    clock_text = str(timedelta(microseconds=abs(micros))).replace(", ", " ")
    return f"{'-' if micros < 0 else ''}{clock_text.rstrip('0') if '.' in clock_text else clock_text}"


def time_text(value: float, unit: int) -> str:
    """The same of a number; `unit`: how many of its units make a second. Of ages, the number."""
    if not abs(value) <= LONGEST * unit:  # or it is no number
        return f"{value:,} {'s' if unit == 1 else 'µs'}"
    return length(round(value if unit == MICROS else value * MICROS / unit))


def percent(fraction: float | None) -> str:
    """`34 %`, `3.4 %`, `< 0.1 %`, `> 99.9 %`: never 0 or 100 unless it is."""
    if fraction is None:
        return "–"
    value = 100 * fraction
    if 0 < value < 0.1:
        return "< 0.1 %"
    if 99.9 < value < 100:
        return "> 99.9 %"
    return f"{value:.0f} %" if value >= 10 or value == 0 else f"{value:.1f} %"


def _float(value: float, decimals: int | None) -> str:
    if math.isnan(value) or math.isinf(value):
        return str(value)
    if decimals is not None and abs(value) < 1e15:
        return f"{value:,.{decimals}f}"
    if value == 0 or 1e-4 <= abs(value) < 1e15:
        whole = f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.4g}"
        return whole if "e" not in whole else f"{value:,.0f}"
    return _scientific(Decimal(value))


def _scientific(value: Decimal) -> str:
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa} × 10{superscript(int(exponent))}"


def _power(log10: float) -> str:
    exponent = math.floor(log10)
    if abs(log10) > MANTISSA_LIMIT:
        return f"10{superscript(round(log10))}"
    mantissa = f"{10.0 ** (log10 - exponent):.2f}"
    if mantissa == "10.00":
        mantissa, exponent = "1.00", exponent + 1
    return f"{mantissa} × 10{superscript(exponent)}"
