"""Times without a zone: moments of the clocks of a time zone.

Offsets come from the package `tzdata` (`cep_core.events.zones`): Arrow's have no daylight saving time after 2037.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.events.arrays import numbers
from trendlake.cep_core.events.zones import zone as zone_of
from trendlake.cep_core.events.zones import zone_fault

UTC = "UTC"
HOUR_US = 3_600_000_000
EPOCH = datetime(1970, 1, 1)
FIRST_US, LAST_US = -719_162 * 24 * HOUR_US, 2_932_897 * 24 * HOUR_US
"""The years 1 to 9999, microseconds since 1970: what Python's calendar holds."""
MICROSECOND = timedelta(microseconds=1)


def zoneless_columns(events: pa.Table, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the named columns that hold timestamps without a zone."""
    kinds = {name: events.schema.field(name).type for name in names if name in events.column_names}
    return tuple(name for name, kind in kinds.items() if pa.types.is_timestamp(kind) and kind.tz is None)


def zoneless_in_words(names: Sequence[str]) -> str:
    """The assumption about such columns, in words."""
    has = "has" if len(names) == 1 else "have"
    return (
        f"{', '.join(names)} {has} times without a zone, which are read as UTC; state the zone: "
        'time_zone="America/New_York" for local times, time_zone="UTC" for these'
    )


def in_zone(events: pa.Table, names: Sequence[str], zone: str) -> pa.Table:
    """The events with the named columns, timestamps without a zone, as moments: of two moments of one local time the
    earlier. Raises BadEventsError for an unknown zone, and for a time that clocks skip."""
    fault = zone_fault(zone)
    if fault is not None:
        message, hint = fault
        raise BadEventsError(f"time_zone: {message}", hint=hint)
    for name in names:
        moments = _moments(events.column(name), name, zone)
        events = events.set_column(events.column_names.index(name), name, moments)
    return events


def _moments(column: pa.ChunkedArray, name: str, zone: str) -> pa.Array:
    try:
        local = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        local = local.cast(pa.timestamp("us"))
    except pa.ArrowInvalid as error:
        raise BadEventsError(f"column '{name}': a value does not fit: {error}") from None
    missing = ~numbers(pc.is_valid(local))
    times = numbers(local.cast(pa.int64()), 0)
    for outside in np.flatnonzero(~missing & ((times < FIRST_US) | (times >= LAST_US)))[:1].tolist():
        raise BadEventsError(f"column '{name}', row {outside + 1}: a time outside of the years 1 to 9999 has no zone")
    micros, skipped = moments_of(times, zone)
    for row in np.flatnonzero(skipped & ~missing)[:1].tolist():
        count = int(np.count_nonzero(skipped & ~missing))
        more = f", and {count - 1:,} more" if count > 1 else ""
        raise BadEventsError(
            f"column '{name}', row {row + 1}{more}: {EPOCH + int(times[row]) * MICROSECOND} does not exist in {zone}, "
            "where clocks were set forward over it",
            hint="correct the times, or state the zone whose clocks they show",
        )
    return pa.array(micros, pa.int64(), mask=missing).cast(pa.timestamp("us", UTC))


def moments_of(times: Int64s, zone: str) -> tuple[Int64s, Bools]:
    """Local times (microseconds from 1970, within the years 1 to 9999) of a zone as moments, of two moments of one time
    the earlier; and which times clocks skip."""
    if zone == UTC:
        return times, np.zeros(len(times), np.bool_)
    hours, of_row = np.unique(times // HOUR_US, return_inverse=True)
    offsets_of_hours = [_offset_of_hour(zone, hour) for hour in hours.tolist()]
    offsets = np.array([offset or 0 for offset in offsets_of_hours], np.int64)[of_row]
    skipped = np.zeros(len(times), np.bool_)
    for row in np.flatnonzero(np.array([offset is None for offset in offsets_of_hours], np.bool_)[of_row]).tolist():
        offset = _offset(zone, int(times[row]))
        offsets[row], skipped[row] = offset or 0, offset is None
    return times - offsets, skipped


@lru_cache(maxsize=1 << 16)
def _offset_of_hour(zone: str, hour: int) -> int | None:
    """The offset of an hour of local time (counted from 1970), microseconds; None if it changes within the hour."""
    start = EPOCH + timedelta(hours=hour)
    ends = (start, start + (timedelta(hours=1) - MICROSECOND))
    offsets = {_offset_at(zone, end, fold) for end in ends for fold in (0, 1)}
    return offsets.pop() if len(offsets) == 1 else None


def _offset(zone: str, time: int) -> int | None:
    """The offset of a local time (microseconds from 1970), the earlier moment of two; None where there is no such
    time."""
    local = EPOCH + timedelta(microseconds=time)
    before, after = _offset_at(zone, local, 0), _offset_at(zone, local, 1)
    return before if before >= after else None  # PEP 495: in a gap the later offset is the larger


def _offset_at(zone: str, local: datetime, fold: int) -> int:
    offset = local.replace(tzinfo=zone_of(zone), fold=fold).utcoffset()
    return 0 if offset is None else offset // MICROSECOND
