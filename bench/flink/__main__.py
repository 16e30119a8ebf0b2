"""`make bench-flink`: install Flink's jars where they are not, run the peer, show the table."""

from __future__ import annotations

import os
from pathlib import Path

from bench.flink.java import install
from bench.flink.peers import peers
from bench.measured import show

if __name__ == "__main__":
    folder = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve() / "bench"
    install(folder / "flink")
    show(peers(folder / "flink"), "bench-flink")
