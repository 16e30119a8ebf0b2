"""The stream of one operator, of those that it reads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.run.context import Context
from trendlake.cep_core.algebra.run.fold import fold_stream
from trendlake.cep_core.algebra.run.next import next_stream
from trendlake.cep_core.algebra.run.singles import filtered, selected
from trendlake.cep_core.algebra.run.tables import Table, Words, as_real
from trendlake.cep_core.algebra.run.totals import aggregated


def stream_of(context: Context, node: n.Node, streams: Mapping[int, Table]) -> Table:
    """Of `context.place`; `streams` by place."""
    match node:
        case n.Base():
            return context.source.base(node)
        case n.Filter():
            return filtered(context, node, streams[node.source])
        case n.Select():
            return context.distinct(context.place, selected(context, node, streams[node.source]))
        case n.Aggregate():
            table = streams[node.source]
            counted = context.distinct(node.source, table) if n.counts_events(node) else table
            return aggregated(context, node, counted)
        case n.Union():
            return _union(context, node, streams[node.left], streams[node.right])
        case n.Next():
            return next_stream(context, node, streams[node.left], streams[node.right])
        case n.Fold():
            return fold_stream(context, node, streams[node.left], streams[node.right])


def _union(context: Context, node: n.Union, left: Table, right: Table) -> Table:
    kinds = [dict(n.attributes_of(context.plan.nodes[place])) for place in (node.left, node.right)]
    columns: dict[str, Words] = {}
    for name, family in node.attributes:
        pairs = [table.columns[name] for table in (left, right)]
        words = [as_real(w, kind[name]) if family == "double" else w for (w, _), kind in zip(pairs, kinds, strict=True)]
        columns[name] = np.concatenate(words), np.concatenate([null for _, null in pairs])
    part, start, end = (
        np.concatenate(pair) for pair in ((left.part, right.part), (left.start, right.start), (left.end, right.end))
    )
    return Table(part, start, end, columns)
