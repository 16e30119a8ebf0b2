"""Which columns of texts look like numbers, so that their order letter by letter is hardly meant."""

from __future__ import annotations

import pyarrow as pa
import pytest

from trendlake.cep_core.events.number_texts import MOST, number_texts


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["8.5", "9.5", "10.5", "nil"], 3),
        (["-", "-", "3", " 4 "], 2),
        (["1,061", "12,5", "-.5e3"], 3),
        (["9", None, ""], 1),
        (["7", *["nil"] * 9], 1),
        (["7", *["nil"] * 10], 0),
        (["007", "8"], 0),
        (["A1", "B2", "12"], 0),
        (["2026-01-05", "2026-01-06"], 0),
        (["nil", "x"], 0),
        ([], 0),
    ],
)
def test_texts_that_look_like_numbers(texts: list[str | None], numbers: int) -> None:
    """Words among numbers do not change it; codes with a zero in front, dates and names are no numbers."""
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        like = number_texts(pa.chunked_array([pa.array(texts, pa.string()).cast(kind)]))
        assert (like.numbers if like else 0) == numbers


def test_columns_of_other_types_are_no_texts() -> None:
    assert number_texts(pa.array([1, 2])) is None


def test_the_first_texts_are_looked_at() -> None:
    """A bounded number, which the message says."""
    like = number_texts(pa.array(["1"] * MOST + ["x"] * (9 * MOST)))
    assert like is not None
    assert str(like) == "10,000 of the first 10,000 values look like numbers, such as '1'"
