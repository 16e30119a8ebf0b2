"""Matches as the rows a user asked for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from cep_core.errors import NotSupportedError
from cep_core.kernels.match_buffer import names
from cep_core.matches.buffer import Chunk
from cep_core.matches.finish import Finish

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def result_table(finish: Finish, chunks: Iterable[Chunk]) -> pa.Table:
    """One row a match, columns of `plan.result_schema`: partition after partition, by the order of their ends."""
    digests = _Digests(finish.stream.table.column(finish.plan.schema.event_id))
    tables = [_table(finish, chunk, digests) for chunk in chunks]
    return pa.concat_tables([finish.plan.result_schema.empty_table(), *tables])


class _Digests:
    """Two uint64 for each event that some match has, of which match ids are made: the same in every run."""

    def __init__(self, ids: pa.ChunkedArray) -> None:
        self.ids = ids
        self.known = np.zeros(len(ids), bool)
        self.values = np.zeros((len(ids), 2), np.uint64)

    def of(self, events: Any) -> Any:
        """The array, filled in for `events`."""
        asked = np.zeros(len(self.known), bool)
        asked[events] = True
        new = np.flatnonzero(asked & ~self.known)
        cells = self.ids.take(pa.array(new)).to_pylist()
        found = b"".join(blake2b(repr(one).encode(), digest_size=16).digest() for one in cells)
        self.values[new] = np.frombuffer(found, "<u8").reshape(-1, 2)
        self.known[new] = True
        return self.values


def _table(finish: Finish, found: Chunk, digests: _Digests) -> pa.Table:
    plan, stream = finish.plan, finish.stream
    schema = plan.result_schema
    named = np.zeros((len(found.lengths), 2), np.uint64)
    names(digests.of(found.events), found.events, found.lengths, named)
    bounds = found.bounds
    first, last = found.events[bounds[:, 0]], found.events[bounds[:, -1] - 1]
    columns: list[Any] = [
        pa.array([f"{a:016x}{b:016x}" for a, b in named.tolist()], pa.string()),
        _times(stream.time[first], schema.field("start").type),
        _times(stream.time[last], schema.field("end").type),
    ]
    id_type = schema.field(plan.parts[0].variable).type.value_type
    ids = stream.table.column(plan.schema.event_id).cast(id_type).combine_chunks()
    columns += [_lists(ids, found, bounds, k) for k in range(len(plan.parts))]
    measured = [finish.measured(match) for match in found.matches()] if plan.measures else []
    for number, measure in enumerate(plan.measures):
        columns.append(_values([row[number] for row in measured], schema.field(measure.name).type))
    return pa.table(columns, schema=schema)


def _times(values: Any, kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int64()).cast(kind)


def _lists(ids: pa.Array, found: Chunk, bounds: Any, part: int) -> pa.Array:
    """The ids of the events of one part, a list for each match."""
    parts = np.tile(np.arange(found.lengths.shape[1]), len(found.lengths))
    mine = np.repeat(parts == part, found.lengths.reshape(-1))
    offsets = np.zeros(len(bounds) + 1, np.int64)
    offsets[1:] = np.cumsum(found.lengths[:, part])
    if offsets[-1] >= 2**31:
        raise NotSupportedError(f"more than 2^31 events in the matches of one worker: {offsets[-1]:,}")
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), ids.take(pa.array(found.events[mine])))


def _values(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return _times(values, kind)
    if pa.types.is_date(kind):
        return pa.array([None if v is None else (_EPOCH + timedelta(microseconds=v)).date() for v in values], kind)
    return pa.array(values, kind)
