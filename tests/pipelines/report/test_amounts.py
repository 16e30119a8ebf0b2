"""Numbers of any size: sums that stay exact, and how they are written."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trendlake.pipelines.report.amounts import Amount, digits, percent, share, text
from trendlake.pipelines.report.tally import Tally
from trendlake.pipelines.report.words import duration, interval_label

JANUARY = datetime(2013, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (Amount(0), "0"),
        (Amount.of_count(1_234), "1,234"),
        (Amount.of_count(999_999_999_999_999), "999,999,999,999,999"),
        (Amount.of_count(1_234_567_890_123_456), "1.23 × 10¹⁵"),
        (Amount.of_count(99_999_999_999_999_999), "1.00 × 10¹⁷"),
        (Amount(None, 3000.381), "≈ 2.40 × 10³⁰⁰⁰"),
        (Amount(None, 2999.9999), "≈ 1.00 × 10³⁰⁰⁰"),
        (Amount(None, 12_345_678.4), "≈ 10¹²³⁴⁵⁶⁷⁸"),
        (Amount(None), "–"),
        (Amount(0.03125), "0.03125"),
        (Amount(-1.5), "-1.5"),
        (Amount(12_345.678), "12,346"),
        (Amount(1e300), "1.00 × 10³⁰⁰"),
        (Amount(math.inf), "inf"),
    ],
)
def test_an_amount_is_written_in_its_shortest_honest_form(amount: Amount, shown: str) -> None:
    """Never rounded where it is short, never more digits than are known."""
    assert text(amount) == shown


def test_a_shortened_count_keeps_all_its_digits_beside_it() -> None:
    """38 digits are exact, and shown."""
    assert digits(Amount.of_count(10**37 + 1)) == "10,000,000,000,000,000,000,000,000,000,000,000,001"
    assert digits(Amount.of_count(12)) is None
    assert digits(Amount(None, 40.0)) is None


@pytest.mark.parametrize(
    ("fraction", "shown"),
    [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (5e-324, "< 0.1 %"),
        (math.nextafter(1, 0), "> 99.9 %"),
        (0.034, "3.4 %"),
        (None, "–"),
    ],
)
def test_a_share_is_0_or_100_percent_only_if_it_is(fraction: float | None, shown: str) -> None:
    """Rounding does not make a small group vanish."""
    assert percent(fraction) == shown


def test_the_share_of_a_vanishing_part_is_not_zero() -> None:
    """10^1 of 10^3000 underflows a double."""
    assert share(Amount.of_count(10), Amount(None, 3000.0)) > 0
    assert share(Amount(0), Amount.of_count(10)) == 0


@given(st.lists(st.integers(min_value=0, max_value=10**60), min_size=1, max_size=30))
def test_sums_of_exact_counts_are_exact(counts: list[int]) -> None:
    """Also beyond the 38 digits of a column."""
    assert _sum([Amount.of_count(count) for count in counts]).exact == sum(counts)


@given(st.lists(st.integers(min_value=0, max_value=10**300), min_size=1, max_size=30), st.data())
def test_sums_by_logarithm_agree_with_whole_numbers(counts: list[int], data: st.DataObject) -> None:
    """One count known by its logarithm only: the sum's logarithm is that of the true sum."""
    amounts = [Amount.of_count(count) for count in counts]
    lost = data.draw(st.integers(0, len(counts) - 1))
    amounts[lost] = Amount(None, amounts[lost].log10)
    total = _sum(amounts)
    assert total.exact is None
    if sum(counts) == 0:
        assert total.log10 is None
    else:
        assert total.log10 == pytest.approx(math.log10(sum(counts)), rel=1e-9, abs=1e-9)


def test_a_sum_of_powers_too_large_for_a_double() -> None:
    """10^30000 + 10^30000 + 1."""
    assert _sum([Amount(None, 30000.0), Amount(None, 30000.0), Amount(1, 0.0)]).log10 == pytest.approx(
        30000 + math.log10(2), rel=1e-12
    )


@pytest.mark.parametrize(
    ("start", "end", "shown"),
    [
        (JANUARY, JANUARY + timedelta(days=1), "Tue 1 Jan 2013"),
        (JANUARY, JANUARY + timedelta(days=14), "Tue 1 Jan 2013 – Mon 14 Jan 2013"),
        (JANUARY + timedelta(hours=9), JANUARY + timedelta(hours=33), "Tue 1 Jan 2013, from\u00a009:00"),
        (JANUARY + timedelta(hours=9), JANUARY + timedelta(hours=10), "1 Jan 2013, 09:00\u00a0–\u00a010:00"),
        (JANUARY + timedelta(hours=23), JANUARY + timedelta(hours=24), "1 Jan 2013, 23:00\u00a0–\u00a024:00"),
        (JANUARY + timedelta(hours=23), JANUARY + timedelta(hours=25), "1 Jan 2013, 23:00 – 2 Jan 2013, 01:00"),
        (JANUARY, JANUARY + timedelta(seconds=10), "1 Jan 2013, 00:00\u00a0–\u00a000:00:10"),
    ],
)
def test_an_interval_is_said_in_the_fewest_words(start: datetime, end: datetime, shown: str) -> None:
    """Whole days as days; the end of a day as 24:00."""
    assert interval_label(start, end) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.6, "1 min"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (None, "–"),
    ],
)
def test_durations(seconds: float | None, shown: str) -> None:
    """As a person says them."""
    assert duration(seconds) == shown


def _sum(amounts: list[Amount]) -> Amount:
    tally = Tally()
    for amount in amounts:
        tally.add(amount, ())
    return tally.total()


def test_nan_is_the_largest_measure_in_whatever_order_rows_come() -> None:
    """As Spark orders them: unknown, numbers, NaN."""
    ordered = [Amount(None), Amount(-1.0), Amount(2.0), Amount(math.inf), Amount(math.nan)]
    for amounts in (ordered, ordered[::-1]):
        tally = Tally()
        for amount in amounts:
            tally.add(amount, ())
        assert tally.value(add=False) is ordered[-1]
        assert sorted(amounts, key=lambda amount: amount.order) == ordered
