"""One broken pattern file does not take the other DAGs down: it stands alone, named with line and reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.dags.conftest import PARSE, AirflowCommands, rows

pytestmark = [pytest.mark.airflow, pytest.mark.slow]


def parsed(airflow_commands: AirflowCommands) -> tuple[dict[str, str], set[str]]:
    """`{DAG file: error}` and the ids of the DAGs, after Airflow has parsed every file again."""
    listed = (("dags", "list-import-errors", "-o", "json"), ("dags", "list", "-o", "json"))
    _, errors, dags = airflow_commands(PARSE, *listed)
    return {row["filepath"]: row["error"] for row in rows(errors)}, {row["dag_id"] for row in rows(dags)}


@pytest.mark.long
def test_a_broken_pattern_stands_alone(airflow_commands: AirflowCommands, patterns: Path) -> None:
    """A mistake of form, of meaning, and of schedule: each its own error with file, line and reason. A good one that is
    added beside them is a DAG, without a restart; when all are removed again no error is left."""
    shipped = {path.stem for path in patterns.glob("*.yaml")}
    good = (patterns / "delay_snowball.yaml").read_text()
    broken = {
        "misspelt": (good.replace("within:", "wihtin:"), "wihtin:", "did you mean 'within'?"),
        "no_such_column": (good.replace("dep_delay > 0", "dep_dealy > 0"), "dep_dealy", "dep_dealy"),
        "no_such_time": (re.sub("schedule: .*", 'schedule: "every day"', good), "schedule:", "schedule"),
        "not_yaml": ("name: [unclosed\n", "", "not_yaml.yaml"),
    }
    added = {name: text for name, (text, _, _) in broken.items()} | {"another": good}
    for name, text in added.items():
        (patterns / f"{name}.yaml").write_text(text.replace("name: delay_snowball", f"name: {name}"))

    errors, dags = parsed(airflow_commands)

    assert set(errors) == {f"{name}.py" for name in broken}
    for name, (_, culprit, reason) in broken.items():
        file = patterns / f"{name}.yaml"
        lines = file.read_text().splitlines()
        line = next((number for number, text in enumerate(lines, 1) if culprit and culprit in text), None)
        place = f"{file}:{line}:" if line else f"{file}:"
        assert place in errors[f"{name}.py"]
        assert reason in errors[f"{name}.py"]
    assert shipped | {"another"} <= dags

    for name in added:
        (patterns / f"{name}.yaml").unlink()
    assert parsed(airflow_commands)[0] == {}
