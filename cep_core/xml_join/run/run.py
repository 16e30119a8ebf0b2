"""Running a plan of kind xml_join: relations of the documents, witnesses, a merge for each distinct query, rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import BadEventsError, TooManyAnswersError
from trendlake.cep_core.events.array_types import Bools, Int64s, UInt64s
from trendlake.cep_core.events.arrays import arrow, numbers
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.xml_join.compile.plan import Join, XmlJoinPlan
from trendlake.cep_core.xml_join.kernels.ids import mix, write_ids
from trendlake.cep_core.xml_join.kernels.merge import Sides, merge, most_per_document
from trendlake.cep_core.xml_join.run.relations import Relations, relations
from trendlake.cep_core.xml_join.run.witnesses import Witnesses, witnesses

ROWS_AT_ONCE = 250_000
"""Answers that are made rows of at once."""
TABLE_ROWS = 4_000_000
"""Rows of a part of the result: a column of text holds two GiB at most."""
_FIRST, _END = -(2**62), 2**62


def run_xml_join(plan: XmlJoinPlan, columns: Columns, windows: range | None = None) -> pa.Table:
    """Results (`plan.result_schema`) of a plan over documents, in any order; of `windows` only, if given.

    Documents that break a rule of XML are left out, with a DocumentWarning. Raises BadEventsError, TooManyAnswersError.
    """
    columns.check(plan.schema, plan.columns, ("event_id", "event_time", "document"))
    low, high = _FIRST, _END
    if windows is not None:
        if not len(windows):
            return plan.result_schema.empty_table()
        _, low, high = plan.owned(windows)
        columns = columns.within(plan.schema.event_time, low - plan.within, high)
    texts = columns.raw(plan.schema.document)
    if pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_decode()
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        name = plan.schema.document
        raise BadEventsError(f"column '{name}' is no text but {texts.type}: it holds one XML document each")
    ids = columns.raw(plan.schema.event_id)
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    ids = ids.cast(plan.result_schema.field("left_id").type)
    times = numbers(columns.column(plan.schema.event_time))
    return Answers(plan, relations(plan, texts, ids), ids, times, low, high).table()


class Answers:
    """The answers of all queries of a plan over the relations of documents; `ids` and `times` (microseconds) are those
    of the documents. Only answers whose later document is in [low, high)."""

    def __init__(
        self, plan: XmlJoinPlan, relations: Relations, ids: pa.Array, times: Int64s, low: int = _FIRST, high: int = _END
    ) -> None:
        self.plan, self.low, self.high = plan, low, high
        self.times, self.ids, self.relations = times, ids, relations
        self.schema = plan.result_schema
        self.witnesses: Witnesses = witnesses(plan, relations, times)
        self.same_id = numbers(ids.dictionary_encode().indices.cast(pa.int64()))
        self.names: list[list[str]] = [[] for _ in plan.joins]
        for name, join in plan.queries:
            self.names[join].append(name)
        self.counts = np.zeros(len(times), np.int64)

    def table(self) -> pa.Table:
        """All rows."""
        table = self.witnesses
        sides = Sides(table.bounds, table.hash, table.time, self.same_id[table.document], table.codes)
        space = np.empty((1 << 12, 2), np.int64)
        parts: list[pa.Table] = []
        listed: list[tuple[int, Int64s]] = []
        size = 0
        for number, join in enumerate(self.plan.joins):
            pairs = np.array(join.pairs, np.int64).reshape(-1, 2)
            while True:
                span = join.within, self.low, self.high
                count = merge(sides, join.left, join.right, pairs, join.followed, *span, space)
                if count <= len(space):
                    break
                space = np.empty((2 * count, 2), np.int64)
            if not count:
                continue
            answers = self._distinct(join, space[:count].copy())
            self._check_limit(number, answers)
            listed.append((number, answers))
            size += len(answers) * len(self.names[number])
            if size > ROWS_AT_ONCE:
                parts.extend(self._rows(listed))
                listed, size = [], 0
        parts.extend(self._rows(listed))
        return pa.concat_tables([self.schema.empty_table(), *parts])

    def _distinct(self, join: Join, answers: Int64s) -> Int64s:
        """One of the pairs of witnesses for each answer."""
        table = self.witnesses
        if not (table.several[join.left] or table.several[join.right]):
            return answers
        both = table.group[answers[:, 0]] * len(table.group) + table.group[answers[:, 1]]
        _, first = np.unique(both, return_index=True)
        chosen: Int64s = answers[np.sort(first)]
        return chosen

    def _check_limit(self, number: int, answers: Int64s) -> None:
        table, limit = self.witnesses, self.plan.limit
        if len(answers) <= limit:
            return
        if most_per_document(answers, table.time, table.document, self.counts) <= limit:
            return
        left, right = answers.T
        later = np.concatenate(
            [left[table.time[left] >= table.time[right]], right[table.time[right] >= table.time[left]]]
        )
        documents, counts = np.unique(table.document[later], return_counts=True)
        at = int(np.argmax(counts))
        raise TooManyAnswersError(
            f"query '{self.names[number][0]}' has {counts[at]:,} answers that end with the document "
            f"{self.ids[int(documents[at])].as_py()!r}: limit_per_document allows {limit:,}",
            hint="add a condition, shorten within, return less, or raise limit_per_document",
        )

    def _rows(self, listed: list[tuple[int, Int64s]]) -> Iterator[pa.Table]:
        """Rows of the answers of some joins, for each of the names of a join."""
        if not listed:
            return
        base = np.concatenate([answers for _, answers in listed])
        sizes = [len(answers) for _, answers in listed]
        starts = np.cumsum([0, *sizes[:-1]])
        pieces = [
            np.arange(start, start + size)
            for (number, _), start, size in zip(listed, starts, sizes, strict=True)
            for _ in self.names[number]
        ]
        named = [name for number, _ in listed for name in self.names[number]]
        spread = [size for (number, _), size in zip(listed, sizes, strict=True) for _ in self.names[number]]
        take = np.concatenate(pieces)
        query = np.repeat(np.arange(len(named)), spread)
        left, right = self.witnesses.document[base[:, 0]], self.witnesses.document[base[:, 1]]
        columns = {name: self._column(name, listed, base, starts) for name in self.plan.returned}
        state = self._digests(left, right, columns)
        begin, end = np.minimum(self.times[left], self.times[right]), np.maximum(self.times[left], self.times[right])
        names, digested = pa.array(named, pa.string()), _digests(named)
        for first in range(0, len(take), TABLE_ROWS):
            rows, of = take[first : first + TABLE_ROWS], query[first : first + TABLE_ROWS]
            columns_of_rows = [
                _ids_of(state, rows, digested, of),
                names.take(arrow(of)),
                self.ids.take(arrow(left[rows])),
                self.ids.take(arrow(right[rows])),
                arrow(begin[rows]).cast(self.schema.field("start").type),
                arrow(end[rows]).cast(self.schema.field("end").type),
                *(values.take(arrow(rows)) for values, _ in columns.values()),
            ]
            yield pa.table(columns_of_rows, schema=self.schema)

    @cached_property
    def id_digests(self) -> UInt64s:
        """Of the documents' ids."""
        return _digests(str(one) for one in self.ids.to_pylist())

    def _digests(self, left: Int64s, right: Int64s, columns: dict[str, tuple[pa.Array, Bools]]) -> UInt64s:
        """Of documents and returned columns: a column that a query does not return changes nothing."""
        state = np.zeros((len(left), 2), np.uint64)
        every = np.ones(len(left), np.bool_)
        for documents in (left, right):
            mix(state, self.id_digests, documents, every)
        for name in sorted(columns):
            values, has = columns[name]
            if has.any():
                encoded = values.dictionary_encode()
                texts = _digests(f"{name}={text}" for text in encoded.dictionary.to_pylist())
                mix(state, texts, numbers(encoded.indices.cast(pa.int64()), 0), has)
        return state

    def _column(
        self, name: str, listed: list[tuple[int, Int64s]], base: Int64s, starts: Int64s
    ) -> tuple[pa.Array, Bools]:
        """The values of a returned column for all answers, and where it has one."""
        codes = np.full(len(base), -1, np.int64)
        labels = np.full(len(base), -1, np.int64)
        for (number, answers), start in zip(listed, starts, strict=True):
            join = self.plan.joins[number]
            for column, of_left, cell in join.columns:
                if column == name:
                    side = self.plan.sides[join.left if of_left else join.right]
                    to = labels if side.cells[cell][1] == "node" else codes
                    to[start : start + len(answers)] = self.witnesses.cells[answers[:, 0 if of_left else 1], cell]
        texts = self.relations.texts.take(pa.array(codes, mask=codes < 0)).cast(pa.string())
        if (labels >= 0).any():
            texts = pc.coalesce(texts, self._nodes(labels))
        return texts, (codes >= 0) | (labels >= 0)

    def _nodes(self, labels: Int64s) -> pa.Array:
        """Nodes as text: `4`, or `4@id`."""
        width = len(self.relations.attributes) + 1
        unique, inverse = np.unique(labels, return_inverse=True)
        texts = [
            None
            if one < 0
            else f"{one // width}{'@' + self.relations.attributes[one % width - 1] if one % width else ''}"
            for one in unique.tolist()
        ]
        return pa.array(texts, pa.string()).take(arrow(inverse.reshape(-1)))


def _digests(texts: Iterable[str]) -> UInt64s:
    """(n, 2) uint64, by BLAKE2b, the bytes of a digest in the order of the machine."""
    joined = b"".join(hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts)
    return np.frombuffer(joined, np.uint64).reshape(-1, 2)


def _ids_of(state: UInt64s, take: Int64s, queries: UInt64s, query: Int64s) -> pa.Array:
    """The ids of rows, as text: of the answer `take[i]`, by its digests so far, and the query `query[i]`. They are the
    same in every run: 32 hex digits of the query, both documents and the returned columns."""
    digits = np.empty(32 * len(take), np.uint8)
    write_ids(state, take, queries, query, digits)
    offsets = np.arange(len(take) + 1, dtype=np.int64) * 32
    texts = pa.LargeStringArray.from_buffers(len(take), pa.py_buffer(offsets), pa.py_buffer(digits))
    return texts.cast(pa.string())
