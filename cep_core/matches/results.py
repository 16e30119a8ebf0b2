"""Matches as the rows a user asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from cep_core.matches.finish import Finish, Match

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def result_table(finish: Finish, matches: list[Match]) -> pa.Table:
    """One row a match, columns of `plan.result_schema`, in the order of ends and match ids."""
    plan, stream = finish.plan, finish.stream
    schema = plan.result_schema
    ids = stream.raw(plan.schema.event_id)
    names = [match_id([[ids[event] for event in part] for part in match]) for match in matches]
    order = sorted(range(len(matches)), key=lambda i: (matches[i][-1][-1], names[i]))
    matches = [matches[i] for i in order]
    columns: list[Any] = [
        pa.array([names[i] for i in order], pa.string()),
        _times([finish.time[match[0][0]] for match in matches], schema.field("start").type),
        _times([finish.time[match[-1][-1]] for match in matches], schema.field("end").type),
    ]
    id_type = schema.field(plan.parts[0].variable).type.value_type
    column = stream.table.column(plan.schema.event_id).cast(id_type).combine_chunks()
    columns += [_lists(column, [match[k] for match in matches]) for k in range(len(plan.parts))]
    measured = [finish.measured(match) for match in matches] if plan.measures else []
    for number, measure in enumerate(plan.measures):
        values = [row[number] for row in measured]
        columns.append(_values(values, schema.field(measure.name).type))
    return pa.table(columns, schema=schema)


def match_id(ids: list[list[Any]]) -> str:
    """32 hex digits of the event ids by part: the same match has the same id in every run."""
    return blake2b(repr(ids).encode(), digest_size=16).hexdigest()


def _times(values: list[int], kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int64()).cast(kind)


def _lists(column: pa.Array, events: list[list[int]]) -> pa.Array:
    offsets = np.zeros(len(events) + 1, np.int32)
    offsets[1:] = np.cumsum([len(one) for one in events])
    flat = pa.array([event for one in events for event in one], pa.int64())
    return pa.ListArray.from_arrays(pa.array(offsets), column.take(flat))


def _values(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return _times(values, kind)
    if pa.types.is_date(kind):
        return pa.array([None if v is None else (_EPOCH + timedelta(microseconds=v)).date() for v in values], kind)
    return pa.array(values, kind)
