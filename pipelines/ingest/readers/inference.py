"""The types that a contract to begin with gives the columns of a file: those that hold every cell as it is.

A type is proposed only if each cell of the file, read as `pipelines.ingest.readers.cells` does, is the same number, day
or time afterwards. So an id `007`, or of twenty digits, stays a text; an amount that a double would change is a
decimal.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from trendlake.pipelines.contracts.null_words import USUAL
from trendlake.pipelines.ingest.readers.cells import DIGITS_OF_A_DOUBLE, MOST_DIGITS, Cells, values_of
from trendlake.pipelines.ingest.readers.refusals import BadCellsError, shown
from trendlake.pipelines.ingest.readers.times import MOMENT

FEW_DIGITS = 18
"""Of the decimals that Spark keeps in 64 bits."""
PLAIN_WHOLE = r"^(0|-?[1-9][0-9]*)$"
PLAIN_NUMBER = r"(?i)^(-?(0|[1-9][0-9]*)(\.[0-9]*)?(e[+-]?[0-9]+)?|-?\.[0-9]+|nan|[+-]?inf(inity)?)$"
"""Without zeros in front, which a number would lose."""
WORD = r"(?i)^(true|false)$"
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
SHAPES = {pa.bool_(): WORD, pa.int64(): PLAIN_WHOLE, pa.float64(): PLAIN_NUMBER, pa.date32(): DAY, MOMENT: None}
"""Types that are tried in this order, and what their cells look like."""


NUMBERS, WHOLES, TRUTHS, DAYS, TIMES = "numbers", "whole numbers", "booleans", "days", "times"
LOOKS = {
    NUMBERS: PLAIN_NUMBER,
    WHOLES: PLAIN_WHOLE,
    TRUTHS: WORD,
    DAYS: DAY,
    TIMES: r"^[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T].*)?$",
}
"""The shape of cells, by a rule that takes no time; the types' own rules decide."""
NOTHING = r"^\b$"
"""A shape that no text has."""
FEW_WORDS = 20
"""Different cells that a note may be about."""
COMMAS = r"^-?[0-9]+([.,][0-9]{3})*,[0-9]+$|^-?[0-9]{1,3}(,[0-9]{3})+\.[0-9]*$"
"""Numbers as many countries write them, or with thousands separated."""
SAMPLE = 100
"""How many cells are examined for commas."""


@dataclass
class Misfits:
    """Cells that do not look like what the others do: `count` of them, `words` and how often each occurs; `fits`: the
    others. `many`: they have more different texts than a note is about, and are not counted further. `first`: of the
    first block that has any, the first ones."""

    fits: int = 0
    count: int = 0
    words: Counter[str] = field(default_factory=Counter)
    many: bool = False
    first: pa.Array | None = None

    def look(self, texts: pa.Array, shape: str) -> None:
        if self.many:
            return
        others = texts.filter(pc.invert(pc.match_substring_regex(texts, shape)))
        self.fits += len(texts) - len(others)
        if self.first is None and len(others):
            self.first = others[:SAMPLE]
        self.count += len(others)
        self.many = pc.count_distinct(others).as_py() > FEW_WORDS
        if not self.many:
            self.words.update(_counted(others))
            self.many = len(self.words) > FEW_WORDS

    @property
    def few(self) -> bool:
        """Whether the others decide by their number, or all of these are one text."""
        return not self.many and self.fits > 0 and (self.count <= self.fits or len(self.words) == 1)


@dataclass(frozen=True)
class Reason:
    """Why a column has a wide type: `count` (None: some) of `cells` are `what`; `words`: these, and how often."""

    what: str
    count: int | None
    cells: int
    words: Counter[str]

    @property
    def null_words(self) -> tuple[str, ...]:
        """The cells, where they may be words for NULL: none has a digit. Else none."""
        none = any(char.isdigit() for word in self.words for char in word)
        return () if none else tuple(word for word, _ in self.words.most_common())

    def __str__(self) -> str:
        listed = ", ".join(f"{_plain(word)} ({count:,})" for word, count in self.words.most_common(3))
        more = f", and {len(self.words) - 3:,} others" if len(self.words) > 3 else ""
        zeros = self.words and all(re.match("-?0[0-9]", word) for word in self.words)
        lost = ", whose zeros a number would lose" if zeros else ""
        count = "some" if self.count is None else f"{self.count:,}"
        return f"{count} of {self.cells:,} {self.what}{f': {listed}{more}' if listed else ''}{lost}"


@dataclass
class Column:
    """The types that the cells seen so far allow. `words`: texts that mean NULL, in addition to the usual ones;
    `nulls`: those of both that occur; `whole`: all are whole numbers; `exact`: doubles hold all, but `inexact`;
    `plain`: none has an exponent; `before`, `after`: their digits before and after the point; `truths`: there are truth
    values of JSON; `misfits`: of each shape the cells that do not look like it."""

    words: tuple[str, ...] = ()
    nulls: Counter[str] = field(default_factory=Counter)
    kinds: list[pa.DataType] = field(default_factory=lambda: list(SHAPES))
    cells: int = 0
    whole: bool = True
    exact: bool = True
    plain: bool = True
    before: int = 0
    after: int = 0
    truths: bool = False
    inexact: int = 0
    misfits: dict[str, Misfits] = field(default_factory=lambda: {name: Misfits() for name in LOOKS})

    def look(self, cells: Cells, *, json: bool) -> None:
        """Drop the types that do not hold these cells. A text of JSON is no number, whatever it looks like."""
        values = cells.values.drop_null()
        if cells.texts:
            values = pc.utf8_trim_whitespace(values)
            nothing = pc.is_in(values, value_set=pa.array(["", *USUAL, *self.words]))
            self.nulls.update(_counted(values.filter(pc.and_(nothing, pc.not_equal(values, "")))))
            values = values.filter(pc.invert(nothing))
        self.cells += len(values)
        self.truths = self.truths or (len(values) > 0 and pa.types.is_boolean(values.type))
        if not len(values):
            return
        tried = [kind for kind in self.kinds if not (json and cells.texts) or kind in (pa.date32(), MOMENT)]
        self.kinds = [kind for kind in tried if _holds(kind, Cells(values, cells.literal))]
        if pa.types.is_string(values.type):
            for name, misfits in self.misfits.items():
                misfits.look(values, NOTHING if json and cells.texts and name not in (DAYS, TIMES) else LOOKS[name])
        if pa.float64() in self.kinds:
            self._measure(values)

    def _measure(self, numbers: pa.Array) -> None:
        self.whole = self.whole and _all_match(numbers, PLAIN_WHOLE)
        self.plain = self.plain and _all_match(numbers, r"^-?[0-9]*\.?[0-9]*$")
        digits = pc.utf8_ltrim(pc.replace_substring_regex(numbers, r"(?i)^-|\.|e.*$", ""), "0")
        long = numbers.filter(pc.greater(pc.utf8_length(digits), DIGITS_OF_A_DOUBLE)).to_pylist()
        self.inexact += sum(Decimal(text) != Decimal(repr(float(text))) for text in long)
        self.exact = not self.inexact
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

    @property
    def reason(self) -> Reason | None:
        """Why the column has its type and no narrower one, where a few cells decide it."""
        kind, near = self.type, self.misfits
        if kind == pa.string():
            fits = [near[name].fits for name in (NUMBERS, TRUTHS, TIMES)]
            name = (NUMBERS, TRUTHS, TIMES)[fits.index(max(fits))]
            if near[name].few and near[name].count:
                return Reason(f"cells are no {name}", near[name].count, self.cells, near[name].words)
            if near[NUMBERS].fits == self.cells > 0:
                return Reason("cells have more digits than a number holds", None, self.cells, Counter())
            first = near[NUMBERS].first
            if first is not None and _all_match(first, COMMAS):
                what = f"cells are numbers with commas, such as {first[0]}; a number is written with a point"
                return Reason(what, None, self.cells, Counter())
        elif pa.types.is_decimal(kind) and self.inexact * 20 <= self.cells:
            return Reason("cells have more digits than a double holds", self.inexact, self.cells, Counter())
        elif kind in (pa.float64(), MOMENT):
            other = near[WHOLES if kind == pa.float64() else DAYS]
            if other.few and 0 < other.count * 20 <= self.cells:
                what = WHOLES if kind == pa.float64() else DAYS
                return Reason(f"cells are no {what}", other.count, self.cells, other.words)
        return None


def _plain(word: str) -> str:
    """A cell in a list: in quotes where it would not be seen as one."""
    quoted = shown(pa.array([word]), 0)
    return quoted[1:-1] if word and not set(word) & set(" ,():'") and quoted == f"'{word}'" else quoted


def _counted(texts: pa.Array) -> dict[str, int]:
    return {item["values"]: item["counts"] for item in pc.value_counts(texts).to_pylist()}


def _holds(kind: pa.DataType, cells: Cells) -> bool:
    """Whether all cells, without a NULL among them, look like the type's and can be read as it."""
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
