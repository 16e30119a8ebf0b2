"""Row patterns by Trino 435 in one process and by the engine: the same text, the same rows, the same sums."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.flink.java import java
from bench.measured import Measured, best, plan_of
from trendlake.cep_core import run_plan

HERE = Path(__file__).parent
PARTITIONS, ROWS = 500, 1_000
TABLE = f"""CREATE TABLE t AS SELECT a AS symbol, b AS event_time, (a * {ROWS} + b) * 7919 % 1009 AS price \
FROM UNNEST(sequence(0, {PARTITIONS - 1})) AS x(a) CROSS JOIN UNNEST(sequence(0, {ROWS - 1})) AS y(b)"""
MEASURES = {
    "V shapes": (
        ("top", "bottom", "n"),
        "S.price AS top, LAST(D.price) AS bottom, COUNT(*) AS n",
        "PATTERN (S D+ U+) DEFINE D AS price < PREV(price), U AS price > PREV(price)",
    ),
    "`A{2,40} B`": (
        ("first", "last", "n"),
        "FIRST(A.price) AS first, B.price AS last, COUNT(*) AS n",
        "PATTERN (A{2,40} B) DEFINE A AS price < 700, B AS price > 900",
    ),
    "`A+ B`, SUM and AVG in DEFINE": (
        ("first", "last", "n"),
        "FIRST(A.price) AS first, B.price AS last, COUNT(*) AS n",
        "PATTERN (A+ B) DEFINE A AS SUM(price) < 3000 AND AVG(price) < 800, B AS price > PREV(price)",
    ),
}


def install(folder: Path) -> None:
    """Trino's jars and the program, once."""
    if (folder / "classes").is_dir():
        return
    copy = ["dependency:copy-dependencies", f"-DoutputDirectory={folder / 'jars'}"]
    subprocess.run(["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), *copy], check=True)
    path = str(folder / "jars" / "*")
    command = [java("javac"), "-cp", path, "-d", str(folder / "classes"), str(HERE / "RowPatterns.java")]
    subprocess.run(command, check=True)


def row_patterns(folder: Path) -> list[Measured]:
    """Processor seconds of Trino, of those of the engine."""
    return [compared(folder, name, *asked) for name, asked in MEASURES.items()]


def compared(folder: Path, name: str, names: tuple[str, ...], measures: str, rest: str) -> Measured:
    text = f"MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY event_time MEASURES {measures} ONE ROW PER MATCH {rest})"
    sums = ", ".join(["count(*)", *(f"sum({one})" for one in names)])
    answer, seconds = of_trino(folder, [TABLE, f"SELECT {sums} FROM t {text}"])
    events = rows()
    query = {"kind": "match_recognize", "pattern": f"SELECT * FROM t {text}", "limit_per_partition": 10**9}
    plan = plan_of(query, events)
    taken, result = best(lambda: run_plan(plan, events))
    ours = [result.num_rows, *(pc.sum(result[one]).as_py() for one in names)]
    if ours != answer:
        raise SystemExit(f"{name}: Trino has {answer}, the engine {ours}")
    note = f"{events.num_rows:,} rows, {result.num_rows:,} matches: {seconds:.2f} s against {taken:.3f} s; goal 10"
    return Measured(f"Trino, of the engine: {name}", seconds / taken, "x", 4, note)


def of_trino(folder: Path, statements: list[str]) -> tuple[list[int], float]:
    """The only row of the last statement, and processor seconds of its second run."""
    path = os.pathsep.join([str(folder / "jars" / "*"), str(folder / "classes")])
    command = [java("java"), "-Xmx4g", "-cp", path, "RowPatterns"]
    done = subprocess.run(command, input="\n".join(statements), capture_output=True, text=True, check=True)
    row, processor, _ = done.stdout.strip().splitlines()[-1].rsplit(" ", 2)
    return ast.literal_eval(row), float(processor)


def rows() -> pa.Table:
    """The table of Trino, its times in seconds."""
    symbol = np.repeat(np.arange(PARTITIONS), ROWS)
    at = np.tile(np.arange(ROWS), PARTITIONS)
    return pa.table(
        {
            "event_id": np.arange(PARTITIONS * ROWS),
            "event_time": pa.array(at * 1_000_000).cast(pa.timestamp("us", tz="UTC")),
            "event_type": pa.array(np.full(PARTITIONS * ROWS, "T")),
            "symbol": symbol,
            "price": (symbol * ROWS + at) * 7919 % 1009,
        }
    )
