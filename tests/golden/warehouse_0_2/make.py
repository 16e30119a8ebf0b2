"""Makes a warehouse with the commands of the clone in which it runs: generated streams, and results of every kind.

    cd CLONE && .venv/bin/python FOLDER/make.py

FOLDER holds the project: `conf`, `data_contracts`. Writes two files into it: `warehouse.tar.gz`, the tables, and
`rows.json`, what `trendlake show --json` printed for each pattern. The code at 481e008 made the warehouse of 0.2. It is
never made again, because it stands for the tables that users have. `shorter_key` shows each row twice, as that code
published it after an edit of the key.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = Path(__file__).resolve().parent
STATE = FOLDER / "state"
STREAMS = {"stock": (480, 1), "retail": (400, 1), "quotes": (480, 1), "posts": (160, 0.5), "feeds": (60, 0.1)}
"""Events and events a second of each stream."""
SHORT = ("down_trends", "volume_alarm", "dips", "shorter_key")
FIRST = ("--from", "2026-01-05T09:00", "--to", "2026-01-05T09:04")
DAY = ("--from", "2026-01-05", "--to", "2026-01-06")
LONG = ("way_out", "rumors", "reposted")
"""Patterns whose windows are longer than the stream."""


def trendlake(*arguments: str | Path) -> str:
    """Runs a command of this clone over the project. Returns what it writes to stdout."""
    environment = os.environ | {"TRENDLAKE_STATE": str(STATE), "TRENDLAKE_PROJECT": str(FOLDER)}
    command = [sys.executable, "-m", "trendlake.jobs.main", *map(str, arguments)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


def deliveries(stream: str, events: int, rate: float) -> list[Path]:
    """The stream as files: most events, then late events and a correction, which `revise` will see."""
    whole = STATE / "files" / f"{stream}.parquet"
    trendlake("generate", stream, "--events", str(events), "--rate", str(rate), "--out", whole)
    rows: list[dict[str, Any]] = pq.read_table(whole).to_pylist()
    late = [row for number, row in enumerate(rows) if number % 20 == 7]
    first = [row for row in rows if row not in late]
    changed = dict(first[11])
    if "price" in changed:
        changed["price"] += 3.5
        broken = dict(first[40], event_id="stock-999999999" if stream == "stock" else "quote-999999999", price=-1.0)
        first.append(broken)  # breaks the contract: quarantined
    schema = pq.read_schema(whole)
    files = []
    for name, part in (("first", first), ("late", [*late, changed])):
        files.append(STATE / "files" / f"{stream}_{name}.parquet")
        pq.write_table(pa.Table.from_pylist(part, schema), files[-1])
    return files


def main() -> None:
    shutil.rmtree(STATE, ignore_errors=True)
    (STATE / "files").mkdir(parents=True)
    late = {}
    for stream, (events, rate) in STREAMS.items():
        first, late[stream] = deliveries(stream, events, rate)
        trendlake("ingest", stream, first)
    edited = FOLDER / "conf" / "patterns" / "shorter_key.yaml"
    text = edited.read_text()
    edited.write_text(text.replace("group_by: [sector]", "group_by: [sector, company]"))
    trendlake("run", "shorter_key", *FIRST)
    edited.write_text(text)
    trendlake("run", *SHORT, *FIRST)
    trendlake("run", "busiest", *FIRST)
    trendlake("run", *LONG, *DAY)
    for stream, file in late.items():
        trendlake("ingest", stream, file)
    trendlake("revise", *SHORT[:3], *LONG)
    trendlake("revise", "busiest")
    rows = {
        name: json.loads(trendlake("show", name, "--limit", "1000", "--json")) for name in (*SHORT, "busiest", *LONG)
    }
    (FOLDER / "rows.json").write_text(json.dumps(rows, indent=1) + "\n")
    with tarfile.open(FOLDER / "warehouse.tar.gz", "w:gz") as archive:
        archive.add(STATE / "warehouse", "warehouse", filter=_kept)
    shutil.rmtree(STATE)


def _kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """The member without its owner; None for staged rows, and for checksums of Hadoop's local file system."""
    name = Path(member.name)
    if "staging" in name.parts or (name.name.startswith(".") and name.suffix == ".crc"):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main()
