"""One broken pattern file does not take the other DAGs down: it stands alone, named with line and reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dags.conftest import AirflowCommand, parse, rows

pytestmark = [pytest.mark.airflow, pytest.mark.slow]


def import_errors(airflow: AirflowCommand) -> dict[str, str]:
    """`{DAG file: error}`, after Airflow has parsed every file again."""
    parse(airflow)
    return {row["filepath"]: row["error"] for row in rows(airflow("dags", "list-import-errors", "-o", "json"))}


def dag_ids(airflow: AirflowCommand) -> set[str]:
    return {row["dag_id"] for row in rows(airflow("dags", "list", "-o", "json"))}


def test_good_patterns_have_no_import_errors(airflow: AirflowCommand, patterns: Path) -> None:
    assert import_errors(airflow) == {}


def test_a_broken_pattern_stands_alone(airflow: AirflowCommand, patterns: Path) -> None:
    """A mistake of form, of meaning, and of schedule: each its own error with file, line and reason."""
    good = (patterns / "delay_snowball.yaml").read_text()
    broken = {
        "misspelt": (good.replace("within:", "wihtin:"), "wihtin:", "did you mean 'within'?"),
        "no_such_column": (good.replace("dep_delay > 0", "dep_dealy > 0"), "dep_dealy", "dep_dealy"),
        "no_such_time": (good.replace('"@daily"', '"every day"'), "schedule:", "schedule"),
        "not_yaml": ("name: [unclosed\n", "", "not_yaml.yaml"),
    }
    for name, (text, _, _) in broken.items():
        (patterns / f"{name}.yaml").write_text(text.replace("name: delay_snowball", f"name: {name}"))

    errors = import_errors(airflow)

    assert set(errors) == {f"{name}.py" for name in broken}
    for name, (_, culprit, reason) in broken.items():
        file = patterns / f"{name}.yaml"
        lines = file.read_text().splitlines()
        line = next((number for number, text in enumerate(lines, 1) if culprit and culprit in text), None)
        place = f"{file}:{line}:" if line else f"{file}:"
        assert place in errors[f"{name}.py"]
        assert reason in errors[f"{name}.py"]
    assert {path.stem for path in patterns.glob("*.yaml")} - set(broken) <= dag_ids(airflow)


def test_a_pattern_added_or_removed_is_seen(airflow: AirflowCommand, patterns: Path) -> None:
    """The folder is what counts, without a restart."""
    added = patterns / "another.yaml"
    added.write_text((patterns / "delay_snowball.yaml").read_text().replace("name: delay_snowball", "name: another"))
    parse(airflow)
    assert "another" in dag_ids(airflow)
    added.unlink()
    assert import_errors(airflow) == {}
