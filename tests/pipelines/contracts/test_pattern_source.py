"""A pattern's results as another's source: what its events are, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trendlake.cep_core import PatternErrors
from trendlake.pipelines.authoring.validate import compiled
from trendlake.pipelines.contracts.pattern_source import source_contract
from trendlake.pipelines.project.paths import Project

READER = """\
name: {name}
source: {source}
pattern: delay_snowball S+
where: ["[carrier]", S.snowballs < NEXT(S).snowballs]
return: {{n: COUNT(*)}}
within: 7 days
"""
LONGEST = 90_000_000_000
"""A day of New York has 25 hours at most."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """This project's contracts and flights' patterns, to which a test adds its own."""
    shutil.copytree(ROOT / "conf" / "patterns", tmp_path / "conf" / "patterns")
    (tmp_path / "data_contracts").symlink_to(ROOT / "data_contracts")
    return Project(tmp_path, tmp_path / "state")


def pattern(project: Project, name: str, source: str) -> Path:
    path = project.patterns / f"{name}.yaml"
    path.write_text(READER.format(name=name, source=source))
    return path


def test_rows_are_events(project: Project) -> None:
    """Their type is the pattern that made them, their time the window's end, their id its key; how late they may come
    is their source's lateness and a window."""
    contract = source_contract(project, "results/delay_snowball")
    schema = contract.event_schema()
    assert (schema.event_id, schema.event_time, schema.event_type) == ("event_id", "window_end", "event_type")
    assert (contract.types, contract.key) == (("delay_snowball",), ("carrier", "window_start"))
    assert contract.made_id
    columns = dict(schema.columns)
    assert columns["snowballs"] == "decimal(38,0)"
    assert columns["worst_delay"] == "double"
    assert not {"plan_hash", "source_version", "run_id", "computed_at"} & set(columns)
    flights = source_contract(project, "flights")
    assert contract.lateness_us == (flights.lateness_us or 0) + LONGEST


@pytest.mark.parametrize(
    ("name", "time", "event_id"),
    [("three_legs_later", "end", "match_id"), ("late_and_gone", "lifetime_start", "event_id")],
)
def test_rows_of_other_kinds_are_events(project: Project, name: str, time: str, event_id: str) -> None:
    """A match has an id of its own. Lists of events are no values an event can have."""
    shutil.copy(ROOT / "examples" / "flights" / f"{name}.yaml", project.patterns)
    contract = source_contract(project, f"results/{name}")
    schema = contract.event_schema()
    assert (schema.event_time, schema.event_id) == (time, event_id)
    assert not any("array" in kind for _, kind in schema.columns)


def test_a_chain_compiles(project: Project) -> None:
    pattern(project, "rising", "results/delay_snowball")
    text = READER.format(name="rising_again", source="results/rising").replace("delay_snowball S+", "rising S+")
    path = project.patterns / "rising_again.yaml"
    path.write_text(text.replace('"[carrier]", S.snowballs < NEXT(S).snowballs', "S.n > 1"))
    plan = compiled(project, path)[1]
    assert plan.event_types == ("rising",)


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"a": "results/a"}, "[CYCLE] a pattern would read its own results: a reads a"),
        ({"a": "results/b", "b": "results/a"}, "a reads b reads a"),
        ({"a": "results/b", "b": "results/c", "c": "results/b"}, "b reads c reads b"),
        ({"a": "results/delay_snowbal"}, "did you mean 'delay_snowball'?"),
    ],
)
def test_what_cannot_be_read(project: Project, sources: dict[str, str], message: str) -> None:
    """At the line that names the source."""
    paths = [pattern(project, name, source) for name, source in sources.items()]
    with pytest.raises(PatternErrors) as caught:
        compiled(project, paths[0])
    assert message in str(caught.value)
    assert "a.yaml:2:9" in str(caught.value)


def test_a_column_that_every_event_has_is_refused(project: Project) -> None:
    up = (project.patterns / "delay_snowball.yaml").read_text().replace("legs: COUNT(F)", "event_type: COUNT(F)")
    (project.patterns / "delay_snowball.yaml").write_text(up)
    path = pattern(project, "rising", "results/delay_snowball")
    with pytest.raises(PatternErrors, match="have a column 'event_type' of their own"):
        compiled(project, path)
