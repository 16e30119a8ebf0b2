"""The formats that times of files often have, and those of them that read given texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from itertools import product

import pyarrow as pa

from trendlake.pipelines.contracts.time_formats import ISO, UNIX_MILLIS, UNIX_SECONDS, TimeFormat
from trendlake.pipelines.ingest.readers.refusals import Refusals
from trendlake.pipelines.ingest.readers.times import read_moments, refuse_years

DAYS = (
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%d.%m.%Y",
    "%m.%d.%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%Y%m%d",
    "%m/%d/%y",
    "%d/%m/%y",
    "%d.%m.%y",
    "%m.%d.%y",
    "%d %b %Y",
    "%d %B %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%d/%b/%Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%b %d %Y",
    "%d%b%Y",
)
BETWEEN = (" ", "T", ":", ", ")
CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p", "%I:%M:%S%p", "%H%M", "%H%M%S")
OFFSETS = ("", "%z", " %z")
COMMON = (
    *DAYS,
    *(day + between + clock + offset for day, between, clock, offset in product(DAYS, BETWEEN, CLOCKS, OFFSETS)),
)
"""Formats of directives, those that are more usual first."""
EXAMPLE = datetime(2026, 1, 31, 9, 0, 0, 123456)
SECONDS, MILLIS = (range(10**8, 10**10), range(10**11, 10**13))
"""Numbers that are likely to be times: from 1973 to 2286."""
DIGITS = 19
"""Of numbers at which it is worth to look; Python refuses to read some thousand."""


def common_formats(texts: Sequence[str]) -> list[str]:
    """The common formats that read all of the texts; one of those that read them alike. None for no texts."""
    array = pa.array(texts, pa.string())
    formats = candidates(texts[0]) if texts else []
    return without_alike([one for one in formats if read_all(array, TimeFormat(one)) is not None], texts)


def without_alike(formats: Sequence[str], texts: Sequence[str]) -> list[str]:
    """The formats, which can all read the texts, without those that read them as an earlier one does."""
    array = pa.array(texts, pa.string())
    by_moments: dict[tuple[int | None, ...], str] = {}
    for one in formats:
        moments = read_all(array, TimeFormat(one))
        if moments is not None:
            by_moments.setdefault(tuple(moments.cast(pa.int64()).to_pylist()), one)
    return list(by_moments.values())


def read_all(texts: pa.Array, how: TimeFormat) -> pa.Array | None:
    """The texts as moments; None if one cannot be read."""
    refusals = Refusals(texts)
    moments = refuse_years(read_moments(texts, how, refusals), refusals)
    return None if refusals.count else moments


def candidates(text: str) -> list[str]:
    """The formats that could be those of a text: ISO 8601 alone if it reads it."""
    if read_all(pa.array([text], pa.string()), TimeFormat()) is not None:
        return [ISO]
    likely = {UNIX_SECONDS: SECONDS, UNIX_MILLIS: MILLIS}
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= DIGITS else -1
    unix = [one for one, numbers in likely.items() if number in numbers]
    return unix + _by_outline().get(_outline(text), [])


@lru_cache(maxsize=1)
def _by_outline() -> dict[str, list[str]]:
    """The common formats by the outline of the texts that they read."""
    formats: dict[str, list[str]] = {}
    for one in COMMON:
        for offset in ("Z", "+0100", "-0100", "+01:00", "-01:00") if "%z" in one else ("",):
            formats.setdefault(_outline(EXAMPLE.strftime(one.replace("%z", offset))), []).append(one)
    return formats


def _outline(text: str) -> str:
    """A text with its numbers and words as one character each: `31 Jan 2013 9:05 PM` -> `0 a 0 0:0 a`."""
    text = re.sub(r"[0-9]+", "0", re.sub(r"[a-zA-Z]+", "a", text))
    return re.sub(r"\s+", " ", text)
