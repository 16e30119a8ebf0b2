"""Queries of one template run as one (RUMOR's channels: Hong 2009, 5.2): an operator makes each event once, and a list
says which queries have it.

An operator that reads no constants of a query makes the same of an event for all queries that have it. So a FILTER with
constants shortens lists, NEXT and FOLD take each left event once for all queries in its list that agree in what the
condition reads, and rows are copied for their queries at the end only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile.form import LIST, Comparison, Form, name_of
from trendlake.cep_core.algebra.compile.plan import AlgebraPlan
from trendlake.cep_core.algebra.kernels import members as k
from trendlake.cep_core.algebra.kernels.members import Lists, Ranges
from trendlake.cep_core.algebra.run.context import Context
from trendlake.cep_core.algebra.run.events import Source
from trendlake.cep_core.algebra.run.programs import word
from trendlake.cep_core.algebra.run.results import limited, owned, read_for, result_of
from trendlake.cep_core.algebra.run.singles import column_of, holding, selected
from trendlake.cep_core.algebra.run.streams import stream_of
from trendlake.cep_core.algebra.run.tables import Table, distinct, sortable
from trendlake.cep_core.errors import WindowTooLargeError
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.language import syntax as s

MOST_PAIRS = 32_000_000
"""Pairs of an event and a query; and MOST_ROWS of an operator and of all results. Queries that have more run apart."""
MOST_ROWS = 8_000_000
MEMBER = "\0member"
LEAST, GREATEST = -(2**63), 2**63 - 1


def run_members(
    plan: AlgebraPlan, constants: Sequence[tuple[Any, ...]], columns: Columns, windows: range | None
) -> list[pa.Table]:
    """The results of queries that have the template of `plan`, in the order of their `constants`. Raises what a query
    of them raises, whichever, and WindowTooLargeError where they are too many to run as one."""
    form = plan.form
    if form is None:
        raise ValueError("the query has no template")
    if windows is not None and not len(windows):
        return [plan.result_schema.empty_table()] * len(constants)
    return _Together(plan, form, constants, read_for(plan, columns, windows)).results(windows)


class _Together:
    """One run. `lists`: of the stream that was made last; `values`: constants as words, by number."""

    def __init__(self, plan: AlgebraPlan, form: Form, constants: Sequence[tuple[Any, ...]], columns: Columns) -> None:
        self.plan, self.form, self.count = plan, form, len(constants)
        by_number = list(zip(*constants, strict=True))
        texts = {
            text for kind, values in zip(form.families, by_number, strict=True) if kind == "string" for text in values
        }
        self.source = Source(plan, columns, texts)
        families = {name_of(number): kind for number, kind in enumerate(form.families)}
        self.context = Context(replace(plan, nodes=form.nodes), self.source, constants=families, most=MOST_ROWS)
        self.values = [
            np.array([word(value, kind, self.source.strings) for value in values], np.int64)
            for kind, values in zip(form.families, by_number, strict=True)
        ]
        self.lists: dict[int, Lists] = {}

    def results(self, windows: range | None) -> list[pa.Table]:
        streams: dict[int, Table] = {}
        for place, node in enumerate(self.form.nodes):
            self.context.place = place
            streams[place] = self._stream(place, node, streams)
        last = len(streams) - 1
        table = owned(self.plan, streams[last], windows)
        lists, at = self.lists[last], table.columns[LIST][0]
        _check_size(k.pairs_of(at, lists), MOST_ROWS)
        rows, bounds = k.rows_by_query(at, lists, self.count)
        names = [name for name, _ in self.plan.attributes]
        alone = table.only(names)
        whole = alone.take(rows)
        if len(distinct(alone)) < len(alone):
            member = np.repeat(np.arange(self.count), np.diff(bounds))
            marked = distinct(whole.beside({MEMBER: (member, np.zeros(len(member), np.bool_))}))
            member = marked.columns[MEMBER][0]
            bounds = np.searchsorted(member, np.arange(self.count + 1))
            whole = marked.only(names)
        for low, high in pairwise(bounds.tolist()):
            if high - low >= self.plan.limit:
                limited(self.plan, self.source, whole.take(np.arange(low, high)))
        result, nothing = result_of(self.plan, self.source, whole), self.plan.result_schema.empty_table()
        return [result.slice(low, high - low) if high > low else nothing for low, high in pairwise(bounds.tolist())]

    def _stream(self, place: int, node: n.Node, streams: dict[int, Table]) -> Table:
        if not self.form.own[place]:
            return stream_of(self.context, node, streams)
        match node:
            case n.Filter(source=source):
                return self._filtered(place, node, streams[source])
            case n.Select(source=source):
                self.lists[place] = self.lists[source]
                return selected(self.context, node, streams[source])  # equal rows become one at the end
            case n.Next(left=left) | n.Fold(left=left):
                table, self.lists[place] = self._added(self.form.added[place], streams[left], self.lists[left])
                return stream_of(self.context, node, {**streams, left: table})
        raise AssertionError(node)  # pragma: no cover - no other stream is a query's own

    def _filtered(self, place: int, node: n.Filter, table: Table) -> Table:
        asked, family = self.form.asked[place], self.context.family(node)
        rows = holding(self.context, table, asked.safe, family, "FILTER", np.arange(len(table)))
        table = table if len(rows) == len(table) else table.take(rows)
        if asked.comparisons:
            table, self.lists[place] = self._compared(node, asked.comparisons, table)
        else:
            self.lists[place] = self.lists[node.source]
        rows = holding(self.context, table, asked.risky, family, "FILTER", np.arange(len(table)))
        table = table if len(rows) == len(table) else table.take(rows)
        return table.only(name for name, _ in node.attributes)

    def _compared(self, node: n.Filter, comparisons: Sequence[Comparison], table: Table) -> tuple[Table, Lists]:
        """The rows that some query has still, and their lists."""
        names = list(dict.fromkeys(one.name for one in comparisons))
        ranges = self._ranges(comparisons, names)
        keys = np.empty((len(table), len(names)), np.int64)
        known = np.ones(len(table), np.bool_)
        family = self.context.family(node)
        for x, name in enumerate(names):
            read = s.Attribute("", name)
            words, null = column_of(self.context, table, read)
            keys[:, x] = sortable(words, family(read))
            known &= ~null
        if not known.all():
            table, keys = table.take(known), keys[known]
        if not self.form.own[node.source]:
            order = np.lexsort(keys.T[::-1])
            keys = np.ascontiguousarray(keys[order])
            first, last = k.slices(keys, ranges)
            _check_size(int((last - first).sum()), MOST_PAIRS)
            lists = k.lists_of_rows(keys, ranges, first, last)
            back = np.empty_like(order)
            back[order] = np.arange(len(order))
            at = back
        else:
            bounds = np.zeros(len(table) + 1, np.int64)
            before = self.lists[node.source]
            at = table.columns[LIST][0]
            _check_size(k.pairs_of(at, before), MOST_PAIRS)
            lists = Lists(bounds, k.remaining(keys, at, before, ranges, bounds))
            at = np.arange(len(table))
        some = lists.bounds[at + 1] > lists.bounds[at]
        table = table.take(some)
        return table.beside({LIST: (at[some], np.zeros(len(table), np.bool_))}), lists

    def _ranges(self, comparisons: Sequence[Comparison], names: list[str]) -> Ranges:
        """Of each query the range of each column, those with an equality in all queries first."""
        exact = {one.name for one in comparisons if one.op == "="}
        names.sort(key=lambda name: name not in exact)
        low = np.full((self.count, len(names)), LEAST, np.int64)
        high = np.full((self.count, len(names)), GREATEST, np.int64)
        for one in comparisons:
            x, key = names.index(one.name), sortable(self.values[one.constant], self.form.families[one.constant])
            if one.op in ("=", ">=", ">"):
                nothing = key == GREATEST if one.op == ">" else np.zeros(self.count, np.bool_)
                low[:, x] = np.maximum(low[:, x], key + (one.op == ">") * ~nothing)
                high[nothing, x], low[nothing, x] = LEAST, GREATEST
            if one.op in ("=", "<=", "<"):
                nothing = key == LEAST if one.op == "<" else np.zeros(self.count, np.bool_)
                high[:, x] = np.minimum(high[:, x], key - (one.op == "<") * ~nothing)
                high[nothing, x], low[nothing, x] = LEAST, GREATEST
        return Ranges(low, high)

    def _added(self, numbers: Sequence[int], table: Table, lists: Lists) -> tuple[Table, Lists]:
        """A left stream with constants as attributes: each row once for all queries that agree in them."""
        if not numbers:
            return table, lists
        wanted = np.stack([self.values[number] for number in numbers], axis=1)
        known, codes = np.unique(wanted, axis=0, return_inverse=True)
        parts, code, begins = k.parted_lists(lists, codes.reshape(-1).astype(np.int64), len(known))
        at = table.columns[LIST][0]
        copies = np.diff(begins)[at]
        rows = np.repeat(np.arange(len(table)), copies)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(copies) - copies, copies)
        new = begins[at][rows] + within
        table = table.take(rows)
        none = np.zeros(len(rows), np.bool_)
        added = {name_of(number): (known[code[new], x], none) for x, number in enumerate(numbers)}
        return table.beside({**added, LIST: (new, none)}), parts


def _check_size(pairs: int, most: int) -> None:
    if pairs > most:
        raise WindowTooLargeError("queries have too many events together")
