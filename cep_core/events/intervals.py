"""Events that last: from the time in a column of their own to their event time, exclusive."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.events.arrays import numbers, valid
from trendlake.cep_core.events.normalise import normalise
from trendlake.cep_core.language.unparse import moment

DURATION = "duration"
"""The attribute of an event with an interval: the length of the part of it in the window."""


def beginnings(column: pa.Array, ends: Int64s) -> Int64s:
    """The times at which events begin, microseconds: those in `column`; the end (`ends`) of points, whose value is
    NULL."""
    column = normalise(column)
    return ends if pa.types.is_null(column.type) else np.where(valid(column), numbers(column, 0), ends)


def refuse_reversed(name: str, begins: Int64s, ends: Int64s) -> None:
    """Raises BadEventsError where an event begins, by the column `name`, after it ends."""
    wrong = np.flatnonzero(begins > ends)
    if len(wrong):
        when = f"{moment(int(begins[wrong[0]]))} and ends at {moment(int(ends[wrong[0]]))}"
        raise BadEventsError(f"an event starts at {when}: '{name}' is later than its time")
