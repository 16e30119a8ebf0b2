"""Words of YAML as values, and values as words.

The core schema of YAML 1.2 (`no` is a text, `0123` is 123), with what files may hold beyond it: dates and times,
`1_000`, `0b101` and signs before `0x` and `0o`.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from io import StringIO
from typing import Any

import yaml

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?(?:0b[01][01_]*|0o[0-7][0-7_]*|0x[0-9a-fA-F][0-9a-fA-F_]*|[0-9][0-9_]*)")
_BASES = {"b": 2, "o": 8, "x": 16}
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_IN_DOUBLE_QUOTES = re.compile("['\n\x85\u2028\u2029]")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:[Tt]|[ \t]+)([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]*))?"
    r"(?:[ \t]*(?:Z|([-+])([0-9]{1,2})(?::([0-9]{2}))?))?"
)


def value_of(word: str) -> Any:
    """The value of a plain word. Raises ValueError or OverflowError for a date or time that is none (2024-02-30)."""
    if word[:1] not in "-+.0123456789":
        return _WORDS.get(word, word)
    if _INTEGER.fullmatch(word):
        digits = word.replace("_", "")
        return int(digits, _BASES.get(digits.lstrip("-+")[1:2], 10))
    if _FLOAT.fullmatch(word):
        return float(word.replace("_", ""))
    if _NO_NUMBER.fullmatch(word):
        return float(word.replace(".", ""))
    if match := _DATE.fullmatch(word):
        return date(*map(int, match.groups()))
    if match := _TIME.fullmatch(word):
        return _time(word, match)
    return _WORDS.get(word, word)  # the empty one is null


def _time(word: str, match: re.Match[str]) -> datetime:
    """A time: of the zone UTC, of an offset, or without; the seventh digit of a second rounds the sixth."""
    *whole, fraction, sign, hours, minutes = match.groups()
    zone = UTC if word.endswith("Z") else None
    if sign:
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        zone = timezone(-offset if sign == "-" else offset)
    tenths = int(f"{fraction or 0:0<7}"[:7])
    year, month, day, hour, minute, second = map(int, whole)
    return datetime(year, month, day, hour, minute, second, tzinfo=zone) + timedelta(microseconds=(tenths + 5) // 10)


class _Writer(yaml.SafeDumper):  # type: ignore[misc]
    """Writes words that `value_of` reads as the same values."""

    null = ""
    lists_indented = False

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is not yaml.ScalarNode or not implicit[0]:
            return super().resolve(kind, value, (False, False))
        if value in ("<<", "="):
            return "tag:yaml.org,2002:value"  # signs to other readers
        try:
            return _TAGS[type(value_of(value))]
        except (ValueError, OverflowError):
            return _TAGS[date]  # a reader takes it for one

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def choose_scalar_style(self) -> str:
        style: str = super().choose_scalar_style()
        return '"' if style == "'" and _IN_DOUBLE_QUOTES.search(self.event.value) else style

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless and not self.lists_indented)


_TAGS = {
    str: "tag:yaml.org,2002:str",
    type(None): "tag:yaml.org,2002:null",
    bool: "tag:yaml.org,2002:bool",
    int: "tag:yaml.org,2002:int",
    float: "tag:yaml.org,2002:float",
    date: "tag:yaml.org,2002:timestamp",
    datetime: "tag:yaml.org,2002:timestamp",
}
_INFINITE = {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}
_Writer.add_representer(type(None), lambda writer, _: writer.represent_scalar(_TAGS[type(None)], writer.null))
_Writer.add_representer(
    float, lambda writer, number: writer.represent_scalar(_TAGS[float], _INFINITE.get(repr(number), repr(number)))
)


def yaml_text(data: Any, width: int = 4096, *, lists_indented: bool = False, inner_on_one_line: bool = False) -> str:
    """Mappings and lists as the text of a file, keys in their order. `lists_indented`: lists stand deeper than their
    key; `inner_on_one_line`: those that hold no others are `[...]` and `{...}`."""
    text = StringIO()
    style = None if inner_on_one_line else False
    writer = _Writer(text, width=width, allow_unicode=True, sort_keys=False, default_flow_style=style)
    writer.lists_indented, writer.null = lists_indented, "null" if inner_on_one_line else ""
    writer.open()
    writer.represent(data)
    writer.close()
    return text.getvalue()
