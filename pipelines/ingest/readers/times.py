"""Texts and numbers of files as moments, by the format and the time zone that a contract declares.

Arrow parses ISO 8601, and a text of another format is rewritten as that:

    %m/%d/%Y %I:%M %p:    1/31/2026 9:05 PM    ->    2026-01-31T21:05:00

Arrow's own `strptime` is not used: it takes February 30 for March 2, second 60 for the next minute and `13` for the
year 13, and reads no fractions.
"""

from __future__ import annotations

import calendar
import re
from decimal import Decimal
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.events.arrays import numbers
from trendlake.cep_core.events.local_times import UTC, moments_of
from trendlake.pipelines.contracts.time_formats import DIRECTIVE, ISO, UNIX_MILLIS, TimeFormat
from trendlake.pipelines.ingest.readers.refusals import Refusals

MOMENT = pa.timestamp("us", "UTC")
ZONED = r"(Z|[+-]\d{2}:?\d{2})$"
"""How a time ends that says its zone."""
STARTS_WITH_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
DAY_US = 86_400_000_000
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31, in days since 1970: what Spark and Python can hold."""
MONTHS = [name.lower() for name in calendar.month_name[1:]]
PATTERNS = {
    "%Y": "[0-9]{4}",
    "%y": "[0-9]{2}",
    "%m": "[0-9]{1,2}",
    "%d": "[0-9]{1,2}",
    "%H": "[0-9]{1,2}",
    "%I": "1[0-2]|0?[1-9]",
    "%M": "[0-9]{1,2}",
    "%S": "[0-9]{1,2}",
    "%f": "[0-9]{1,6}",
    "%p": "AM|PM",
    "%z": r"Z|[+-][0-9]{2}:?[0-9]{2}",
    "%b": "|".join(name[:3] for name in MONTHS),
    "%B": "|".join(MONTHS),
}
PADDED = {"%m", "%d", "%H", "%I", "%M", "%S"}
"""Numbers that may lack the zero in front, unless they are right next to another directive."""
TWO_DIGITS = {"%I": "1[0-2]|0[1-9]"}


def read_moments(texts: pa.Array, how: TimeFormat, refusals: Refusals) -> pa.Array:
    """Texts without space around them as moments."""
    if how.is_unix:
        return _since_1970(texts, how, refusals)
    return _of_iso(iso_texts(texts, how, refusals), how.zone, refusals)


def iso_texts(texts: pa.Array, how: TimeFormat, refusals: Refusals) -> pa.Array:
    """Texts of a format of directives, rewritten as ISO 8601; a format without an hour gives days. Of texts in ISO 8601
    those that do not begin with a day are refused."""
    if how.format == ISO:  # Arrow would refuse them too, but has to be asked for each
        return refusals.drop(texts, pc.invert(pc.match_substring_regex(texts, STARTS_WITH_DAY)))
    shape, directives = _shape(how.format)
    parts = pc.extract_regex(texts, shape)
    part = {directive: pc.struct_field(parts, _group(directive)) for directive in directives}
    iso = pc.binary_join_element_wise(_year(part), _month(part), _two_digits(part["%d"]), "-")
    if {"%H", "%I"} & part.keys():
        iso = pc.binary_join_element_wise(iso, _clock(part), "T")
    refusals.drop(texts, pc.and_(pc.is_valid(texts), pc.is_null(iso)))
    return iso


def in_zone(local: pa.Array, zone: str, refusals: Refusals) -> pa.Array:
    """Times of the clocks of a zone as moments; of two moments of one time, the earlier. A time that clocks skip is
    refused."""
    local = refuse_years(local, refusals)
    if zone == UTC:
        return local.cast(MOMENT)
    times = numbers(local.cast(pa.int64()), 0)
    micros, skipped = moments_of(times, zone)
    reason = f"does not exist in {zone}, where clocks were set forward over it"
    moments = pa.array(micros, pa.int64(), mask=~numbers(pc.is_valid(local))).cast(MOMENT)
    return refusals.drop(moments, pc.and_(pc.is_valid(local), pa.array(skipped)), reason)


def refuse_years(values: pa.Array, refusals: Refusals) -> pa.Array:
    """The days or moments, without those outside of the years 1 to 9999; values of other types as they are."""
    if pa.types.is_date(values.type):
        days, unit = values.cast(pa.int32()), 1
    elif pa.types.is_timestamp(values.type):
        days, unit = values.cast(pa.int64()), DAY_US
    else:
        return values
    outside = pc.or_(pc.less(days, FIRST_DAY * unit), pc.greater_equal(days, (LAST_DAY + 1) * unit))
    return refusals.drop(values, outside)


def _of_iso(texts: pa.Array, zone: str, refusals: Refusals) -> pa.Array:
    zoned = pc.match_substring_regex(texts, ZONED)
    none = pa.scalar(None, pa.string())
    moments = refusals.convert(pc.if_else(zoned, texts, none), lambda part: part.cast(MOMENT))
    local = refusals.convert(pc.if_else(zoned, none, texts), lambda part: part.cast(pa.timestamp("us")))
    return pc.coalesce(moments, in_zone(local, zone, refusals))


def _since_1970(texts: pa.Array, how: TimeFormat, refusals: Refusals) -> pa.Array:
    """Decimal numbers as moments; none that a microsecond does not hold."""
    digits = 3 if how.format == UNIX_MILLIS else 6
    exact = refusals.convert(texts, lambda part: part.cast(pa.decimal128(25, digits)))
    whole = pc.multiply(exact, pa.scalar(Decimal(10**6 if digits == 6 else 1000)))
    return refusals.convert(whole, lambda part: part.cast(pa.int64()).cast(MOMENT))


@lru_cache(maxsize=100)
def _shape(text: str) -> tuple[str, tuple[str, ...]]:
    """A regular expression for the texts of a format, with a group for each of its directives; and these."""
    shape, end, beside = "", 0, False
    directives = []
    for match in DIRECTIVE.finditer(text):
        directive, following = match[0], text[match.end() : match.end() + 2]
        shape += _literal(text[end : match.start()])
        beside = beside and end == match.start()
        end = match.end()
        if directive == "%%":
            shape, beside = f"{shape}%", False
            continue
        pattern = PATTERNS[directive]
        if directive in PADDED and (beside or following in PATTERNS):
            pattern = TWO_DIGITS.get(directive, "[0-9]{2}")
        shape += f"(?P<{_group(directive)}>{pattern})"
        beside = True
        directives.append(directive)
    return f"(?i)^{shape}{_literal(text[end:])}$", tuple(directives)


def _literal(text: str) -> str:
    return r"\s+".join(map(re.escape, re.split(r"[ \t\n\r\f]+", text)))


def _group(directive: str) -> str:
    """RE2 tells the names of groups apart by case."""
    return directive[1]


def _two_digits(texts: pa.Array) -> pa.Array:
    return pc.utf8_lpad(texts, 2, "0")


def _year(part: dict[str, pa.Array]) -> pa.Array:
    if "%Y" in part:
        return part["%Y"]
    last = part["%y"].cast(pa.string())
    century = pc.if_else(pc.greater_equal(last, "69"), "19", "20")
    return pc.binary_join_element_wise(century, last, "")


def _month(part: dict[str, pa.Array]) -> pa.Array:
    if "%m" in part:
        return _two_digits(part["%m"])
    word = pc.utf8_lower(pc.utf8_slice_codeunits(part["%b" if "%b" in part else "%B"], 0, 3))
    index = pc.index_in(word, value_set=pa.array([name[:3] for name in MONTHS]))
    return pc.take(pa.array([f"{month:02}" for month in range(1, 13)]), index)


def _clock(part: dict[str, pa.Array]) -> pa.Array:
    text = pc.binary_join_element_wise(
        _hour(part),
        _two_digits(part["%M"]) if "%M" in part else "00",
        _two_digits(part["%S"]) if "%S" in part else "00",
        ":",
    )
    if "%f" in part:
        text = pc.binary_join_element_wise(text, part["%f"], ".")
    return pc.binary_join_element_wise(text, pc.utf8_upper(part["%z"]), "") if "%z" in part else text


def _hour(part: dict[str, pa.Array]) -> pa.Array:
    if "%H" in part:
        return _two_digits(part["%H"])
    hour = part["%I"].cast(pa.int8())
    hour = pc.if_else(pc.equal(hour, 12), 0, hour)
    afternoon = pc.equal(pc.utf8_upper(part["%p"]), "PM")
    return _two_digits(pc.add(hour, pc.if_else(afternoon, 12, 0)).cast(pa.string()))
