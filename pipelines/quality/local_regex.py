"""Which regular expressions mean the same to Java, which Spark asks, and to RE2, which Arrow asks.

Only what both document alike is let through: characters, classes of characters and ranges, `.`, `^`, `$`, groups,
alternatives, and quantifiers, each of one thing. Intersections, nested classes, flags, look-around, references,
possessive quantifiers, Unicode classes, and quantified groups that may be empty are Spark's alone to read
(java.util.regex.Pattern; RE2's syntax page).
"""

from __future__ import annotations

import re
from itertools import pairwise

LINE_ENDS = "[\n\x0b\r\x85\u2028\u2029]"
"""In a text with one of them `.`, `$` and `\\s` may differ."""
_CHARACTER = r"[^\W_]|[ _!\"#%',/:;<=>@`~&\-]"
_ESCAPED = r"\\[dwsDWS.\-\[\](){}*+?|^$/\\]"
_TOKENS = re.compile(
    rf"(?P<class>\[\^?(?:{_ESCAPED}|[^\[\]\\&^])+\])|(?P<open>\((?:\?:)?)|(?P<close>\))|(?P<or>\|)|(?P<anchor>[\^$])"
    rf"|(?P<quantifier>(?:[*+?]|\{{\d{{1,3}}(?:,(?:\d{{1,3}})?)?\}})\??)|(?P<one>{_ESCAPED}|\.|{_CHARACTER})"
)
_MEMBERS = re.compile(rf"{_ESCAPED}|.", re.DOTALL)


def means_the_same(pattern: str) -> bool:
    """Whether both find `pattern` in the same texts, those without `LINE_ENDS`."""
    groups: list[bool] = [False]  # of each open group whether it may be quantified: not where a part of it may be empty
    plain: list[bool] = []
    before, offset = "start", 0
    while offset < len(pattern):
        token = _TOKENS.match(pattern, offset)
        if token is None:
            return False
        kind, text = str(token.lastgroup), token[0]
        if kind == "class" and not _plain_class(text):
            return False
        if kind == "open":
            groups.append(True)
        elif kind == "close":
            if len(groups) == 1:
                return False
            plain.append(groups.pop() and before not in ("open", "or"))
            groups[-1] &= plain[-1]
        elif kind == "quantifier":
            if not (before in ("one", "class") or (before == "close" and plain[-1])) or not _counts_up(text):
                return False
            groups[-1] = False
        elif kind == "anchor" or (kind == "or" and before in ("open", "or")):
            groups[-1] = False
        before, offset = kind, token.end()
    return len(groups) == 1


def _plain_class(text: str) -> bool:
    """Whether a class has single characters and ranges of letters or of digits only."""
    members = _MEMBERS.findall(text[1:-1].removeprefix("^"))
    if not all(one.isprintable() for one in members):
        return False
    for at, one in enumerate(members):
        if one == "-" and 0 < at < len(members) - 1:
            low, high = members[at - 1], members[at + 1]
            if not re.fullmatch(r"[a-z]{2}|[A-Z]{2}|[0-9]{2}", low + high) or low > high:
                return False
    # a-c-e: the second hyphen stands for itself in one of the two only
    hyphens = [at for at, one in enumerate(members) if one == "-" and 0 < at < len(members) - 1]
    return all(b - a > 2 for a, b in pairwise(hyphens))


def _counts_up(quantifier: str) -> bool:
    counts = [int(count) for count in re.findall(r"\d+", quantifier)]
    return counts == sorted(counts)
