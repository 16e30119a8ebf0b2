"""Matches as the rows a user asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.errors import NotSupportedError
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.events.arrays import arrow, numbers
from trendlake.cep_core.matches.compile.plan import MatchesPlan
from trendlake.cep_core.matches.kernels.buffer import listed
from trendlake.cep_core.matches.run.buffer import Chunk
from trendlake.cep_core.matches.run.events import Stream
from trendlake.cep_core.matches.run.match_ids import as_text
from trendlake.cep_core.matches.run.measures import Measures


def result_table(plan: MatchesPlan, stream: Stream, chunks: Iterable[Chunk]) -> pa.Table:
    """One row a match, columns of `plan.result_schema`: partition after partition, by the order of their ends."""
    rows = _Rows(plan, stream)
    return pa.concat_tables([plan.result_schema.empty_table(), *(rows.table(chunk) for chunk in chunks)])


class _Rows:
    def __init__(self, plan: MatchesPlan, stream: Stream) -> None:
        self.plan = plan
        self.schema = plan.result_schema
        self.stream = stream
        self.measures = Measures(plan, stream)
        self.kind = self.schema.field(plan.parts[0].variable).type.value_type
        self.words: Int64s | None = None
        if pa.types.is_int64(self.kind):
            self.words = numbers(stream.columns.raw(plan.schema.event_id).cast(self.kind))

    def table(self, chunk: Chunk) -> pa.Table:
        time = self.stream.time
        columns: list[Any] = [
            as_text(chunk.names),
            _times(time[chunk.first], self.schema.field("start").type),
            _times(time[chunk.last], self.schema.field("end").type),
            *(self._lists(chunk, k) for k in range(len(self.plan.parts))),
            *self.measures.columns(chunk),
        ]
        return pa.table(columns, schema=self.schema)

    def _lists(self, chunk: Chunk, part: int) -> pa.Array:
        """The ids of the events of one part, a list for each match."""
        offsets = np.zeros(len(chunk.lengths) + 1, np.int64)
        np.cumsum(chunk.lengths[:, part], out=offsets[1:])
        size = int(offsets[-1])
        if size >= 2**31:
            raise NotSupportedError(f"more than 2^31 events in one match or a few: {size:,}")
        if self.words is not None:
            values = np.frombuffer(pa.allocate_buffer(8 * size), np.int64)
            listed(chunk.events, chunk.bounds, part, self.words, values)
            ids = arrow(values)
        else:
            rows = np.empty(size, np.int64)
            listed(chunk.events, chunk.bounds, part, np.arange(self.stream.length), rows)
            ids = self.stream.columns.taken(self.plan.schema.event_id, rows).cast(self.kind)
        return pa.ListArray.from_arrays(arrow(offsets.astype(np.int32)), ids)


def _times(values: Int64s, kind: pa.DataType) -> pa.Array:
    return arrow(values).cast(kind)
