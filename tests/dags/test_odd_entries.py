"""What lies among the pattern files, and what they are called, neither runs nor stops another pattern's DAG."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.dags.conftest import AirflowCommands
from tests.dags.test_import_errors import parsed
from tests.support.odd_entries import MARK, hidden, make, odd, unreadable
from trendlake.jobs.airflow.home import ROOT, AirflowHome

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

CLASHES = {
    "legs_of_day_revise": (
        "",
        "the pattern 'legs_of_day_revise' would make the DAG 'legs_of_day_revise' in Airflow, "
        "which revised the pattern 'legs_of_day' in version 0.2",
    ),
    "batch_of_legs": ("", "which runs the batch 'of_legs'"),
    "batch_of_legs_revise": ("", "which revised the batch 'of_legs' in version 0.2"),
    "ingest_flights": ("", "which ingests files into the source 'flights'"),
    "flights_revise": ("", "which revises the results over 'flights'"),
    "member": ("batch: of_legs_revise\n", "the batch 'of_legs_revise' would make the DAG 'batch_of_legs_revise'"),
}
"""Patterns whose DAGs other files make: more lines of theirs, and the error."""
GOOD = {"legs_of_day": "", "json": "", "trendlake_dags": "", "sources_of_the_project": "", "leg": "batch: of_legs\n"}
MINUTES = ",".join(map(str, range(60)))
BAG = """
import json, sys
from pathlib import Path
from airflow.dag_processing.dagbag import BundleDagBag
from trendlake_bundle import PatternsBundle
bundle = PatternsBundle(name="patterns", patterns=sys.argv[1])
bundle.initialize()
bundle.refresh()
bag = BundleDagBag(dag_folder=bundle.path, bundle_path=bundle.path, bundle_name="patterns")
print("DAGS" + json.dumps({"errors": bag.import_errors, "dags": sorted(bag.dags),
                           "files": sorted(path.name for path in bundle.path.iterdir())}))
"""


@pytest.mark.repeats
def test_odd_entries_stand_alone(home: AirflowHome, airflow_commands: AirflowCommands, patterns: Path) -> None:
    """One pass of Airflow's DAG processor over all of them. A pattern may be called as a module of Python or of ours.
    Of two files that would make one DAG, one is refused."""
    snowball = (patterns / "delay_snowball.yaml").read_text()
    make(patterns, odd(snowball) | hidden(snowball) | unreadable())
    for name, more in (GOOD | {name: more for name, (more, _) in CLASHES.items()}).items():
        (patterns / f"{name}.yaml").write_text(snowball.replace("name: delay_snowball", f"name: {name}") + more)

    errors, dags = parsed(airflow_commands)

    assert set(errors) == {
        "odd-entries.py",
        *(f"{name}.py" for name in CLASHES),
        *(name.replace(".yaml", ".py") for name in unreadable()),
    }
    for name in ("folder.yaml", "nowhere.yaml", "Upper.yaml", "other.yml"):
        assert f"{name} is not read" in errors["odd-entries.py"]
    for name, (_, message) in CLASHES.items():
        assert message in errors[f"{name}.py"], errors[f"{name}.py"]
        assert f"{patterns / name}.yaml:" in errors[f"{name}.py"]
    assert {"delay_snowball", "batch_of_legs", "flights_revise", "ingest_flights"} <= dags
    assert {"json", "trendlake_dags", "sources_of_the_project", "legs_of_day"} <= dags
    (command,) = airflow_commands(("tasks", "render", "delay_snowball", "publish", "2013-01-05"))
    assert f"'{patterns}/delay_snowball.yaml'" in command.replace("\\\\", "\\").replace('"', "'")
    assert not list(home.project.state.parent.rglob(MARK))


def test_the_loaders_of_unreadable_files_are_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever bytes a pattern has, Airflow runs its file and shows the pattern's own error."""
    monkeypatch.syspath_prepend(str(ROOT / "dags"))
    from trendlake_bundle import loaders

    texts = [b"a: \0\n", b"a: \r1\n", b"a: \x0c\x1a\x85\n", b"\xff\xfe\n", '"""\u2028import os\n'.encode()]
    for number, text in enumerate(texts):
        (tmp_path / f"p{number}.yaml").write_bytes(text)
    for name, code in loaders(tmp_path).items():
        compile(code.encode(), name, "exec")


def test_names_that_airflow_bounds(home: AirflowHome, tmp_path: Path) -> None:
    """A batch whose schedule is long, with tags and owners as long as patterns may have them."""
    conf = tmp_path / "conf"
    (conf / "patterns").mkdir(parents=True)
    (conf / "profiles").mkdir()
    (conf / "profiles" / "local.yaml").write_text("batches: by_source_and_schedule\n")
    (tmp_path / "data_contracts").symlink_to(ROOT / "data_contracts")
    snowball = (ROOT / "conf" / "patterns" / "delay_snowball.yaml").read_text()
    for number in range(3):
        text = snowball.replace("name: delay_snowball", f"name: p{number}")
        for line in text.splitlines():
            if line.startswith(("schedule:", "tags:", "owner:")):
                text = text.replace(line + "\n", "")
        more = f'schedule: "{MINUTES} * * * *"\ntags: [{"t" * 100}]\nowner: {f"o{number}" * 400}\n'
        (conf / "patterns" / f"p{number}.yaml").write_text(text + more)
    bag = bag_of(home, tmp_path)
    assert bag["errors"] == {}
    assert len(bag["dags"]) == 3
    assert all(len(name) <= 250 for name in bag["dags"])
    assert all(len(name.encode()) <= 255 for name in bag["files"])


def bag_of(home: AirflowHome, project: Path) -> dict[str, Any]:
    """What Airflow makes of a project."""
    env = home.env() | {"TRENDLAKE_PROJECT": str(project), "TRENDLAKE_STATE": str(project / "state")}
    env["AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH"] = str(project / "bundles")
    words = [sys.executable, "-c", BAG, str(project / "conf" / "patterns")]
    done = subprocess.run(words, env=env, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    bag: dict[str, Any] = json.loads(done.stdout.rpartition("DAGS")[2])
    return bag
