"""The cluster monitoring stream of GRETA's section 10.1, by its table 2.

| attribute | distribution | from - to |
|---|---|---|
| mapper, job | uniform | 0 - 10 |
| cpu, memory | uniform | 0 - 1,000 |
| load | Poisson, lambda = 100 | 0 - 10,000 |

3,000 events a second for 3 hours, times in seconds. Query Q2 speaks of a job's start and end too, which the table does
not mention: here the events of one job on one mapper follow each other in runs, each a Start, measurements, an End.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trendlake.pipelines.generate.columns import arrivals, event_ids, event_times, named, run_starts

MAPPERS = JOBS = 11
RUN_SECONDS = 20.0
"""Mean length of a run: some fit in a window of a minute, some do not."""
LEAST_RUN = 4.0
"""Events of a run on average, at least: however low the rate, a run has measurements."""
TYPES = ("Start", "Measurement", "End")
LOAD_LAMBDA, LOAD_LIMIT = 100.0, 10_000

SCHEMA = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_time", pa.timestamp("us", tz="UTC")),
        ("event_type", pa.string()),
        ("mapper", pa.int32()),
        ("job", pa.int32()),
        ("cpu", pa.int32()),
        ("memory", pa.int32()),
        ("load", pa.int32()),
    ]
)


def cluster(events: int, rate: float, seed: int, start_us: int) -> pa.Table:
    """`events` rows of `SCHEMA`, in the order of time; Start and End carry no measurements (NULL)."""
    chance = np.random.default_rng(seed)
    mapper = chance.integers(0, MAPPERS, events)
    job = chance.integers(0, JOBS, events)
    kind = _kinds(chance, mapper * JOBS + job, RUN_SECONDS * rate / (MAPPERS * JOBS))
    silent = kind != 1
    return pa.table(
        [
            event_ids("cluster-", events),
            event_times(arrivals(chance, events, rate), start_us),
            named(TYPES, kind),
            pa.array(mapper.astype(np.int32)),
            pa.array(job.astype(np.int32)),
            pa.array(chance.integers(0, 1_001, events).astype(np.int32), mask=silent),
            pa.array(chance.integers(0, 1_001, events).astype(np.int32), mask=silent),
            pa.array(np.minimum(chance.poisson(LOAD_LAMBDA, events), LOAD_LIMIT).astype(np.int32), mask=silent),
        ],
        schema=SCHEMA,
    )


def _kinds(chance: np.random.Generator, pair: NDArray[np.int64], run_events: float) -> NDArray[np.int8]:
    """For each event the index of its type: within each pair runs of `run_events` on average, at least 2."""
    count = len(pair)
    order = np.argsort(pair, kind="stable")
    newcomer = run_starts(pair[order])
    lengths = 1 + chance.geometric(1 / (max(run_events, LEAST_RUN) - 1), count // 2 + 1)
    begins = np.cumsum(lengths)
    first = newcomer.copy()
    first[begins[begins < count]] = True
    first[1:] &= newcomer[1:] | ~newcomer[:-1]  # a run that a pair's first event would have to itself goes on
    last = np.ones(count, np.bool_)
    last[:-1] = first[1:]
    kind = np.ones(count, np.int8)
    kind[order[last]] = 2
    kind[order[first]] = 0
    return kind
