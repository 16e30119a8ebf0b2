"""Which documents may be in an answer with one of a few documents that have changed.

An answer needs equal values in both documents, and a value is a part of a document's text. So the values of the changed
documents are looked for in all others, before any of these is parsed.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cep_core.documents.predicates import normalised
from cep_core.events.array_types import Bools, Int64s
from cep_core.xml_join.compile.plan import Value, XmlJoinPlan
from cep_core.xml_join.run.relations import Relations, relations
from cep_core.xml_join.run.text_search import TextSearch

MOST_CHANGED = 64
"""Changed documents; of more nearly every document is a partner."""
MOST_MARKS, MOST_NEEDS = 256, 2_000
"""Sets of values of all changed documents; sets of these that make an answer."""


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
        self.words = max(1, -(-len(needs.marks) // 64))
        texts: dict[str, int] = {}
        for values, mark in needs.marks.items():
            for value in values:
                texts[value] = texts.get(value, 0) | mark
        self.search = TextSearch(texts, self.words)

    def among(self, documents: pa.Array, asked: Bools) -> Bools:
        """Of each of `documents` (texts) that is `asked` about whether it may be a partner; False for the others."""
        may: Bools = np.zeros(len(documents), np.bool_)
        if not self.wanted:
            return may
        marks = self.search.marks(documents, asked)
        some = np.flatnonzero(marks.any(axis=1))
        different, which = np.unique(marks[some], axis=0, return_inverse=True)
        enough = np.zeros(len(different), np.bool_)
        for need in self.wanted:
            bits = np.array([(need >> (64 * word)) & (2**64 - 1) for word in range(self.words)], np.uint64)
            enough |= ((different & bits) == bits).all(axis=1)
        may[some] = enough[which.reshape(-1)]
        return may


def _implied(need: int, needs: set[int]) -> bool:
    """Whether a document that has what `need` asks for has what another asks for."""
    return any(other != need and need & other == other for other in needs)


class _Needs:
    """What a partner of a changed document has: `wanted`, one of these sets of marks; `marks`: of a set of values, of
    which the partner has one, its mark (a bit)."""

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
