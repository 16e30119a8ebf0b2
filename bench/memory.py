"""Peak memory of a worker: `python -m bench.memory N` computes one window of N events as a Spark worker would.

Counted: everything the process holds at its peak beyond what it held when warm and idle, so the Arrow batches it is
given too, which arrive one by one and are made as they arrive. Linux only (`/proc`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.engine import FALLING, stock
from bench.measured import Measured, plan_of
from trendlake.pipelines.execute.pack import packer
from trendlake.pipelines.execute.shard_plan import Cut, Part
from trendlake.pipelines.execute.worker import kernel_of

BATCH = 100_000
BAR = 150
"""Bytes an event of the window."""


def batches(n: int, prices: np.ndarray[Any, Any]) -> Iterator[pa.RecordBatch]:
    """n events of type S, a millisecond apart, in batches like Spark's."""
    for first in range(0, n, BATCH):
        number = np.arange(first, min(first + BATCH, n), dtype=np.int64)
        yield pa.RecordBatch.from_pydict(
            {
                "event_time": pa.array(number * 1000, pa.timestamp("us", "UTC")),
                "price": prices[first : first + len(number)].copy(),
            }
        )


def held(name: str) -> int:
    """`VmRSS` or `VmHWM` of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {name}")


def peak_of(n: int) -> dict[str, float]:
    """Peak bytes of this process over one window of n falling prices, all distinct; and the bytes of its input."""
    rng = np.random.default_rng(5)
    prices = rng.permutation(n).astype(np.float64)
    plan = plan_of(FALLING, stock(1, prices[:1]))
    cut = Cut(range(1), 1)
    kernel, pack = kernel_of(plan, cut, n), packer(plan, [Part(plan, cut)])
    list(kernel(pack(batches(1000, prices))))
    given = sum(batch.nbytes for batch in pack(batches(n, prices)))
    Path("/proc/self/clear_refs").write_text("5")
    before = held("VmRSS")
    result = pa.Table.from_batches(kernel(pack(batches(n, prices))))
    return {"n": n, "peak": held("VmHWM") - before, "input": given, "log10": result["trends_log10"][0].as_py()}


def memory(n: int = 4_000_000) -> Measured:
    """The measure of the bench, taken in a process of its own."""
    done = subprocess.run([sys.executable, "-m", "bench.memory", str(n)], capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout)
    note = (
        f"{n:,} events in one window, a count near 10^{seen['log10']:.0f}; {seen['input'] / n:.0f} bytes are the Arrow "
        f"batches Spark sends, held throughout; counted: the peak beyond the idle worker"
    )
    return Measured("peak memory of a worker", seen["peak"] / n, "bytes an event", BAR, note, at_most=True)


if __name__ == "__main__":
    print(json.dumps(peak_of(int(sys.argv[1]))))
