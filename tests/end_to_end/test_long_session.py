"""One Spark session with the settings of a local project, for many small deliveries and many chunks of a backfill.

Java's compiler has room for so much code; once that is used up it says so and stops, and everything after it is slow.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from tests.support.own_source import FALLING, start
from trendlake.pipelines.project.paths import find_project

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.chaos]

DELIVERIES, CHUNKS = 500, 300
SCRIPT = """
import json, sys, time
from datetime import UTC, datetime, timedelta
from pathlib import Path
import pyarrow as pa
from trendlake.jobs.actions.backfill import run_backfill
from trendlake.jobs.terminal.workspace import find_place, session
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.ingest.deliver import create_source, ingest

deliveries, chunks = int(sys.argv[1]), int(sys.argv[2])
place = find_place(Path(sys.argv[3]), None)
contract = load_contract(place.project.contract_path("trades"))
begin, took = datetime(2026, 1, 5, tzinfo=UTC), {"deliveries": [], "chunks": []}
with session(place, "a long session") as lake:
    create_source(lake, place.warehouse.source("trades"), contract)
    for number in range(deliveries):
        at = [begin + timedelta(minutes=number, seconds=second) for second in range(5)]
        rows = pa.table({
            "id": [f"{number}-{i}" for i in range(5)], "at": pa.array(at, pa.timestamp("us", "UTC")),
            "company": ["A"] * 5, "price": pa.array([5, 4, 3, 2, 1], pa.int64()),
        })
        began = time.monotonic()
        record = ingest(lake, contract, [rows], feed=f"f{number}", run_id=f"r{number}")
        assert record.rows_inserted == 5
        took["deliveries"].append(time.monotonic() - began)
    end = (begin + timedelta(minutes=chunks)).isoformat()
    began = time.monotonic()
    for document in run_backfill(place, lake, "falling", begin.isoformat(), end, 60_000_000, False, False):
        took["chunks"].append(time.monotonic() - began)
        began = time.monotonic()
print("TOOK" + json.dumps(took))
"""


def test_no_code_is_thrown_away(tmp_path: Path) -> None:
    """No word of Java's about its code cache; how much slower the last were than the first is printed only."""
    start(tmp_path, tmp_path / "trades.csv", "id,at,company,price\nx,2026-01-05T00:00:00Z,A,1\n")
    (tmp_path / "conf" / "patterns" / "falling.yaml").write_text(FALLING)
    profile = find_project(tmp_path).root / "conf" / "profiles" / "local.yaml"
    assert "TieredStopAtLevel=1" in profile.read_text()  # the compiler with the least room
    command = [sys.executable, "-c", SCRIPT, str(DELIVERIES), str(CHUNKS), str(tmp_path)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "CodeCache" not in done.stdout + done.stderr
    took = json.loads(done.stdout.rsplit("TOOK", 1)[1])
    assert len(took["deliveries"]) == DELIVERIES
    assert len(took["chunks"]) >= CHUNKS
    for name, seconds in took.items():
        some = max(len(seconds) // 10, 1)
        ratio = median(seconds[-some:]) / median(seconds[some : 3 * some])
        print(f"{name}: the last {some} took {ratio:.2f} times as long as {2 * some} near the beginning")
