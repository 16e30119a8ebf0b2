"""Where processes may not write side by side there are no DAGs, and Airflow's pages say why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trendlake.jobs.airflow.home import ROOT, AirflowHome

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

MAKE = """
import sys
from pathlib import Path
from trendlake_batches import batch_dags
from trendlake_dags import ingest_dags, pattern_dags
from trendlake_revisions import revision_dags
profile, pattern = Path(sys.argv[1]), sys.argv[2]
for text in sys.argv[3:]:
    profile.write_text(text)
    for make in (lambda: pattern_dags(pattern), lambda: pattern_dags(pattern, in_batch=True),
                 lambda: batch_dags("b", [pattern]), lambda: revision_dags("flights", [pattern]),
                 lambda: ingest_dags(["flights"])):
        try:
            print("SAID", sorted(make()))
        except Exception as error:
            print("SAID", " ".join(str(error).split()))
"""


@pytest.mark.long
def test_no_dag_of_any_sort(home: AirflowHome, tmp_path: Path) -> None:
    """Of a pattern, of a batch, of a source."""
    project = tmp_path / "project"
    (project / "conf" / "profiles").mkdir(parents=True)
    for name in ("conf/patterns", "data_contracts"):
        (project / name).symlink_to(ROOT / name)
    pattern = ROOT / "conf" / "patterns" / "delay_snowball.yaml"
    profiles = ["warehouse: s3a://b/lake\n", "writers: one\n", "warehouse: abfs://b@a/lake\n"]
    arguments = [project / "conf" / "profiles" / "local.yaml", pattern, *profiles]
    env = home.env() | {"TRENDLAKE_PROJECT": str(project), "TRENDLAKE_PROFILE": "local"}
    done = subprocess.run(
        [sys.executable, "-c", MAKE, *map(str, arguments)], env=env, capture_output=True, text=True, check=True
    )
    said = [line.removeprefix("SAID ") for line in done.stdout.splitlines() if line.startswith("SAID")]
    assert all(line.startswith("[UNSAFE_STORE]") and "s3a.impl: CLASS" in line for line in said[:5])
    assert all("[UNSAFE_STORE]" in line and "several processes" in line for line in said[5:10])
    assert said[10:] == ["['delay_snowball']", "[]", "['batch_b']", "['flights_revise']", "['ingest_flights']"]
