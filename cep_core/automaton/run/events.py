"""Events as the automaton reads them: ordered by partition, time and tie, with their conditions and values.

The order is total: two events of one partition with the same time, sequence and id are refused, so that no answer
depends on the order of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.automaton.compile.encode import Assembly
from trendlake.cep_core.automaton.compile.plan import AutomatonPlan
from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import AnyArray, Bools, Int64s, UInt64s
from trendlake.cep_core.events.arrays import read_only
from trendlake.cep_core.events.codes import ordered_codes
from trendlake.cep_core.events.columns import Columns, columns_of
from trendlake.cep_core.expressions.columnar import evaluate, true_rows
from trendlake.cep_core.expressions.operands import Words


class Stream:
    """`rows`: the table's rows in order. `time` (int64 microseconds) and `partition` (int64 codes) follow it."""

    def __init__(self, plan: AutomatonPlan, events: pa.Table | Columns) -> None:
        self.plan = plan
        self.columns = columns_of(events)
        self.length = self.columns.length
        schema = plan.schema
        self.columns.check(schema, plan.columns, ("event_time", "event_id"))
        time = self.column(schema.event_time).to_numpy(zero_copy_only=False)
        partition = self.columns.codes(plan.partition_by).astype(np.int64)
        self.rows = self._ordered(time, partition)
        self.in_place = bool((self.rows[1:] > self.rows[:-1]).all())
        self.time, self.partition = read_only(self.taken(time)), self.taken(partition)

    def _ordered(self, time: Int64s, partition: Int64s) -> Int64s:
        rows = np.arange(self.length)
        part, t = partition, time
        if not _ascending(part, t):
            rows = np.lexsort((time, partition))
            part, t = partition[rows], time[rows]
        if not ((part[1:] == part[:-1]) & (t[1:] == t[:-1])).any():
            return rows
        schema = self.plan.schema
        names = [schema.id_order, *([schema.sequence] if schema.sequence else [])]
        ties = [ordered_codes(self.column(name))[0][0] for name in names]
        keys: list[AnyArray] = [*ties, time, partition]
        rows = np.lexsort(keys)
        equal = np.ones(max(0, self.length - 1), bool)
        for key in keys:
            equal &= key[rows[1:]] == key[rows[:-1]]
        if equal.any():
            at = int(rows[1:][equal][0])
            event_id = self.columns.raw(schema.event_id)[at].as_py()
            raise BadEventsError(
                f"two events of one partition have the same time and {schema.event_id} ({event_id!r}): "
                "they have no order"
            )
        return rows

    def taken(self, values: AnyArray) -> AnyArray:
        """A numpy column in the stream's order."""
        return values if self.in_place else values[self.rows]

    def column(self, name: str) -> pa.Array:
        """The normalised array of a column (see `cep_core.events.normalise`), in the table's order."""
        return self.columns.column(name)

    def value(self, node: Any) -> pa.Array:
        """An expression of the event, in the table's order."""
        return evaluate(node, lambda attribute: self.column(attribute.name), self.length)

    def bits(self, assembly: Assembly) -> UInt64s:
        """uint64 (n, words): which conditions hold. Each distinct one is computed once."""
        conditions = assembly.conditions
        words = np.zeros((self.length, len(conditions) // 64 + 1), np.uint64)
        words[:, 0] = 1
        truths: dict[Any, AnyArray] = {}
        for number, parts in enumerate(conditions, 1):
            holds = np.ones(self.length, bool)
            for part in parts:
                if part not in truths:
                    truths[part] = true_rows(self.value(part))
                holds = holds & truths[part] if len(parts) > 1 else truths[part]
            words[:, number // 64] |= holds.astype(np.uint64) << np.uint64(number % 64)
        return words if self.in_place else words[self.rows]


class Values(Words):
    """The words of a stream, and of the register that runs begin with."""

    def __init__(self, stream: Stream, assembly: Assembly) -> None:
        plan = stream.plan
        self.plan = plan
        texts = [str(f.init) for f in plan.register if f.family == "string" and f.init is not None]
        super().__init__(assembly, stream.value, stream.length, texts)
        self.init = np.zeros((1, len(plan.register) + 1), np.int64)
        for k, field in enumerate(plan.register):
            self.init[0, k] = self.word(field.init, field.family)
            self.init[0, -1] |= int(field.init is None) << k
        if not stream.in_place:
            self.leaves, self.leaf_null = self.leaves[stream.rows], self.leaf_null[stream.rows]

    def decoded(self, k: int, words: Int64s, null: Bools) -> pa.Array:
        """Field k of the register as a column of its result type."""
        field = self.plan.register[k]
        if field.family == "string":
            return pa.array([None if n else self.strings[w] for w, n in zip(words, null, strict=True)], pa.string())
        if field.family == "double":
            return pa.array(np.ascontiguousarray(words).view(np.float64), mask=null)
        if field.family == "boolean":
            return pa.array(words.astype(bool), mask=null)
        values = pa.array(words, mask=null)
        if field.family == "date":
            return pc.divide(values, 86_400_000_000).cast(pa.int32()).cast(pa.date32())
        return values.cast(field.arrow)


def _ascending(partition: Int64s, time: Int64s) -> bool:
    part = partition[1:] - partition[:-1]
    return bool(((part > 0) | ((part == 0) & (time[1:] >= time[:-1]))).all())
