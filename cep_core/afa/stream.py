"""Events as the automaton reads them: ordered by partition, time and tie, with their conditions and values.

The order is total: two events of one partition with the same time, sequence and id are refused, so that no answer
depends on the order of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cep_core.afa.assembly import Assembly
from cep_core.afa.plan import AutomatonPlan
from cep_core.codes import group_codes, ordered_codes
from cep_core.errors import BadEventsError, did_you_mean
from cep_core.values import evaluate, normalise, true_rows

Array = Any


class Stream:
    """`rows`: the table's rows in order. `time` (int64 microseconds) and `partition` (int64 codes) follow it."""

    def __init__(self, plan: AutomatonPlan, table: pa.Table) -> None:
        self.plan = plan
        self.table = table
        self.length = table.num_rows
        self._columns: dict[str, Array] = {}
        schema = plan.schema
        for name in plan.columns:
            if name not in table.column_names:
                raise BadEventsError(f"the events have no column '{name}'", hint=did_you_mean(name, table.column_names))
        stamp = table.schema.field(schema.event_time).type
        if not pa.types.is_timestamp(stamp):
            raise BadEventsError(f"column '{schema.event_time}' is not a timestamp but {stamp}")
        for name in (schema.event_time, schema.event_id):
            if table.column(name).null_count:
                raise BadEventsError(f"column '{name}' has a NULL: an event has a time and an id")
        time = self.column(schema.event_time).to_numpy(zero_copy_only=False)
        partition = group_codes([self.column(name) for name in plan.partition_by], self.length)
        self.rows = self._ordered(time, partition)
        self.in_place = bool((self.rows[1:] > self.rows[:-1]).all())
        self.time, self.partition = self.taken(time), self.taken(partition)

    def _ordered(self, time: Array, partition: Array) -> Array:
        rows = np.arange(self.length)
        part, t = partition, time
        if not _ascending(part, t):
            rows = np.lexsort((time, partition))
            part, t = partition[rows], time[rows]
        if not ((part[1:] == part[:-1]) & (t[1:] == t[:-1])).any():
            return rows
        schema = self.plan.schema
        names = [schema.event_id, *([schema.sequence] if schema.sequence else [])]
        ties = [ordered_codes(self.column(name))[0][0] for name in names]
        keys = (*ties, time, partition)
        rows = np.lexsort(keys)
        equal = np.ones(max(0, self.length - 1), bool)
        for key in keys:
            equal &= key[rows[1:]] == key[rows[:-1]]
        if equal.any():
            at = int(rows[1:][equal][0])
            told = self.table.column(schema.event_id)[at].as_py()
            raise BadEventsError(
                f"two events of one partition have the same time and {schema.event_id} ({told!r}): they have no order"
            )
        return rows

    def taken(self, values: Array) -> Array:
        """A numpy column in the stream's order."""
        return values if self.in_place else values[self.rows]

    def column(self, name: str) -> Array:
        """The normalised array of a column (see `values.normalise`), in the table's order."""
        if name not in self._columns:
            self._columns[name] = normalise(self.table.column(name))
        return self._columns[name]

    def value(self, node: Any) -> Array:
        """An expression of the event, in the table's order."""
        return evaluate(node, lambda attribute: self.column(attribute.name), self.length)

    def bits(self, assembly: Assembly) -> Array:
        """uint64 (n, words): which conditions hold. Each distinct one is computed once."""
        conditions = assembly.conditions
        words = np.zeros((self.length, len(conditions) // 64 + 1), np.uint64)
        words[:, 0] = 1
        known: dict[Any, Array] = {}
        for number, parts in enumerate(conditions, 1):
            holds = np.ones(self.length, bool)
            for part in parts:
                if part not in known:
                    known[part] = true_rows(self.value(part))
                holds = holds & known[part] if len(parts) > 1 else known[part]
            words[:, number // 64] |= holds.astype(np.uint64) << np.uint64(number % 64)
        return words if self.in_place else words[self.rows]


class Values:
    """What the machine's slots begin with, and what each event puts there. Strings are codes of one order over all that
    can come up."""

    def __init__(self, stream: Stream, assembly: Assembly) -> None:
        plan = stream.plan
        self.plan = plan
        leaves = [(stream.value(node), family) for node, family, _ in assembly.leaves]
        texts = [
            *(value for value, family in assembly.constants.values() if family == "string"),
            *(field.init for field in plan.register if field.family == "string"),
        ]
        for array, family in leaves:
            if family == "string":
                texts += pc.unique(array).to_pylist()
        self.strings = _closed({text for text in texts if text is not None}, assembly.cases)
        self.codes = {text: code for code, text in enumerate(self.strings)}
        memory = np.zeros(max(1, assembly.slots), np.int64)
        null = np.zeros(len(memory), np.bool_)
        for slot, (value, family) in assembly.constants.items():
            memory[slot], null[slot] = self.word(value, family), value is None
        cases = np.zeros((2, len(self.strings) if assembly.cases else 0), np.int64)
        if assembly.cases and self.strings:
            array = pa.array(self.strings)
            for row, change in enumerate((pc.utf8_lower, pc.utf8_upper)):
                cases[row] = [self.codes[text] for text in change(array).to_pylist()]
        self.machine = (memory, memory.view(np.float64), null, cases)
        self.init = np.zeros((1, len(plan.register) + 1), np.int64)
        for k, field in enumerate(plan.register):
            self.init[0, k] = self.word(field.init, field.family)
            self.init[0, -1] |= int(field.init is None) << k
        self.leaf_slots = np.array([slot for _, _, slot in assembly.leaves], np.int64)
        self.leaves = np.zeros((stream.length, len(leaves)), np.int64)
        self.leaf_null = np.zeros((stream.length, len(leaves)), np.bool_)
        for x, (array, family) in enumerate(leaves):
            self.leaves[:, x], self.leaf_null[:, x] = self._words(array, family)
        if not stream.in_place:
            self.leaves, self.leaf_null = self.leaves[stream.rows], self.leaf_null[stream.rows]

    def word(self, value: Any, family: str) -> int:
        """A value as the machine's 64 bits."""
        if value is None:
            return 0
        if family == "string":
            return self.codes[value]
        if family == "double":
            return int(np.array([float(value) + 0.0]).view(np.int64)[0])
        return int(value)

    def _words(self, array: Array, family: str) -> tuple[Array, Array]:
        null = pc.is_null(array).to_numpy(zero_copy_only=False)
        if pa.types.is_null(array.type):
            return np.zeros(len(array), np.int64), null
        if family == "string":
            encoded = array.dictionary_encode()
            known = np.array([self.codes[text] for text in encoded.dictionary.to_pylist()] or [0], np.int64)
            return known[pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)] * ~null, null
        if family == "double":
            reals = pc.fill_null(array.cast(pa.float64(), safe=False), 0.0).to_numpy(zero_copy_only=False) + 0.0
            return reals.view(np.int64), null
        filled = array.cast(pa.int64()) if not pa.types.is_int64(array.type) else array
        return pc.fill_null(filled, 0).to_numpy(zero_copy_only=False), null

    def decoded(self, k: int, words: Array, null: Array) -> pa.Array:
        """Field k of the register as a column of its result type."""
        field = self.plan.register[k]
        if field.family == "string":
            return pa.array([None if n else self.strings[w] for w, n in zip(words, null, strict=True)], pa.string())
        if field.family == "double":
            return pa.array(np.ascontiguousarray(words).view(np.float64), mask=null)
        if field.family == "boolean":
            return pa.array(words.astype(bool), mask=null)
        found = pa.array(words, mask=null)
        if field.family == "date":
            return pc.divide(found, 86_400_000_000).cast(pa.int32()).cast(pa.date32())
        return found.cast(field.arrow)


def _ascending(partition: Array, time: Array) -> bool:
    part = partition[1:] - partition[:-1]
    return bool(((part > 0) | ((part == 0) & (time[1:] >= time[:-1]))).all())


def _closed(texts: set[str], cases: bool) -> list[str]:
    """The texts in order; with all that lower and upper make of them, if `cases`."""
    while cases:
        array = pa.array(sorted(texts), pa.string())
        more = {*pc.utf8_lower(array).to_pylist(), *pc.utf8_upper(array).to_pylist()} - texts
        if not more:
            break
        texts = texts | more
    return sorted(texts)
