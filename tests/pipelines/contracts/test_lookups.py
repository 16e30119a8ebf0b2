"""Patterns with `lookup` in a project: checked against the contract of the reference table."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.tables_lake import contract_text, role
from trendlake.cep_core import PatternErrors, TrendlakeError, explain
from trendlake.pipelines.authoring.validate import compiled
from trendlake.pipelines.contracts.pattern_source import source_contract
from trendlake.pipelines.project.paths import Project

AIRPORTS = (
    role("origin", "string", "event_id"),
    role("since", "timestamp", "event_time"),
    role("kind", "string", "event_type"),
    "{name: country, logicalType: string}",
)
LOOKING = """\
name: looking
source: flights
lookup:
  airport: {table: airports, key: origin, columns: [country]}
pattern: Flight S+
where: ["[country]"]
group_by: [country]
return: {n: COUNT(*)}
within: 1 day
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    shutil.copytree(ROOT / "conf" / "patterns", tmp_path / "conf" / "patterns")
    shutil.copytree(ROOT / "data_contracts", tmp_path / "data_contracts")
    (tmp_path / "data_contracts" / "airports.yaml").write_text(contract_text("airports", AIRPORTS))
    (tmp_path / "conf" / "patterns" / "looking.yaml").write_text(LOOKING)
    return Project(tmp_path, tmp_path / "state")


def test_it_is_checked(project: Project) -> None:
    """Also its key, which the source has or has not."""
    file = project.patterns / "looking.yaml"
    _, plan = compiled(project, file)
    assert "looks up  airport: country of airports by origin" in explain(plan)
    file.write_text(LOOKING.replace("origin", "orgin"))
    with pytest.raises(PatternErrors, match=r"the source has no attribute 'orgin'[\s\S]*did you mean 'origin'"):
        compiled(project, file)


def test_a_table_without_a_contract(project: Project) -> None:
    """The place is that of the table's name."""
    (project.contracts / "airports.yaml").unlink()
    with pytest.raises(PatternErrors, match=r"looking.yaml:4:20: \[PROJECT\] the source 'airports' has no contract"):
        compiled(project, project.patterns / "looking.yaml")


def test_a_pattern_over_its_results(project: Project) -> None:
    """Has a contract as over any other."""
    contract = source_contract(project, "results/looking")
    assert "country" in {column.name for column in contract.columns}


def test_a_circle(project: Project) -> None:
    """A lookup reads results as a source does."""
    text = LOOKING.replace(
        "table: airports, key: origin, columns: [country]", "table: results/looking, key: origin, columns: [n]"
    )
    (project.patterns / "looking.yaml").write_text(text)
    with pytest.raises(TrendlakeError, match="would read its own results"):
        compiled(project, project.patterns / "looking.yaml")
