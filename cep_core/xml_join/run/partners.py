"""Which documents may be in an answer with one of a few documents that have changed.

An answer needs equal values in both documents, and a value is a part of a document's text. So the values of the changed
documents are looked for in all others, before any of these is parsed.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trendlake.cep_core.documents.predicates import normalised
from trendlake.cep_core.events.array_types import Bools, Int64s, UInt64s
from trendlake.cep_core.xml_join.compile.plan import Value, XmlJoinPlan
from trendlake.cep_core.xml_join.run.relations import Relations, relations
from trendlake.cep_core.xml_join.run.text_search import TextSearch

MOST_CHANGED = 64
"""Changed documents; of more nearly every document is a partner."""
MOST_MARKS, MOST_NEEDS = 256, 2_000
"""Sets of values of all changed documents; sets of these that make an answer."""
SAMPLE = 256
"""Documents that say which values are rare: of a batch the first ones."""
_WORD = 64


class Partners:
    """Finds the documents that may be in an answer with one of `changed`, documents that keep the rules of XML.

    Raises ValueError where any document may be.
    """

    def __init__(self, plan: XmlJoinPlan, changed: pa.Array) -> None:
        if len(changed) > MOST_CHANGED:
            raise ValueError("many documents have changed")
        needs = _Needs(plan, relations(plan, changed, pa.nulls(len(changed), pa.string())), len(changed))
        if 0 in needs.wanted or len(needs.marks) > MOST_MARKS or len(needs.wanted) > MOST_NEEDS:
            raise ValueError("values that any document may have")
        self.wanted = sorted(need for need in needs.wanted if not _implied(need, needs.wanted))
        self.words = max(1, -(-len(needs.marks) // _WORD))
        self.texts: dict[str, int] = {}
        for values, mark in needs.marks.items():
            for value in values:
                self.texts[value] = self.texts.get(value, 0) | mark
        self.search = TextSearch(self.texts, self.words)
        self.bits = _bits(self.wanted, self.words)
        self._searches: dict[int, TextSearch] = {}

    def among(self, documents: pa.Array, asked: Bools) -> Bools:
        """Of each of `documents` (texts) that is `asked` about whether it may be a partner; False for the others.

        The values that a few of them show to be rare are looked for first, as many as every answer needs one of, and
        all values in the documents that have a rare one: a common value costs a step of the automaton for each byte.
        """
        may: Bools = np.zeros(len(documents), np.bool_)
        if not self.wanted:
            return may
        places = np.flatnonzero(asked)
        few = _mask(places[:SAMPLE], len(documents))
        marks = self.search.marks(documents, few)
        if len(places) > SAMPLE:
            rare = self._rare(marks[few])
            rest = asked & ~few & self._searched_for(rare).marks(documents, asked & ~few).any(axis=1)
            marks |= self.search.marks(documents, rest)
        some = np.flatnonzero(marks.any(axis=1))
        different, which = np.unique(marks[some], axis=0, return_inverse=True)
        enough = np.zeros(len(different), np.bool_)
        for need in self.bits:
            enough |= ((different & need) == need).all(axis=1)
        may[some] = enough[which.reshape(-1)]
        return may

    def _rare(self, seen: UInt64s) -> int:
        """A set of marks that has one mark of each need: rare ones, judged by the marks of some documents."""
        shifts = np.arange(_WORD, dtype=np.uint64)
        times = ((seen[:, :, None] >> shifts) & np.uint64(1)).sum(axis=0, dtype=np.int64).reshape(-1).tolist()
        chosen = 0
        for need in self.wanted:
            if not need & chosen:
                chosen |= 1 << min((n for n in range(need.bit_length()) if need >> n & 1), key=lambda n: times[n])
        return chosen

    def _searched_for(self, marks: int) -> TextSearch:
        search = self._searches.get(marks)
        if search is None:
            texts = {text: mark & marks for text, mark in self.texts.items() if mark & marks}
            search = self._searches[marks] = TextSearch(texts, self.words)
        return search


def _bits(needs: list[int], words: int) -> UInt64s:
    """(needs, words): 64 marks a word, the first ones first."""
    full = (1 << _WORD) - 1
    rows = [[need >> (_WORD * word) & full for word in range(words)] for need in needs]
    return np.array(rows, np.uint64).reshape(-1, words)


def _mask(places: Int64s, length: int) -> Bools:
    mask: Bools = np.zeros(length, np.bool_)
    mask[places] = True
    return mask


def _implied(need: int, needs: set[int]) -> bool:
    """Whether a document that has what `need` asks for has what another asks for."""
    return any(other != need and need & other == other for other in needs)


class _Needs:
    """The values that a partner of a changed document has. `wanted`: sets of marks; a partner has all marks of one of
    them. `marks`: the mark (a bit) of each set of values; a partner with the mark has one of the values."""

    def __init__(self, plan: XmlJoinPlan, given: Relations, documents: int) -> None:
        self.plan, self.given = plan, given
        self.marks: dict[frozenset[str], int] = {}
        self.wanted: set[int] = set()
        self._of_value: dict[tuple[int, int, str], int | None] = {}
        asked: set[tuple[int, frozenset[Value]]] = set()
        for join in plan.joins:
            left, right = plan.sides[join.left], plan.sides[join.right]
            asked.add((join.left, frozenset(left.keys[i] for i, _ in join.pairs)))
            asked.add((join.right, frozenset(right.keys[j] for _, j in join.pairs)))
        for side, keys in asked:
            for document in range(documents):
                need = self._need(document, plan.sides[side].nodes, keys)
                if need is not None:
                    self.wanted.add(need)

    def _need(self, document: int, nodes: tuple[int, ...], keys: frozenset[Value]) -> int | None:
        """The marks of the values that the document joins; None if it has no witness."""
        if not all(len(self._rows(document, definition)) for definition in nodes):
            return None
        need = 0
        for node, form in keys:
            need |= self._mark(document, nodes[node], form)
        return need

    def _rows(self, document: int, definition: int) -> Int64s:
        first, end = self.given.bounds[definition : definition + 2]
        rows: Int64s = np.flatnonzero(self.given.document[first:end] == document) + first
        return rows

    def _mark(self, document: int, definition: int, form: str) -> int:
        """That of the values of a definition's nodes; 0 if one of them is empty, which any document may have."""
        key = document, definition, form
        mark = self._of_value.get(key)
        if mark is None:
            codes = np.unique(self.given.codes[form][self._rows(document, definition)])
            values = frozenset(normalised(text) for text in self.given.texts.take(pa.array(codes)).to_pylist())
            mark = 0 if "" in values else self.marks.setdefault(values, 1 << len(self.marks))
            self._of_value[key] = mark
        return mark
