"""500 pattern files read as YAML; and by Airflow itself: each becomes a file of DAGs, which Airflow's own `DagBag`
imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.measured import Measured, best, show
from trendlake.cep_core.yaml.source import read_yaml
from trendlake.jobs.airflow.home import AirflowHome
from trendlake.pipelines.project.paths import Project, find_project
from trendlake.pipelines.project.profile import load_profile

FILES = 500
BAR = 15.0
"""Seconds."""
PROGRAM = """
import json, logging, sys, time
logging.disable(logging.CRITICAL)
from airflow.dag_processing.dagbag import DagBag
from trendlake_bundle import PatternsBundle
bundle = PatternsBundle(name="patterns", patterns=sys.argv[1])
bundle.initialize()
began = time.perf_counter()
bag = DagBag(bundle.path, bundle_path=bundle.path, bundle_name="patterns")
seconds = time.perf_counter() - began
took = [stat.duration.total_seconds() for stat in bag.dagbag_stats if "watched_" in stat.file]
print(json.dumps([seconds, len(bag.dags), len(bag.import_errors), sum(took[:100]), sum(took[-100:])]))
"""


def dag_import() -> list[Measured]:
    """Wall-clock seconds of the import, in a process of its own; and how the last hundred compare with the first."""
    own = find_project()
    text = own.pattern_path("delay_snowball").read_text()
    with TemporaryDirectory() as folder:
        patterns = Path(folder) / "patterns"
        patterns.mkdir()
        for number in range(FILES):
            name = f"watched_{number:03d}"
            (patterns / f"{name}.yaml").write_text(text.replace("name: delay_snowball", f"name: {name}"))
        reading, _ = best(lambda: [read_yaml(path) for path in patterns.glob("*.yaml")])
        home = AirflowHome(Project(own.root, Path(folder)), load_profile(own, "local"), patterns=patterns)
        env = home.env()
        home.prepare(env)
        seconds, dags, errors, first, last = imported(patterns, env)
    if errors or dags < 2 * FILES:
        raise SystemExit(f"{dags:.0f} DAGs of {FILES} patterns, {errors:.0f} files with errors")
    note = f"{dags:,.0f} DAGs; 100 files: the first {first:.2f} s, the last {last:.2f} s; wall clock"
    return [
        Measured(f"{FILES} pattern files read as YAML", reading, "s", None, "keys and values with their places"),
        Measured(f"{FILES} pattern files imported by Airflow", seconds, "s", BAR, note, at_most=True),
    ]


def imported(patterns: Path, env: dict[str, str]) -> list[float]:
    """Seconds, DAGs, files with errors, seconds of the first and the last hundred files. Raises SystemExit."""
    command = [sys.executable, "-c", PROGRAM, str(patterns)]
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    timings: list[float] = json.loads(done.stdout.splitlines()[-1])
    return timings


if __name__ == "__main__":
    os.environ.setdefault("TRENDLAKE_PROJECT", str(find_project().root))
    show(dag_import(), "dag_import")
