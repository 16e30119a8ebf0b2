"""Flink CEP on falling prices, GRETA's first query, for as many events as it ends with in a given time; ours beside it.

Flink builds every trend; their number doubles with each event. Both answers are compared: 2^n - 1 trends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from bench.engine import FALLING
from bench.measured import Measured, best, plan_of
from cep_core import run_plan

HERE = Path(__file__).parent
SIZES = (8, 10, 12, 14, 16, 18, 20)
SECONDS = 150


def jars(folder: Path) -> list[Path]:
    """Flink's jars in the environment at `folder`; none when it is not installed."""
    return sorted(folder.glob("venv/lib/python*/site-packages/pyflink/lib/*.jar"))


def install(folder: Path) -> None:
    """Flink's jars into an environment of their own, once."""
    if jars(folder):
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder / "venv")], check=True)
    pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--require-hashes", "-r", str(HERE / "requirements.txt")], check=True)
    if not jars(folder):
        raise SystemExit(f"the package holds no jars where they are looked for: {folder}")


def java(name: str) -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / name) if home else name


def flink_cep(folder: Path, seconds: float = SECONDS) -> list[Measured]:
    """A line for each number of events that Flink ends with before `seconds` have passed in all."""
    path = os.pathsep.join(str(jar) for jar in jars(folder))
    classes = folder / "classes"
    subprocess.run([java("javac"), "-cp", path, "-d", str(classes), str(HERE / "FallingPrices.java")], check=True)
    command = [java("java"), "-Xmx2g", "-cp", f"{path}{os.pathsep}{classes}", "FallingPrices", "1", *map(str, SIZES)]
    started = time.monotonic()
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as peer:
        timer = threading.Timer(seconds, peer.kill)
        timer.start()
        lines = [line.split() for line in peer.stdout or ()]
        timer.cancel()
    for n, trends, taken in ((int(line[0]), int(line[1]), float(line[2])) for line in lines if len(line) == 3):
        if trends != 2**n - 1:
            raise SystemExit(f"Flink finds {trends} trends of {n} falling prices, not {2**n - 1}")
        if n > 1:  # the first only warms up
            rows.append(_beside(n, taken))
    if rows and len(rows) < len(SIZES):
        stopped = f"; {SIZES[len(rows)]} had not ended when stopped {time.monotonic() - started:.0f} s after the start"
        rows[-1] = replace(rows[-1], note=rows[-1].note + stopped)
    return rows


def _beside(n: int, theirs: float) -> Measured:
    stamp = pa.array([1000 * i for i in range(n)], pa.timestamp("us", "UTC"))
    events = pa.table({"event_time": stamp, "event_type": ["S"] * n, "price": [float(n - i) for i in range(n)]})
    plan = plan_of(FALLING, events)
    ours, result = best(lambda: run_plan(plan, events))
    if int(result["trends"][0].as_py()) != 2**n - 1:
        raise SystemExit(f"the engine counts {result['trends'][0]} trends of {n} falling prices")
    note = f"{theirs:.2f} s (its job's start included) against {ours * 1000:.2f} ms; both find {2**n - 1:,} trends"
    return Measured(f"Flink CEP, {n} falling prices", theirs / ours, "x", None, note)
