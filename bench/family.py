"""A family of 100,000 members over a million events, in a process of its own: `python -m bench.family MEMBERS EVENTS`.

RUMOR's workload W1 as one pattern: `SEQ(S s, T t)`, `s.a0 = $c`, `t.a0 = $d`, with the constants in a CSV file.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.measured import Measured
from bench.memory import held
from bench.workloads import stream
from trendlake.cep_core import compile_query, run_plan
from trendlake.cep_core.events.schema import schema_of
from trendlake.pipelines.generate.rumor import VALUES

PATTERN = """\
name: pairs
source: rumor
kind: matches
pattern: SEQ(S s, T t)
where: [s.a0 = $c, t.a0 = $d]
within: 100 seconds
for_each: {file: pairs.csv}
"""
MEMBERS, EVENTS = 100_000, 1_000_000
MINUTES, BYTES = 5, 2e9


def seen(members: int, events: int) -> dict[str, float]:
    """Processor seconds from the file to the rows, without those of making the events, and the peak of the process."""
    table = stream(events)
    numbers = np.random.default_rng(1).choice(VALUES * VALUES, members, replace=False)
    rows = "".join(f"{number // VALUES},{number % VALUES}\n" for number in numbers.tolist())
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pairs.csv").write_text(f"c,d\n{rows}")
        (Path(folder) / "pairs.yaml").write_text(PATTERN)
        start = time.process_time()
        result = run_plan(compile_query(Path(folder) / "pairs.yaml", schema_of(table)), table)
        seconds = time.process_time() - start
    return {"seconds": seconds, "peak": held("VmHWM"), "rows": result.num_rows}


def family() -> list[Measured]:
    """The measures of the bench."""
    command = [sys.executable, "-m", "bench.family", str(MEMBERS), str(EVENTS)]
    done = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    note = f"one pattern, {EVENTS:,} events, {done['rows']:,} rows"
    return [
        Measured(f"W1, a family of {MEMBERS:,}", done["seconds"] / 60, "minutes", MINUTES, note, at_most=True),
        Measured("the same, peak of the process", done["peak"] / 1e9, "GB", BYTES / 1e9, note, at_most=True),
    ]


if __name__ == "__main__":
    print(json.dumps(seen(int(sys.argv[1]), int(sys.argv[2]))))
