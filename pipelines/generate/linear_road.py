"""The Linear Road stream of GRETA's section 10.1: position reports whose rate grows to 4,000 a second in 3 hours.

A small traffic simulation in the terms of that benchmark: one direction of one road of 100 segments, a mile each; every
vehicle on it reports each 30 seconds; speeds are whole miles an hour from 0 to 100. A segment is jammed now and then,
in half of the cases by an accident: then an Accident event marks its beginning. Vehicles slow down where it is jammed.
(Query Q3 looks for slowing vehicles where there was no accident.) The number of vehicles grows steadily from none, and
so does the rate; one that leaves the road makes room for a new one.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trendlake.pipelines.generate.columns import event_ids, event_times, named

SEGMENTS = 100
FEET = 5_280
"""Length of a segment."""
EVERY = 30.0
"""Seconds between two reports of a vehicle."""
FEET_A_TICK = EVERY * FEET / 3_600
"""How far a vehicle comes between two reports, for each mile an hour."""
LEAVES = 1 / 30
"""Chance to leave the road after a report: a mean trip of 15 minutes."""
CRUISE, CRAWL = 60.0, 8.0
"""Speeds that vehicles tend to, in miles an hour: on a free segment and in a jam."""
JAM_EVERY = 1_200.0
"""Mean seconds between the beginnings of two jams of one segment."""
JAM_MINUTES = (3, 10)

SCHEMA = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_time", pa.timestamp("us", tz="UTC")),
        ("event_type", pa.string()),
        ("vehicle", pa.int64()),
        ("segment", pa.int32()),
        ("position", pa.int32()),
        ("speed", pa.int32()),
    ]
)


def linear_road(events: int, rate: float, seed: int, start_us: int) -> pa.Table:
    """The first `events` rows, in the order of time, of a stream whose rate has grown to `rate` when they end.

    `vehicle` and `speed` of an Accident are NULL; `position` is in feet from the beginning of the road.
    """
    chance = np.random.default_rng(seed)
    # More is simulated than asked for, and cut. What comes is what is expected, give or take the root of it at most;
    # and it grows with the square of the time.
    expected = events + 8 * math.sqrt(events) + 16
    seconds = 2 * events / rate * math.sqrt(expected / events)
    jammed, accidents = _jams(chance, seconds)
    reports = _drive(chance, seconds, max(1, round(2 * expected * EVERY / seconds)), jammed)
    nothing = np.full(len(accidents[0]), -1)
    times, segment, position, vehicle, speed = (
        np.concatenate(parts) for parts in zip((*accidents, nothing, nothing), reports, strict=True)
    )
    order = np.argsort(times, kind="stable")[:events]
    if len(order) < events:
        raise AssertionError(f"{len(order)} of {events} events simulated")
    vehicle, speed = vehicle[order], speed[order]
    return pa.table(
        [
            event_ids("road-", events),
            event_times(times[order], start_us),
            named(("Position", "Accident"), (vehicle < 0).astype(np.int8)),
            pa.array(vehicle, mask=vehicle < 0),
            pa.array(segment[order].astype(np.int32)),
            pa.array(position[order].astype(np.int32)),
            pa.array(speed.astype(np.int32), mask=vehicle < 0),
        ],
        schema=SCHEMA,
    )


Accidents = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]
"""Time, segment, position."""
Reports = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Time, segment, position, vehicle, speed."""


def _jams(chance: np.random.Generator, seconds: float) -> tuple[NDArray[np.bool_], Accidents]:
    """Whether each segment is jammed in each minute, (SEGMENTS, minutes); and the accidents that began half of it."""
    minutes = int(seconds // 60) + 2
    count = chance.poisson(SEGMENTS * seconds / JAM_EVERY)
    segment = chance.integers(0, SEGMENTS, count)
    begin = chance.random(count) * seconds
    lasts = chance.integers(JAM_MINUTES[0], JAM_MINUTES[1] + 1, count)
    jammed = np.zeros((SEGMENTS, minutes), np.bool_)
    for where, since, length in zip(segment, (begin // 60).astype(int), lasts, strict=True):
        jammed[where, since : since + length] = True
    crashed = chance.random(count) < 0.5
    where = segment[crashed]
    return jammed, (begin[crashed], where, where * FEET + chance.integers(0, FEET, len(where)))


def _drive(chance: np.random.Generator, seconds: float, places: int, jammed: NDArray[np.bool_]) -> Reports:
    """The reports of up to `places` vehicles at a time, tick by tick for all of them at once.

    The places are taken evenly over the stream, and kept: who leaves is followed by a new vehicle. The first report
    comes within a tick of that, so that reports a second are the places taken divided by `EVERY`, at any time.
    """
    enters = (np.arange(places) + chance.random(places)) * (seconds / places) + chance.random(places) * EVERY
    vehicle = np.arange(places)
    newest = places
    feet = chance.random(places) * SEGMENTS * FEET
    speed = chance.normal(CRUISE, 10.0, places)
    reports: list[Reports] = []
    for tick in range(int(seconds // EVERY) + 1):
        active = np.flatnonzero(enters + tick * EVERY < seconds)
        if not len(active):
            break
        now = enters[active] + tick * EVERY
        segment = (feet[active] // FEET).astype(np.int64)
        tends = np.where(jammed[segment, (now // 60).astype(np.int64)], CRAWL, CRUISE)
        pace = speed[active] + 0.4 * (tends - speed[active]) + chance.normal(0.0, 5.0, len(active))
        pace = np.clip(pace, 0.0, 100.0)
        whole = np.round(pace).astype(np.int64)
        reports.append((now, segment, feet[active].astype(np.int64), vehicle[active], whole))
        speed[active] = pace
        feet[active] += pace * FEET_A_TICK
        gone = active[(feet[active] >= SEGMENTS * FEET) | (chance.random(len(active)) < LEAVES)]
        vehicle[gone] = newest + np.arange(len(gone))
        newest += len(gone)
        feet[gone] = chance.random(len(gone)) * SEGMENTS * FEET
        speed[gone] = chance.normal(CRUISE, 10.0, len(gone))
    parts = [np.concatenate(column) for column in zip(*reports, strict=True)]
    return parts[0], parts[1], parts[2], parts[3], parts[4]
