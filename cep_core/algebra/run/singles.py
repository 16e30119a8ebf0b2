"""Operators on one stream: FILTER and SELECT; and expressions over the rows of one stream."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile.pairing import parted
from trendlake.cep_core.algebra.compile.syntax import Dur
from trendlake.cep_core.algebra.kernels import rows as k
from trendlake.cep_core.algebra.kernels.arguments import Leaves
from trendlake.cep_core.algebra.run.comparisons import comparison_of
from trendlake.cep_core.algebra.run.context import Context
from trendlake.cep_core.algebra.run.programs import Program
from trendlake.cep_core.algebra.run.tables import Late, Place, Table, Words, leaves, place_of
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.expressions.types import Resolve
from trendlake.cep_core.language import syntax as s


def values_of(
    context: Context, table: Table, expression: s.Expr, family: Resolve, where: str, rows: Int64s | None = None
) -> Words:
    """An expression over `rows` (None: all) of a stream. Raises BadEventsError."""
    chosen = np.arange(len(table)) if rows is None else rows
    if isinstance(expression, s.Attribute):
        words, null = column_of(context, table, expression)
        return words[chosen], null[chosen]
    program = Program(family)
    low, high, slot = program.value(expression)
    reads = list(program.loads)
    words, null = leaves([column_of(context, table, read) for read in reads], len(table))
    read_here = Leaves(np.array([program.loads[read] for read in reads], np.int64), words, null)
    out, out_null = np.zeros(len(chosen), np.int64), np.zeros(len(chosen), np.bool_)
    machine = program.machine(context.source.strings)
    if k.evaluate(machine, low, high, read_here, chosen, slot, out, out_null) >= 0:
        raise context.overflow(where, expression)
    out[out_null] = 0
    return out, out_null


def column_of(context: Context, table: Table, read: s.Attribute) -> Words:
    """An attribute of a stream, a column of the partition, or the duration."""
    if isinstance(read, Dur):
        return table.end - table.start, np.zeros(len(table), np.bool_)
    if read.name in table.columns:
        return table.columns[read.name]
    words, null = context.source.of_part(read.name)
    return words[table.part], null[table.part]


def holding(
    context: Context, table: Table, parts: Sequence[s.Expr], family: Resolve, where: str, rows: Int64s
) -> Int64s:
    """Those of `rows`, numbers of the table's rows, for which a conjunction is true."""
    comparisons = {x: one for x, part in enumerate(parts) if (one := comparison_of(part, table, family)) is not None}
    for comparison in comparisons.values():
        true = comparison.rows(table)
        rows = np.flatnonzero(true) if len(rows) == len(table) else rows[true[rows]]
    parts = [part for x, part in enumerate(parts) if x not in comparisons]
    if not parts:
        return rows
    whole = parts[0]
    for part in parts[1:]:
        whole = s.Binary("and", whole, part)
    words, null = values_of(context, table, whole, family, where, rows=rows)
    chosen: Int64s = rows[(words != 0) & ~null]
    return chosen


def filtered(context: Context, node: n.Filter, table: Table) -> Table:
    """FILTER: conditions that can leave 64 bits are evaluated only for events that satisfy the others."""
    family = context.family(node)
    rows = np.arange(len(table))
    for parts in parted(node.condition, family):
        rows = holding(context, table, parts, family, "FILTER", rows)
    chosen = table if len(rows) == len(table) else table.take(rows)
    return chosen.only(name for name, _ in node.attributes)


def selected(context: Context, node: n.Select, table: Table) -> Table:
    """SELECT."""
    family = context.family(node)
    places: dict[str, Place] = {}
    for item in node.items:
        read = item.expression
        if isinstance(read, s.Attribute) and not isinstance(read, Dur) and read.name in table.columns:
            places[item.name] = place_of(table.columns, read.name)
        else:
            words = values_of(context, table, read, family, f"SELECT ... AS {item.name}")
            places[item.name] = {item.name: words}, item.name, None
    return table.with_columns(Late(places))
