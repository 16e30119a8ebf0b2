"""Search for many texts in the character data of XML documents: one pass over bytes, no tree.

The texts are states of an automaton (Aho and Corasick 1975) over bytes. Markup is skipped, references and CDATA
are read as the text that they are, so that the string value of an element is an unbroken part of what the automaton
reads. An attribute's value is read by itself. A document that is not understood counts as having every text.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trendlake.cep_core import compiled
from trendlake.cep_core.events.array_types import Bools, Int32s, Int64s, UInt8s, UInt64s

_BANG, _QUOTE, _HASH, _AMPERSAND, _APOSTROPHE = ord("!"), ord('"'), ord("#"), ord("&"), ord("'")
_SEMICOLON, _LESS, _GREATER, _QUESTION, _DASH, _BRACKET = ord(";"), ord("<"), ord(">"), ord("?"), ord("-"), ord("]")
_SMALL_X, _LAST_POINT = ord("x"), 0x10FFFF
_STRIDE = 8
_EVERY = np.uint64(0xFFFFFFFFFFFFFFFF)


@compiled.expanded
def _has(data: Any, at: Any, end: Any, text: Any) -> Any:
    if at + len(text) > end:
        return False
    same = True
    for i in range(len(text)):
        same &= data[at + i] == text[i]
    return same


@compiled.part
def _after(data: Any, at: Any, end: Any, text: Any) -> Any:
    """The place after the next `text`, -1 where there is none."""
    while at + len(text) <= end:
        if _has(data, at, end, text):
            return at + len(text)
        at += 1
    return -1


@compiled.part
def _reference(data: Any, at: Any, end: Any) -> Any:
    """The code point of the reference that begins at `at`, and the place after it; -1 for one that is not known."""
    if _has(data, at, end, b"&amp;"):
        return _AMPERSAND, at + 5
    if _has(data, at, end, b"&lt;"):
        return _LESS, at + 4
    if _has(data, at, end, b"&gt;"):
        return _GREATER, at + 4
    if _has(data, at, end, b"&quot;"):
        return _QUOTE, at + 6
    if _has(data, at, end, b"&apos;"):
        return _APOSTROPHE, at + 6
    if not _has(data, at, end, b"&#"):
        return -1, at
    at += 2
    base = 10
    if at < end and data[at] == _SMALL_X:
        base, at = 16, at + 1
    point, first = 0, at
    while at < end and data[at] != _SEMICOLON:
        digit = -1
        if 48 <= data[at] <= 57:
            digit = data[at] - 48
        elif base == 16 and 97 <= (data[at] | 32) <= 102:
            digit = (data[at] | 32) - 87
        point = point * base + digit
        if digit < 0 or point > _LAST_POINT:
            return -1, at
        at += 1
    if at in (end, first):
        return -1, at
    return point, at + 1


@compiled.expanded
def _fed(state: Any, byte: Any, table: Any, accepting: Any, bits: Any, row: Any) -> Any:
    state = table[(state << 8) | byte]
    if state >= accepting:
        for word in range(bits.shape[1]):
            row[word] |= bits[state - accepting, word]
    return state


@compiled.part
def _fed_point(state: Any, point: Any, table: Any, accepting: Any, bits: Any, row: Any) -> Any:
    """One character, as its bytes in UTF-8."""
    if point < 0x80:
        return _fed(state, point, table, accepting, bits, row)
    if point < 0x800:
        state = _fed(state, 0xC0 | (point >> 6), table, accepting, bits, row)
    else:
        if point < 0x10000:
            state = _fed(state, 0xE0 | (point >> 12), table, accepting, bits, row)
        else:
            state = _fed(state, 0xF0 | (point >> 18), table, accepting, bits, row)
            state = _fed(state, 0x80 | ((point >> 12) & 63), table, accepting, bits, row)
        state = _fed(state, 0x80 | ((point >> 6) & 63), table, accepting, bits, row)
    return _fed(state, 0x80 | (point & 63), table, accepting, bits, row)


@compiled.part
def _tag(data: Any, at: Any, end: Any, table: Any, accepting: Any, bits: Any, row: Any) -> Any:
    """Reads the values of the attributes of the tag that begins at `at`; the place after it, -1 if it has no end."""
    while at < end:
        quote = data[at]
        at += 1
        if quote == _GREATER:
            return at
        if quote in (_QUOTE, _APOSTROPHE):
            state = 0
            while at < end and data[at] != quote:
                if data[at] == _AMPERSAND:
                    point, at = _reference(data, at, end)
                    if point < 0:
                        return -1
                    state = _fed_point(state, point, table, accepting, bits, row)
                else:
                    state = _fed(state, data[at], table, accepting, bits, row)
                    at += 1
            if at == end:
                return -1
            at += 1
    return -1


@compiled.expanded
def _next_start(data: Any, at: Any, end: Any, starts: Any) -> Any:
    """The first place from `at` on where a text or markup may begin, or the last byte. No step waits for the one
    before: five times as fast as the automaton."""
    while at + _STRIDE < end:
        any_starts, byte = False, data[at]
        for i in range(1, _STRIDE + 1):
            after = data[at + i]
            any_starts |= starts[(byte << 8) | after]
            byte = after
        if any_starts:
            break
        at += _STRIDE
    while at + 1 < end and not starts[(data[at] << 8) | data[at + 1]]:
        at += 1
    return at


@compiled.part
def _document(data: Any, at: Any, end: Any, table: Any, accepting: Any, starts: Any, bits: Any, row: Any) -> Any:
    """Whether the document was understood."""
    state = 0
    while at < end:
        if state == 0:
            at = _next_start(data, at, end, starts)
        byte = data[at]
        if byte != _LESS and byte != _AMPERSAND:
            state = _fed(state, byte, table, accepting, bits, row)
            at += 1
        elif byte == _AMPERSAND:
            point, at = _reference(data, at, end)
            if point < 0:
                return False
            state = _fed_point(state, point, table, accepting, bits, row)
        elif at + 1 == end or (data[at + 1] != _BANG and data[at + 1] != _QUESTION):
            at += 1
            while at < end and data[at] != _GREATER and data[at] != _QUOTE and data[at] != _APOSTROPHE:
                at += 1
            if at < end and data[at] == _GREATER:  # most tags have no attribute
                at += 1
            else:
                at = _tag(data, at, end, table, accepting, bits, row)
        elif _has(data, at, end, b"<![CDATA["):
            last = _after(data, at + 9, end, b"]]>")
            for place in range(at + 9, last - 3):
                state = _fed(state, data[place], table, accepting, bits, row)
            at = last
        elif _has(data, at, end, b"<!--"):
            at = _after(data, at + 4, end, b"-->")
        elif _has(data, at, end, b"<?"):
            at = _after(data, at + 2, end, b"?>")
        else:
            return False
        if at < 0:
            return False
    return True


@compiled.entry
def search(
    data: UInt8s,
    offsets: Int64s,
    wanted: Bools,
    table: Int32s,
    accepting: int,
    starts: Bools,
    bits: UInt64s,
    out: UInt64s,
) -> None:
    """Document i is `data[offsets[i] : offsets[i + 1]]`, UTF-8. `table`: the next state, by state * 256 + byte; state
    `accepting` and those after it have a text at their end: the bits `bits[state - accepting]` (words). `starts`: by
    byte * 256 + the byte after it whether a text or markup may begin there. Writes the bits of all texts of each
    `wanted` document into `out` (documents, words); all bits if the document is not understood."""
    for i in range(len(offsets) - 1):
        if wanted[i] and not _document(data, offsets[i], offsets[i + 1], table, accepting, starts, bits, out[i]):
            for word in range(out.shape[1]):
                out[i, word] = _EVERY
