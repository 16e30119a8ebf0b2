"""`make bench-trino`: fetch Trino's jars where they are missing, run the peer, show the table."""

from __future__ import annotations

import os
from pathlib import Path

from bench.measured import show
from bench.trino.row_patterns import install, row_patterns

if __name__ == "__main__":
    folder = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve() / "bench" / "trino"
    install(folder)
    show(row_patterns(folder), "bench-trino")
