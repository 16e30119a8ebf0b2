"""Whether the texts of a column look like numbers: then their order, letter by letter, is not that of the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

MOST = 10_000
"""Texts that are looked at: the first ones."""
NUMBER = r"^\s*[+-]?([0-9]+([.,][0-9]+)*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
CODE = r"^\s*0[0-9]"
"""A zero before another digit: a code such as 007, which is no number."""


@dataclass(frozen=True)
class NumberTexts:
    """Of `texts` that were looked at, `numbers` look like numbers. `number`: one of these; `other`: a text that does
    not, None where all do."""

    texts: int
    numbers: int
    number: str
    other: str | None

    def __str__(self) -> str:
        others = "" if self.other is None else f", and others do not, such as {self.other!r}"
        which = f"the first {MOST:,}" if self.texts == MOST else f"{self.texts:,}"
        return f"{self.numbers:,} of {which} values look like numbers, such as {self.number!r}{others}"


def number_texts(column: Any) -> NumberTexts | None:
    """The numbers that the first texts of an Arrow column look like; None where the column holds no texts, or they do
    not look like numbers: half of those with a digit, and a tenth of all, must, and none may be a code such as 007."""
    try:
        texts = _first_texts(column)
    except pa.ArrowInvalid:  # bytes that are no UTF-8
        return None
    if texts is None or not len(texts):
        return None
    like = pc.match_substring_regex(texts, NUMBER)
    numbers = pc.sum(like).as_py()
    digits = pc.sum(pc.match_substring_regex(texts, "[0-9]")).as_py()
    codes = pc.any(pc.match_substring_regex(texts, CODE)).as_py()
    if codes or not numbers or 2 * numbers < digits or 10 * numbers < len(texts):
        return None
    others = texts.filter(pc.invert(like))
    other = others[0].as_py() if len(others) else None
    return NumberTexts(len(texts), numbers, texts.filter(like)[0].as_py().strip(), other)


def _first_texts(column: Any) -> pa.Array | None:
    first = column.slice(0, MOST)
    first = first.combine_chunks() if isinstance(first, pa.ChunkedArray) else first
    if isinstance(first, pa.ChunkedArray):
        first = pa.concat_arrays(first.chunks) if first.num_chunks else pa.array([], first.type)
    if pa.types.is_dictionary(first.type):
        first = first.dictionary_decode()
    kind = first.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        return None
    texts = first.cast(pa.string()).drop_null()
    return texts.filter(pc.not_equal(pc.utf8_trim_whitespace(texts), ""))
