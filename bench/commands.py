"""What a user waits for at a terminal: commands of new processes over a small table, beside one that only reads rows.

In processor seconds of the process tree, the median of some rounds: a shared machine spoils wall clocks. Great
Expectations' verdicts, the report and the site are part of a run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.measured import Measured, processor, show
from trendlake.pipelines.project.paths import find_project

EVENTS, CORRECTIONS, ROUNDS = 958, 6, 5
HEADER = "id,at,company,price\n"
PATTERN = """\
name: rising
source: trades
pattern: Trade E+
where: ["[company]", "E.price < NEXT(E).price"]
return: {trends: COUNT(*), highest: MAX(E.price)}
group_by: [company]
within: 1 day
"""
DAYS = ("--from", "2026-01-01", "--to", "2026-01-21")
READ = """
import sys
import deltalake
import pyarrow.parquet
files = deltalake.DeltaTable(sys.argv[1]).file_uris()
print(sum(pyarrow.parquet.read_table(file).num_rows for file in files))
"""
FIRST = """
import sys
from pathlib import Path
import pyarrow as pa
import trendlake.cep_core.kernel_cache
trendlake.cep_core.kernel_cache.SHIPPED = Path(sys.argv[1])
from trendlake import evaluate
events = pa.table({
    "event_id": [f"e{n}" for n in range(1000)],
    "event_time": pa.array([n * 1_000_000 for n in range(1000)], pa.timestamp("us", "UTC")),
    "event_type": ["S"] * 1000,
    "price": [n * 7919 % 7 / 7 for n in range(1000)],
})
query = {"pattern": "S+", "where": ["S.price > NEXT(S).price"], "return": {"n": "COUNT(*)"}, "within": "1 day"}
assert evaluate(query, events).num_rows == 1
"""


def commands(folder: Path) -> list[Measured]:
    """Rows 4 to 8: a project of its own in `folder`."""
    project = small_project(folder)
    reading = median_of(project, [sys.executable, "-c", READ, str(project / ".trendlake/warehouse/results/rising")])
    shown, history = (
        median_of(project, trendlake(*words))
        for words in (("show", "rising"), ("history", "rising", "--window", "2026-01-05", "--group", "company=c1"))
    )
    validated = median_of(project, trendlake("validate"))
    run = median_of(project, trendlake("run", "rising", *DAYS))
    corrected = median(
        processor(lambda number=number: done(project, trendlake("ingest", "trades", f"correction_{number}.csv")))  # type: ignore[misc]
        for number in range(1, CORRECTIONS)
    )
    warm, one = in_a_shell(project, 11), in_a_shell(project, 1)
    done(find_project().root, [sys.executable, "-m", "scripts.machine_code", str(folder / "shipped"), "trends"])
    with_wheel, compiled, again = (first(project, folder / code, folder / home) for code, home in FIRSTS)
    reads = f"show {shown:.2f} s, history {history:.2f} s, a process that imports pyarrow and deltalake {reading:.2f} s"
    return [
        Measured(
            "the slower of `show` and `history`, of a bare read",
            max(shown, history) / reading,
            "times",
            3.0,
            reads,
            at_most=True,
        ),
        Measured("`trendlake validate`, one file", validated, "s", 1.5, "", at_most=True),
        Measured(f"`trendlake run` of {EVENTS} events", run, "s", 4.0, "four steps, report and site", at_most=True),
        Measured("the same in `trendlake shell`", (warm - one) / 10, "s", 2.0, "each after the first", at_most=True),
        Measured("`trendlake ingest` of one corrected row", corrected, "s", 2.0, "", at_most=True),
        Measured(
            "first `evaluate` of `S+` in a new home, from a wheel of `make wheel`",
            with_wheel,
            "s",
            3.0,
            f"without its machine code {compiled:.2f} s, of which {compiled - again:.2f} s are the compiler's",
            at_most=True,
        ),
    ]


FIRSTS = (("shipped", "new"), ("none", "new too"), ("none", "new too"))
"""Folders of machine code, and of what is compiled."""


def first(project: Path, shipped: Path, home: Path) -> float:
    """Processor seconds of a process that evaluates one pattern."""
    return processor(lambda: done(project, [sys.executable, "-c", FIRST, str(shipped)], TRENDLAKE_CACHE=str(home)))


def small_project(folder: Path) -> Path:
    """A project with a source, a pattern and a run."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    project = folder / "project"
    done(folder, trendlake("init", "project"))
    rows = [
        f"t{n},2026-01-{1 + n // 48:02d}T{n % 24:02d}:{n % 60:02d}:00Z,c{n % 7},{n * 7919 % 997}.5"
        for n in range(EVENTS)
    ]
    (project / "trades.csv").write_text(HEADER + "\n".join(rows) + "\n")
    for number in range(CORRECTIONS):
        (project / f"correction_{number}.csv").write_text(f"{HEADER}t5,2026-01-01T05:05:00Z,c5,{number}.25\n")
    (project / "conf" / "patterns" / "rising.yaml").write_text(PATTERN)
    options = ("--event-id", "id", "--event-time", "at", "--type", "Trade")
    for words in (
        ("new", "source", "trades", "--from", "trades.csv", *options),
        ("ingest", "trades", "trades.csv"),
        ("ingest", "trades", "correction_0.csv"),
        ("run", "rising", *DAYS),
    ):
        done(project, trendlake(*words))
    return project


def trendlake(*words: str) -> list[str]:
    return [sys.executable, "-m", "trendlake.command", *words]


def median_of(project: Path, command: Sequence[str], **more: str) -> float:
    """Processor seconds of the process tree: the median of `ROUNDS`, after one that fills caches."""
    done(project, command, **more)
    return median(processor(lambda: done(project, command, **more)) for _ in range(ROUNDS))


def in_a_shell(project: Path, runs: int) -> float:
    """Processor seconds of `runs` runs that are typed into one `trendlake shell`."""
    typed = f"run rising {' '.join(DAYS)}\n" * runs
    return median(processor(lambda: done(project, trendlake("shell"), typed)) for _ in range(3))


def done(project: Path, command: Sequence[str], typed: str = "", **more: str) -> None:
    """Raises SystemExit with its words where a command fails."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("TRENDLAKE_STATE", "TRENDLAKE_PROJECT")
    }
    ended = subprocess.run(
        command, cwd=project, env=environment | more, input=typed, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)}: {ended.stdout}{ended.stderr}")


if __name__ == "__main__":
    state = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve()
    show(commands(state / "bench" / "commands"), "commands")
