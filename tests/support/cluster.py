"""A standalone Spark cluster on this machine: a master and its workers, processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

from trendlake.jobs.airflow.home import free_port, stop

PATIENCE = 300.0
"""Seconds."""
HERE = "127.0.0.1"


@dataclass(frozen=True)
class Cluster:
    master: str
    page: str

    def state(self) -> dict[str, Any]:
        """What the master knows: `workers`, `activeapps`, `completedapps`."""
        with urllib.request.urlopen(f"{self.page}/json/", timeout=10) as answer:
            reply: dict[str, Any] = json.load(answer)
            return reply


@contextmanager
def standalone(folder: Path, workers: int) -> Iterator[Cluster]:
    """Workers of one core and 1 GB each; logs and work lie in `folder`. All are gone on exit."""
    port, page = free_port(), free_port()
    cluster = Cluster(f"spark://{HERE}:{port}", f"http://{HERE}:{page}")
    with ExitStack() as stack:

        def start(name: str, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            home = Path(pyspark.__file__).parent
            java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else Path("java")
            command = [
                str(java),
                "-Dspark.worker.timeout=600",
                "-Xmx256m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                f"{home}/jars/*",
            ]
            process = subprocess.Popen(
                [*command, f"org.apache.spark.deploy.{kind}", "--host", HERE, *arguments],
                env={**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": HERE, "SPARK_SCALA_VERSION": "2.13"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            stack.callback(stop, process)
            return process

        started = [start("master", "master.Master", "--port", str(port), "--webui-port", str(page))]
        for number in range(workers):
            options = [
                "--cores",
                "1",
                "--memory",
                "1g",
                "--webui-port",
                "0",
                "--work-dir",
                str(folder / f"work{number}"),
            ]
            started.append(start(f"worker{number}", "worker.Worker", *options, cluster.master))
        deadline = time.monotonic() + PATIENCE
        while not up(cluster, workers):
            ended = [process.args for process in started if process.poll() is not None]
            assert not ended
            assert time.monotonic() < deadline
            time.sleep(0.2)
        yield cluster


def up(cluster: Cluster, workers: int) -> bool:
    try:
        return sum(worker["state"] == "ALIVE" for worker in cluster.state()["workers"]) == workers
    except OSError:
        return False
