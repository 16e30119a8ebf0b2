"""A table of events as the automaton reads it: in total order, parted, with what each event may be."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import Bools, Int64s, UInt64s
from trendlake.cep_core.events.arrays import numbers
from trendlake.cep_core.events.columns import Columns, columns_of
from trendlake.cep_core.events.normalise import distinct_reals
from trendlake.cep_core.events.tables import EVENT_SOURCE, UNPLACED
from trendlake.cep_core.expressions.columnar import true_where
from trendlake.cep_core.expressions.functions import Value
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.matches.compile.plan import MatchesPlan
from trendlake.cep_core.matches.compile.registers import is_local, moments
from trendlake.cep_core.matches.run.match_ids import Digests
from trendlake.cep_core.plan import ANY


class Stream:
    """All events in total order: time, then `sequence`, then id. `time` (int64, microseconds) and `begins`, `takes`,
    `negated` (bit k: may begin part k, be one more event of part k, be an event of NOT k) are arrays of its length.

    `low`, `high` (int64, of its length): an event is later than another if its `low` is above the other's `high`: the
    first and the last place that it may have. Under the contiguous selections each event has one place. Else events of
    one time and `sequence` share theirs, and one without a `sequence` may have each place of its time: an id is no
    order.

    `events`: those that some part may bind, partition after partition, each in order. `broken[i]`: no run goes on to
    event i of them: it is the first of its partition, or an event that a run may not ignore comes before it. `step[i]`:
    its `low` is not that of the one before it, or it is of another partition. `uneven`: an event of a step may still
    not be later than those of the step before."""

    def __init__(self, plan: MatchesPlan, events: pa.Table | Columns, may: UInt64s | None = None) -> None:
        """`may`: of each event the bindings that may take it (`bindings`, a bit each), where that is known; then an
        event may be there several times, in different partitions."""
        self.plan = plan
        schema = plan.schema
        columns = columns_of(events)
        columns.check(schema, plan.columns, ("event_id", "event_time", "event_type"))
        order = _order(plan, columns, unique=may is None)
        in_order = bool((order[1:] > order[:-1]).all())
        self.columns = columns if in_order else columns.chosen(order)
        self.length = columns.length
        self._lists: dict[str, list[Value]] = {}
        self.time: Int64s = self.array(schema.event_time).to_numpy(zero_copy_only=False)
        self.codes: Int64s = self.columns.codes(plan.partition).astype(np.int64)
        self.low, self.high = self._places()
        if may is None:
            self._masks()
        else:
            self._known_masks(may[order])
        self.events, self.broken = self._partitions()
        self.step, self.uneven = self._steps()

    def array(self, name: str) -> pa.Array:
        """The normalised column (see `cep_core.events.normalise`)."""
        return self.columns.column(name)

    def values(self, name: str) -> Sequence[Value]:
        """The normalised column as Python values."""
        if name not in self._lists:
            (array,) = distinct_reals([self.array(name)], "a condition between events")
            self._lists[name] = array.to_pylist()
        return self._lists[name]

    def raw(self, name: str) -> list[Any]:
        """The column as it came."""
        values: list[Any] = self.columns.raw(name).to_pylist()
        return values

    def digests(self) -> Digests:
        """Of the ids of the events."""
        return Digests(self.length, partial(self.columns.taken, self.plan.schema.event_id))

    # --- what is later
    def _places(self) -> tuple[Int64s, Int64s]:
        places = np.arange(self.length)
        if self.plan.contiguous:
            return places, places
        other_time = np.diff(self.time, prepend=-1) != 0
        name = self.plan.schema.sequence
        if name is None:
            return _ends(other_time)
        low, high = _ends(other_time | (np.diff(self.columns.codes((name,)), prepend=-1) != 0))
        anywhere = self.array(name).is_null().to_numpy(zero_copy_only=False)
        tables = self.plan.schema.tables
        if tables is not None and not tables.by_sequence:  # any place among the events of its time and table
            anywhere = numbers(self.array(UNPLACED))
            other_time |= np.diff(self.columns.codes((EVENT_SOURCE,)), prepend=-1) != 0
        first, last = _ends(other_time)
        return np.where(anywhere, first, low), np.where(anywhere, last, high)

    def _steps(self) -> tuple[Bools, bool]:
        codes, low, high = (values[self.events] for values in (self.codes, self.low, self.high))
        step = (np.diff(codes, prepend=-1) != 0) | (np.diff(low, prepend=-1) != 0)
        beside = step[1:] & (codes[1:] == codes[:-1]) & (low[1:] <= high[:-1])
        return step, bool(beside.any())

    # --- what an event may be
    def _masks(self) -> None:
        plan = self.plan
        self.begins = np.zeros(self.length, np.uint64)
        self.takes = np.zeros(self.length, np.uint64)
        self.negated = np.zeros(self.length, np.uint64)
        if plan.never or not self.length:
            return
        codes, names = self.columns.types(plan.schema.event_type)
        of_type: dict[str, Bools] = {}
        for code, name in enumerate(names):  # a dictionary may have one text twice
            of_type[name] = of_type.get(name, False) | (codes == code)
        of_type[ANY] = np.ones(self.length, bool)
        nothing = np.zeros(self.length, bool)
        begins = [of_type.get(part.type_name, nothing) for part in plan.parts]
        takes = [begins[k] if part.kleene else nothing for k, part in enumerate(plan.parts)]
        for index, condition in enumerate(plan.conditions):
            for moment in moments(plan, condition):
                if moment != "leave" and is_local(plan, index, moment):
                    masks = begins if moment == "begin" else takes
                    masks[condition.part] = self._true(condition.expression, masks[condition.part])
        negated = [of_type.get(negation.type_name, nothing) for negation in plan.negations]
        for k, negation in enumerate(plan.negations):
            for one in negation.conditions:
                if {read.variable for read in s.attributes(one)} == {negation.variable}:
                    negated[k] = self._true(one, negated[k])
        self.begins, self.takes, self.negated = _bits(begins), _bits(takes), _bits(negated)

    def _known_masks(self, may: UInt64s) -> None:
        """As `_masks`, by the bits of the bindings, in their order."""
        bits = iter(range(64))

        def taken() -> Bools:
            mask: Bools = (may >> np.uint64(next(bits))) & np.uint64(1) != 0
            return mask

        begins, takes = list[Bools](), list[Bools]()
        for part in self.plan.parts:
            begins.append(taken())
            takes.append(taken() if part.kleene else np.zeros(self.length, bool))
        negated = [taken() for _ in self.plan.negations]
        self.begins, self.takes, self.negated = _bits(begins), _bits(takes), _bits(negated)

    def _true(self, condition: s.Expr, asked: Bools) -> Bools:
        return true_where(asked, condition, lambda read: self.array(read.name))

    # --- partitions
    def _partitions(self) -> tuple[Int64s, Bools]:
        everything = np.arange(self.length)
        position = everything
        few = self.length and self.codes.max() < 1 << 16  # numpy sorts 16 bits by radix
        order = np.argsort(self.codes.astype(np.uint16) if few else self.codes, kind="stable")
        if self.plan.select == "partition_contiguous":
            position = np.empty(self.length, np.int64)
            position[order] = everything
        rows = order[((self.begins | self.takes) != 0)[order]]
        broken = np.diff(self.codes[rows], prepend=-1) != 0
        if self.plan.contiguous:
            broken |= np.diff(position[rows], prepend=-1) != 1
        return rows, broken


def _ends(begins: Bools) -> tuple[Int64s, Int64s]:
    """Of each row the first and the last of its stretch, where the rows that begin one are marked; the first does."""
    begins[:1] = True
    starts = np.flatnonzero(begins)
    sizes = np.diff(starts, append=len(begins))
    return np.repeat(starts, sizes), np.repeat(starts + sizes - 1, sizes)


def _order(plan: MatchesPlan, columns: Columns, *, unique: bool) -> Int64s:
    """Row numbers in total order. Raises BadEventsError where two events have one id, and that is to be `unique`."""
    schema = plan.schema
    if unique and not columns.distinct(schema.id_order):
        raise BadEventsError(f"two events have the same '{schema.event_id}'")
    sequence = (schema.sequence,) if schema.sequence is not None else ()
    places = columns.places((schema.event_time, *sequence, schema.id_order))
    if not unique or not len(places) or places.max() >= len(places):  # repeated, or of some rows of a larger table
        return np.argsort(places)
    order = np.empty(len(places), np.int64)
    order[places] = np.arange(len(places))
    return order


def _bits(masks: list[Bools]) -> UInt64s:
    bits = np.zeros(len(masks[0]) if masks else 0, np.uint64)
    for k, mask in enumerate(masks):
        bits |= mask.astype(np.uint64) << np.uint64(k)
    return bits
