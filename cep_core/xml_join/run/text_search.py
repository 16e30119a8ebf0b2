"""Texts that are looked for in many documents at once, before any is parsed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from trendlake.cep_core.documents.predicates import normalised
from trendlake.cep_core.events.array_types import Bools, Int32s, Int64s, UInt8s, UInt64s
from trendlake.cep_core.xml_join.kernels.search import search

MOST_BYTES = 48
"""Bytes of a text that are looked for: its first ones."""
MOST_STATES = 1 << 14
"""States of an automaton: 16 MiB."""
_SPACES, _MARKUP = b" \t\r\n", b"<&"
_WORD = 64


class TextSearch:
    """An automaton for texts, each with its marks, a number of `words` * 64 bits. Spaces, tabs, CR and LF count as one
    space wherever they stand, as `normalize-space`, attributes and line ends change them.

    Raises ValueError where the texts are too many.
    """

    def __init__(self, texts: Mapping[str, int], words: int) -> None:
        children: list[dict[int, int]] = [{}]
        marks, bytes_of_state = [0], [-1]
        for text, mark in texts.items():
            state = 0
            for byte in normalised(text).encode("utf-8", "surrogatepass")[:MOST_BYTES]:
                if byte not in children[state]:
                    children[state][byte] = len(children)
                    children.append({})
                    marks.append(0)
                    bytes_of_state.append(byte)
                state = children[state][byte]
            marks[state] |= mark
            if len(children) > MOST_STATES:
                raise ValueError("many texts")
        table = _transitions(children, marks, bytes_of_state)
        order = np.argsort(np.array([mark != 0 for mark in marks]), kind="stable")
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        self.words = words
        self.starts = _starts(table, marks)
        self.accepting = sum(mark == 0 for mark in marks)
        self.table = place[table[order]].reshape(-1)
        full = (1 << _WORD) - 1
        ends = [[(marks[state] >> (_WORD * word)) & full for word in range(words)] for state in order[self.accepting :]]
        self.bits = np.array(ends, np.uint64).reshape(-1, words)

    def marks(self, documents: pa.Array, wanted: Bools) -> UInt64s:
        """(documents, words) uint64: the marks of all texts in the string value of the document or in an attribute, and
        perhaps others; 0 for documents that are not `wanted`. `documents`: texts."""
        kind = np.int64 if pa.types.is_large_string(documents.type) else np.int32
        _, offsets, data = documents.buffers()
        out = np.zeros((len(documents), self.words), np.uint64)
        if not len(documents):
            return out
        ends: Int64s = np.frombuffer(offsets, kind)[documents.offset :][: len(documents) + 1].astype(np.int64)
        raw: UInt8s = np.frombuffer(data if data is not None else b"", np.uint8)
        raw.flags.writeable = False  # some of Arrow's buffers are, some not: the kernel is compiled for one kind
        search(raw, ends, wanted, self.table, self.accepting, self.starts, self.bits, out)
        return out


def _starts(table: Int32s, marks: list[int]) -> Bools:
    """By byte * 256 + the byte after it whether a text or markup may begin there: elsewhere state 0 stays."""
    starts: Bools = np.zeros((256, 256), np.bool_)
    for byte in np.flatnonzero(table[0]).tolist():
        first = int(table[0, byte])
        starts[byte] = (table[first] != table[0]) | (marks[first] != 0)
        starts[byte, list(_MARKUP)] = True
    starts[list(_MARKUP)] = True
    return starts.reshape(-1)


def _transitions(children: list[dict[int, int]], marks: list[int], bytes_of_state: list[int]) -> Int32s:
    """(states, 256): the state after each byte. `marks` of a state get those of the texts that end there."""
    table: Int32s = np.zeros((len(children), 256), np.int32)
    fallback = [0] * len(children)
    queue = [0]
    for state in queue:
        table[state] = table[fallback[state]]
        for byte, child in children[state].items():
            fallback[child] = int(table[fallback[state], byte]) if state else 0
            marks[child] |= marks[fallback[child]]
            table[state, byte] = child
            queue.append(child)
        after_space = bytes_of_state[state] == _SPACES[0]
        table[state, list(_SPACES)] = state if after_space else table[state, _SPACES[0]]
    return table
