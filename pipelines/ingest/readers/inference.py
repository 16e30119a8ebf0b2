"""The types that a contract to begin with gives the columns of a file: those that hold every cell as it is.

A type is proposed only if each cell of the file, read as `pipelines.ingest.readers.cells` does, is the same number, day
or time afterwards. So an id `007`, or of twenty digits, stays a text; an amount that a double would change is a
decimal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.contracts.null_words import USUAL
from pipelines.ingest.readers.cells import DIGITS_OF_A_DOUBLE, MOST_DIGITS, Cells, values_of
from pipelines.ingest.readers.refusals import BadCellsError
from pipelines.ingest.readers.times import MOMENT

FEW_DIGITS = 18
"""Of the decimals that Spark keeps in 64 bits."""
PLAIN_WHOLE = r"^(0|-?[1-9][0-9]*)$"
PLAIN_NUMBER = r"(?i)^(-?(0|[1-9][0-9]*)(\.[0-9]*)?(e[+-]?[0-9]+)?|-?\.[0-9]+|nan|[+-]?inf(inity)?)$"
"""Without zeros in front, which a number would lose."""
WORD = r"(?i)^(true|false)$"
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
SHAPES = {pa.bool_(): WORD, pa.int64(): PLAIN_WHOLE, pa.float64(): PLAIN_NUMBER, pa.date32(): DAY, MOMENT: None}
"""Types that are tried in this order, and what their cells look like."""


@dataclass
class Column:
    """What the cells seen so far allow. `whole`: all are whole numbers; `exact`: doubles hold all; `plain`: none has an
    exponent; `before`, `after`: their digits before and after the point; `truths`: there are truth values of
    JSON."""

    kinds: list[pa.DataType] = field(default_factory=lambda: list(SHAPES))
    cells: int = 0
    whole: bool = True
    exact: bool = True
    plain: bool = True
    before: int = 0
    after: int = 0
    truths: bool = False

    def look(self, cells: Cells, *, json: bool) -> None:
        """Drop the types that do not hold these cells. A text of JSON is no number, whatever it looks like."""
        values = cells.values.drop_null()
        if cells.texts:
            values = pc.utf8_trim_whitespace(values)
            values = values.filter(pc.invert(pc.is_in(values, value_set=pa.array(["", *USUAL]))))
        self.cells += len(values)
        self.truths = self.truths or (len(values) > 0 and pa.types.is_boolean(values.type))
        if not len(values):
            return
        tried = [kind for kind in self.kinds if not (json and cells.texts) or kind in (pa.date32(), MOMENT)]
        self.kinds = [kind for kind in tried if _holds(kind, Cells(values, cells.literal))]
        if pa.float64() in self.kinds:
            self._measure(values)

    def _measure(self, numbers: pa.Array) -> None:
        self.whole = self.whole and _all_match(numbers, PLAIN_WHOLE)
        self.plain = self.plain and _all_match(numbers, r"^-?[0-9]*\.?[0-9]*$")
        digits = pc.utf8_ltrim(pc.replace_substring_regex(numbers, r"(?i)^-|\.|e.*$", ""), "0")
        long = numbers.filter(pc.greater(pc.utf8_length(digits), DIGITS_OF_A_DOUBLE)).to_pylist()
        self.exact = self.exact and all(Decimal(text) == Decimal(repr(float(text))) for text in long)
        if self.plain:
            before = pc.replace_substring_regex(numbers, r"^-|\..*$", "")
            after = pc.replace_substring_regex(numbers, r"^[^.]*\.?", "")
            self.before = max(self.before, pc.max(pc.utf8_length(before)).as_py())
            self.after = max(self.after, pc.max(pc.utf8_length(after)).as_py())

    @property
    def type(self) -> pa.DataType:
        """The first type left that holds every cell as it is."""
        if not self.cells or not self.kinds:
            return pa.string()
        kind = self.kinds[0]
        if kind != pa.float64() or (self.exact and not self.whole):
            return kind
        digits = self.before + self.after
        if not self.plain or self.whole or digits > MOST_DIGITS:
            return pa.string()
        return pa.decimal128(FEW_DIGITS if digits <= FEW_DIGITS else MOST_DIGITS, self.after)


def _holds(kind: pa.DataType, cells: Cells) -> bool:
    """Whether all cells, none of which is NULL, look like the type's and can be read as it."""
    shape = SHAPES[kind]
    if shape is not None and pa.types.is_string(cells.values.type) and not _all_match(cells.values, shape):
        return False
    try:
        values_of(cells, kind, ())
    except BadCellsError:
        return False
    return True


def _all_match(texts: pa.Array, shape: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, shape), min_count=0).as_py())
