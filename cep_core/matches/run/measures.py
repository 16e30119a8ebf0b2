"""`return` of kind matches: measures as columns over many matches at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import AnyArray, Bools
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.cep_core.events.codes import ordered_codes
from trendlake.cep_core.events.normalise import reals
from trendlake.cep_core.expressions.columnar import evaluate, typed
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.matches.compile.plan import MatchesPlan
from trendlake.cep_core.matches.compile.registers import places
from trendlake.cep_core.matches.kernels import measures as k
from trendlake.cep_core.matches.run.buffer import Chunk
from trendlake.cep_core.matches.run.events import Stream

FUNCTIONS = {"sum": k.SUM, "avg": k.SUM, "min": k.MIN, "max": k.MAX, "count": k.MIN}


class Measures:
    """The measures of a plan, of matches of one stream."""

    def __init__(self, plan: MatchesPlan, stream: Stream) -> None:
        self.plan = plan
        self.stream = stream
        self.part = places(plan)
        self._words: dict[str, tuple[AnyArray, Bools, AnyArray | None]] = {}

    def columns(self, chunk: Chunk) -> list[pa.Array]:
        """One column a measure, of its result type. Raises BadEventsError where whole numbers overflow."""
        count = len(chunk.lengths)
        return [
            typed(evaluate(measure.expression, lambda read: self._value(read, chunk), count), measure.family)
            for measure in self.plan.measures
        ]

    def _value(self, read: s.Attribute, chunk: Chunk) -> pa.Array:
        """The value of an attribute or an aggregate, for each match; NULL where the variable has no event."""
        part = self.part[read.variable]
        if isinstance(read, s.Indexed) and not read.name:
            return arrow(chunk.lengths[:, part])
        if isinstance(read, s.Indexed) and read.index == "all":
            return self._aggregate(read, part, chunk)
        last = isinstance(read, s.Indexed) and read.index == "LEN"
        at = chunk.bounds[:, part + 1] - 1 if last else chunk.bounds[:, part]
        column, missing = self.stream.array(read.name), chunk.lengths[:, part] == 0
        if not missing.any():
            return column.take(arrow(chunk.events[at]))
        present = np.zeros(len(at), chunk.events.dtype)
        present[~missing] = chunk.events[at[~missing]]
        return column.take(arrow(present, missing))

    def _aggregate(self, read: s.Indexed, part: int, chunk: Chunk) -> pa.Array:
        values, null, texts = self._column(read.name)
        out, counts = np.empty(len(chunk.lengths), values.dtype), np.empty(len(chunk.lengths), np.int64)
        asked = FUNCTIONS[read.function], chunk.events, chunk.bounds, part, values, null, out, counts
        if values.dtype == np.float64:
            k.real(*asked)
        elif not k.whole(*asked):
            raise BadEventsError("an expression cannot be computed: overflow")
        if read.function == "count":
            return arrow(counts)
        if read.function == "avg":
            out = out.astype(np.float64) / np.maximum(counts, 1)
        missing = counts == 0
        if out.dtype == np.float64:
            missing |= np.isnan(out)
        if texts is not None:
            return texts.take(arrow(out, missing))
        return arrow(out, missing)

    def _column(self, name: str) -> tuple[AnyArray, Bools, AnyArray | None]:
        """A column as numbers and a mask of NULLs; of strings their codes, and the strings by code."""
        if name not in self._words:
            array = reals(self.stream.array(name))
            null = ~valid(array)
            texts = None
            if pa.types.is_string(array.type):
                (codes,), distinct = ordered_codes(array)
                first = np.zeros(distinct, np.int64)
                first[codes[~null]] = np.flatnonzero(~null)
                values, texts = np.array(codes, np.int64), array.take(arrow(first))
            elif pa.types.is_null(array.type):
                values = np.zeros(len(array), np.int64)
            elif pa.types.is_boolean(array.type):
                values = numbers(array, False).astype(np.int64)
            else:
                values = np.array(numbers(array, 0))
            self._words[name] = values, null, texts
        return self._words[name]
