"""`make bench-flink`: install Flink's jars where they are not, run the peer, show the table."""

from __future__ import annotations

import os
from pathlib import Path

from bench.flink.peer import flink_cep, install
from bench.measured import show

if __name__ == "__main__":
    folder = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve() / "bench"
    install(folder / "flink")
    show(flink_cep(folder / "flink"), "bench-flink")
