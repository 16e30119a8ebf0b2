"""Texts of others in Markdown, such as that of Airflow's pages: shown as they are, whatever they hold.

A description, a column's name or a rule may look like a link, a picture, HTML or a table. None of it is one: a page
that is opened must not fetch a picture, and what it shows is what the author wrote.
"""

from __future__ import annotations

import re

_ACTIVE = re.compile(r"[\\`*_\[\]<>&#|~!]")
"""Signs that begin something in Markdown wherever they stand."""
_FIRST = re.compile(r"^(\d*)([-+=.)])")
"""Signs that begin a list or underline a heading at the start of a line, after the number of a list."""
_LEFT_OUT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def plain(text: str) -> str:
    """A text of several lines; empty lines separate its paragraphs."""
    lines = (_LEFT_OUT.sub("\ufffd", line).strip() for line in text.splitlines())
    return "\n".join(_FIRST.sub(r"\1\\\2", _ACTIVE.sub(r"\\\g<0>", line)) for line in lines).strip()


def cell(text: str) -> str:
    """A text in one line, also of a table."""
    return plain(" ".join(text.split()))


def code(name: str) -> str:
    """A name as code, also in a table, where the sign between columns has to be marked."""
    text = _LEFT_OUT.sub("\ufffd", " ".join(name.split())).replace("|", "\\|")
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    room = " " if not text or text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{room}{text}{room}{fence}"


def block(text: str, language: str = "") -> str:
    """A block of code that `text` cannot end: its fence is longer than any in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
