"""The processes that are killed: starting a victim, telling it what to do, seeing it die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO, cast

from tests.conftest import ROOT
from tests.support.victim import Order
from trendlake.pipelines.project.paths import find_project
from trendlake.pipelines.spark.jars import jars_folder
from trendlake.pipelines.steps.sequence import STEPS

PATIENCE = 300.0
"""Seconds."""
RUN, REVISE = tuple(STEPS), ("revise",)


class Victim:
    """A driver, started ahead: its JVM comes up while the last one's traces are looked at."""

    def __init__(self, folder: Path, number: int, master: str = "local[1]") -> None:
        self.log = folder / f"victim_{number}.log"
        env = os.environ | {"TRENDLAKE_JARS": str(jars_folder(find_project(ROOT))), "PYTHONPATH": str(ROOT)}
        env["SPARK_LAUNCHER_OPTS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        command = [sys.executable, "-m", "tests.support.victim", str(folder), master]
        with self.log.open("wb") as errors:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                text=True,
            )

    def answer(self) -> str:
        """Its next word: `ready`, `survived`, or nothing when it is dead."""
        return cast(TextIO, self.process.stdout).readline().strip()

    def order(self, order: Order) -> None:
        """The first one, once it is up."""
        assert self.answer() == "ready", self.log.read_text()
        self.send(order)

    def send(self, order: Order) -> None:
        entry = cast(TextIO, self.process.stdin)
        entry.write(order.text() + "\n")
        entry.flush()

    def strike(self) -> None:
        """Kill it, with its JVM; a no-op where it is dead."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """And have done with it."""
        self.strike()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                cast(TextIO, pipe).close()

    def survived(self) -> bool:
        """Waits until it is killed, or has done what was ordered, which is True. Fails where the victim does."""
        if self.answer() == "survived":
            return True
        assert self.process.wait(PATIENCE) == -signal.SIGKILL, self.log.read_text()
        return False


def executor_of(process: int) -> int:
    """The executor's JVM above a Python worker."""
    while b"CoarseGrainedExecutorBackend" not in Path(f"/proc/{process}/cmdline").read_bytes():
        process = int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
        assert process > 1
    return process
