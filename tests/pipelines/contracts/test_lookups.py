"""Patterns with `lookup`: checked and explained as far as they alone say, and refused by all that computes rows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trendlake.cep_core import PatternErrors, explain
from trendlake.cep_core.load import load_pattern
from trendlake.pipelines.authoring.pattern_tests import run_tests
from trendlake.pipelines.authoring.validate import compiled
from trendlake.pipelines.contracts.pattern_source import refuse_lookups, source_contract
from trendlake.pipelines.project.paths import Project

LOOKING = """\
name: looking
source: flights
lookup:
  airport: {table: airports, key: origin, columns: [country]}
pattern: Flight S+
where: ["[country]"]
return: {n: COUNT(*)}
within: 1 day
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    shutil.copytree(ROOT / "conf" / "patterns", tmp_path / "conf" / "patterns")
    (tmp_path / "data_contracts").symlink_to(ROOT / "data_contracts")
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


def test_what_computes_refuses_it(project: Project) -> None:
    """Runs, tests of patterns, and patterns over its results; the place is that of the key."""
    file = project.patterns / "looking.yaml"
    with pytest.raises(PatternErrors, match=r"looking.yaml:3:1: \[NOT_SUPPORTED\] a run reads no reference tables yet"):
        refuse_lookups(load_pattern(file))
    with pytest.raises(PatternErrors, match="NOT_SUPPORTED"):
        source_contract(project, "results/looking")
    with pytest.raises(PatternErrors, match="NOT_SUPPORTED"):
        list(run_tests(project, project.patterns / "tests" / "looking.yaml"))
