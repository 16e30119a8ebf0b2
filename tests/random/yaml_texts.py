"""Texts of YAML, most of them nearly right: signs, words, line ends and odd characters in any order, between brackets,
in lists, in mappings and in blocks of text; and shipped files with such pieces put in.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.conftest import ROOT

SIGNS = (
    "-",
    "- ",
    "?",
    "? ",
    ":",
    ": ",
    ": ",
    "[",
    "]",
    "{",
    "}",
    ",",
    ", ",
    '"',
    "'",
    "#",
    " # c\n",
    "&a ",
    "*a ",
    "!",
)
SIGNS += ("|", ">", "|-\n", ">+\n ", "|2", "%", "@", "`", "!!str ", "<<", "=")
WORDS = ("a", "b", "name", "1", "-1", "0123", "0o17", "1e3", ".inf", "null", "true", "no", "2024-01-02", "2024-02-30")
WORDS += ("A? B", "x > 1 ? 2 : 3", "COUNT(*)", "a:b", "::", "http://x/y", "a#b", '"q\\n"', "'it''s'")
WORDS += ('"a":1', "{a: 1}", "&é 1", "é", "😀", '"\\ud800"', '"\\0"', "9" * 500, '"two\n  lines"', "plain\n  lines")
ENDS = (
    "\n",
    "\n",
    "\n",
    "\n  ",
    "\n  ",
    "\n    ",
    "\n- ",
    "\n  - ",
    "\r\n",
    "\r",
    "\n\n",
    "\n---\n",
    "\n...\n",
    " ",
    "  ",
)
ODD = ("\t", "\x85", "\u2028", "\u2029", "\ufeff", "\x00", "\x0b", "\x7f", "\xa0", "\ud800", "%YAML 1.1\n---\n")
ODD += ("%YAML 1.2\n---\n", "%TAG ! x\n---\n", "[" * 60)
FRAMES = (("", ""), ("k: ", ""), ("k: [", "]"), ("k: {", "}"), ("- ", "\n- z"), ("k:\n  - ", "\nz: 1\n"), ('a: "', '"'))
FRAMES += (("a: |\n  ", "\nb: 1\n"), ("a: >\n  ", "\n"))
SHIPPED = [
    path.read_text() for folder in ("conf/patterns", "examples") for path in sorted((ROOT / folder).rglob("*.yaml"))
]

pieces = st.one_of(*(st.sampled_from(part) for part in (SIGNS, WORDS, ENDS, SIGNS, WORDS, ENDS, ODD)))


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A text, of whatever is like YAML."""
    middle = "".join(draw(st.lists(pieces, min_size=1, max_size=10)))
    if draw(st.booleans()):
        before, after = draw(st.sampled_from(FRAMES))
        return before + middle + after
    text = draw(st.sampled_from(SHIPPED))
    place = draw(st.integers(0, len(text)))
    return text[:place] + draw(pieces) + text[place:]
