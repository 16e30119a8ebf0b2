"""Which names are free: each reserved name, in every place where a name may stand, in letters of every case."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.own_source import FALLING, output_of, start
from trendlake.cep_core import load_pattern
from trendlake.cep_core.algebra.compile import model as algebra
from trendlake.cep_core.automaton.compile import model as automaton
from trendlake.cep_core.engine import compile_query
from trendlake.cep_core.errors import PatternErrors
from trendlake.cep_core.events.names import FEED_COLUMNS, MERGE_COLUMNS, OWN
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.load import read_pattern
from trendlake.cep_core.matches.compile import model as matches
from trendlake.cep_core.patterns import model as trends
from trendlake.pipelines.contracts.column_names import ADDED, OPEN, refuse_column_names
from trendlake.pipelines.contracts.contract import TYPE_COLUMN, load_contract
from trendlake.pipelines.errors import ContractErrors, ProjectError, SourceFileError
from trendlake.pipelines.ingest.deliver import ingest
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.dag_names import DagNames
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile

ROWS = "id,at,company,price\nt1,2026-01-05T09:00:00Z,A,10\nt2,2026-01-05T09:00:01Z,A,9.5\n"
EVERYWHERE = (*FEED_COLUMNS, f"{OWN}net", f"{OWN}old_0", f"{OWN}there")
"""What no table may have."""
RESULTS = (*EVERYWHERE, *MERGE_COLUMNS)
"""What no results may have, whatever their kind."""
SCHEMA = EventSchema(
    {"event_id": "string", "event_time": "timestamp", "event_type": "string", "x": "double", "y": "double"}
)
TRENDS = "{kind: trends, pattern: A S+, return: {%s: COUNT(*)}, within: 1 day}"
BOUND = (
    "{kind: trends, pattern: A S+, where: [S.x > $%s], for_each: {%s: [1, 2]}, return: {n: COUNT(*)}, within: 1 day}"
)
MEASURE = "{kind: matches, pattern: 'SEQ(A a, A b)', return: {%s: a.x}, within: 1 day}"
VARIABLE = "{kind: matches, pattern: 'SEQ(A %s, A b_)', within: 1 day}"
REGISTER = """{kind: automaton, start: s, final: [t], register: {%s: {type: double, init: 0.0}},
 arcs: [{from: s, to: t, when: e.x > 0}], within: 1 day}"""
ATTRIBUTE = "{kind: algebra, pattern: 'SELECT x AS %s FROM A', within: 1 day}"
PLACES = {
    "measure of trends": (TRENDS, trends.RESERVED_COLUMNS),
    "parameter": (BOUND, trends.RESERVED_COLUMNS),
    "measure of matches": (MEASURE, matches.RESERVED_COLUMNS),
    "variable of matches": (VARIABLE, matches.RESERVED_COLUMNS),
    "field of a register": (REGISTER, automaton.RESERVED_COLUMNS),
    "attribute of algebra": (ATTRIBUTE, algebra.RESERVED_COLUMNS),
}
"""Where a pattern names a column of its results, and which columns these have anyway."""


def spellings(name: str) -> list[str]:
    return list(dict.fromkeys([name, name.upper(), name.title(), name.swapcase()]))


def query(folder: Path, text: str, name: str) -> Path:
    file = folder / "p.yaml"
    file.write_text(text.replace("%s", name).replace("{kind", "{name: p, source: s, kind", 1))
    return file


@pytest.mark.parametrize("place", PLACES)
def test_columns_of_results(tmp_path: Path, place: str) -> None:
    """A free name compiles in the same place, so that nothing else is wrong with the text."""
    text, own = PLACES[place]
    compile_query(query(tmp_path, text, "free_name"), SCHEMA)
    for reserved in (*RESULTS, *own):
        for name in spellings(reserved):
            with pytest.raises(PatternErrors) as failure:
                compile_query(query(tmp_path, text, name), SCHEMA)
            said = " ".join(error.message for error in failure.value.errors)
            assert re.search(r"reserved, as all names|a column of|is a column|expected|only letters", said), (
                name,
                said,
            )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The source `trades` and the pattern `falling` over it."""
    folder = tmp_path_factory.mktemp("names")
    start(folder, folder / "trades.csv", ROWS)
    project = Project(folder, folder / ".trendlake")
    (project.patterns / "falling.yaml").write_text(FALLING)
    return project


@pytest.mark.parametrize("reserved", [*EVERYWHERE, *ADDED, *OPEN, TYPE_COLUMN])
def test_columns_of_sources(project: Project, tmp_path: Path, reserved: str) -> None:
    """In a contract, and in a file that a contract is made of: the quarantine's columns, and the constant type's."""
    good = (project.contracts / "trades.yaml").read_text()
    for name in spellings(reserved):
        (tmp_path / "trades.yaml").write_text(good.replace("name: company", f"name: {name}"))
        with pytest.raises(ContractErrors, match=f"column '{name}'") as failure:
            load_contract(tmp_path / "trades.yaml")
        assert failure.value.errors[0].hint
        assert failure.value.errors[0].place is not None
        file = tmp_path / "other.csv"
        file.write_text(ROWS.replace("company", name))
        columns = ["--event-id", "id", "--event-time", "at", "--type", "Trade"]
        out = output_of("new", "source", "other", "--from", file, *columns, "--project-dir", project.root, code=1)
        assert f"column '{name}'" in " ".join(out.split())
        assert not (project.contracts / "other.yaml").exists()


@pytest.mark.parametrize("reserved", MERGE_COLUMNS)
def test_columns_that_delta_cannot_merge(project: Project, tmp_path: Path, reserved: str) -> None:
    """A table of other programs, which is read and never merged into, may have them; a new one of ours may not."""
    for name in spellings(reserved):
        with pytest.raises(SourceFileError, match="Delta's own in MERGE"):
            refuse_column_names(Path("trades.csv"), [name])
    good = (project.contracts / "trades.yaml").read_text()
    (tmp_path / "trades.yaml").write_text(good.replace("name: company", f"name: {reserved}"))
    assert load_contract(tmp_path / "trades.yaml").columns


def batch_of(name: str) -> Callable[[str], str]:
    return lambda text: f"{text}batch: {name}\n"


def plain(text: str) -> str:
    return text


def weak(text: str) -> str:
    return f"{text}consistency: weak\n"


CLASHES = [
    ({"x": plain}, "x_revise", plain, "revised the pattern 'x' in version 0.2"),
    ({"x": plain}, "trades_revise", plain, "revises the results over 'trades'"),
    ({"x": batch_of("b")}, "batch_b", plain, "runs the batch 'b'"),
    ({"x": batch_of("b")}, "batch_b_revise", plain, "revised the batch 'b' in version 0.2"),
    ({"x": batch_of("b")}, "y", batch_of("b_revise"), "revised the batch 'b' in version 0.2"),
    ({}, "ingest_trades", plain, "ingests files into the source 'trades'"),
]
"""Patterns of a project, one more, and what its DAG would do already."""
FREE = [
    ({"x": weak}, "x_revise", plain),
    ({"x": batch_of("b")}, "x_revise", plain),
    ({"x": batch_of("b")}, "batch_c", plain),
    ({}, "ingest_quotes", plain),
    ({"x_revised": plain}, "x", plain),
]


def write(project: Project, name: str, form: Callable[[str], str]) -> Path:
    file = project.patterns / f"{name}.yaml"
    file.write_text(form(FALLING.replace("name: falling", f"name: {name}")))
    return file


@pytest.mark.parametrize(("others", "name", "form", "message"), CLASHES, ids=[clash[1] for clash in CLASHES])
def test_two_dags_of_one_id(
    project: Project, others: dict[str, Callable[[str], str]], name: str, form: Callable[[str], str], message: str
) -> None:
    """`validate` refuses the one file and no other, with place and suggestion; `new` refuses the name."""
    files = [write(project, other, make) for other, make in others.items()]
    if form is plain:
        words = ("new", "pattern", name, "--source", "trades", "--kind", "trends", "--project-dir", project.root)
        assert message in " ".join(output_of(*words, code=1).split())
    files.append(write(project, name, form))
    out = output_of("validate", "--project-dir", project.root, code=1)
    assert out.count("wrong ") == 1
    assert f"wrong {files[-1]}" in out.replace("\n", "")
    assert message in " ".join(out.split())
    assert "give it another name, such as" in out
    assert f"ok    {files[-1]}" not in output_of("validate", files[-1], "--project-dir", project.root, code=1)
    for file in files:
        file.unlink()


def test_the_former_name_of_a_pattern_is_taken(project: Project) -> None:
    """Its results keep it."""
    file = write(project, "sinking", lambda text: f"{text}renamed_from: rising\n")
    words = ("new", "pattern", "rising", "--source", "trades", "--like", "per-day", "--project-dir", project.root)
    assert "the results of 'sinking' are called 'rising'" in " ".join(output_of(*words, code=1).split())
    file.unlink()


@pytest.mark.parametrize(("others", "name", "form"), FREE, ids=[f"free {n}" for n in range(len(FREE))])
def test_names_that_stay_free(
    project: Project, others: dict[str, Callable[[str], str]], name: str, form: Callable[[str], str]
) -> None:
    files = [write(project, other, make) for other, make in {**others, name: form}.items()]
    output_of("validate", "--project-dir", project.root)
    for file in files:
        file.unlink()


def test_a_quarantine_is_no_source(project: Project, tmp_path: Path) -> None:
    """Both are refused wherever a table is asked for; by `validate`; and by `new`, whichever comes second. A table of
    another program may have the name."""
    columns = ["--event-id", "id", "--event-time", "at", "--type", "Trade", "--project-dir", project.root]
    file = project.root / "trades.csv"
    twin = "the table of the source 'trades_quarantine' would be the quarantine of the source 'trades' too"
    out = output_of("new", "source", "trades_quarantine", "--from", file, *columns, code=1)
    assert twin in " ".join(out.split())

    contract = (project.contracts / "trades.yaml").read_text().replace("name: trades", "name: trades_quarantine")
    (project.contracts / "trades_quarantine.yaml").write_text(contract)
    warehouse = Warehouse.of(Profile(), project)
    lake = Lake.on_demand(warehouse, project, Profile(), "names")
    for name in ("trades", "trades_quarantine"):
        for table in (warehouse.source, warehouse.quarantine):
            with pytest.raises(ProjectError, match=twin):
                table(name)
        out = output_of("validate", project.contracts / f"{name}.yaml", *columns[-2:], code=1)
        assert twin in " ".join(out.split())
        known = load_contract(project.contracts / f"{name}.yaml")
        with pytest.raises(ProjectError, match=twin):
            ingest(lake, known, [], feed="f", run_id="r")
    assert lake.started is None
    elsewhere = Warehouse.of(Profile(sources={"trades_quarantine": "/their/table"}), project)
    assert elsewhere.source("trades_quarantine") == "/their/table"
    assert elsewhere.quarantine("trades").endswith("sources/trades_quarantine")
    (project.contracts / "trades_quarantine.yaml").unlink()
    assert warehouse.source("trades").endswith("sources/trades")


def test_a_source_is_no_template(project: Project) -> None:
    columns = ["--event-id", "id", "--event-time", "at", "--type", "Trade", "--project-dir", project.root]
    out = output_of("new", "source", "results_falling", "--from", project.root / "trades.csv", *columns, code=1)
    assert "contracts of results begin with results_" in " ".join(out.split())
    file = project.contracts / "results_falling.yaml"
    file.write_text((project.contracts / "trades.yaml").read_text().replace("name: trades", "name: results_falling"))
    out = output_of("validate", file, "--project-dir", project.root, code=1)
    file.unlink()
    assert "is no contract of results" in " ".join(out.split())


@pytest.mark.parametrize("tag", ["", "t" * 101])
def test_tags_that_airflow_refuses(project: Project, tmp_path: Path, tag: str) -> None:
    file = tmp_path / "falling.yaml"
    file.write_text(FALLING + f'tags: ["{tag}"]\n')
    with pytest.raises(PatternErrors, match="tags"):
        load_pattern(file)


def test_one_dag_revises_a_pattern_of_several_tables() -> None:
    """That of the table that comes first by name; a file that names no table makes none."""
    text = FALLING.replace("source: trades", "sources: {Trade: trades, Quote: quotes}")
    silent = FALLING.replace("source: trades\n", "")
    patterns = {name: read_pattern(one)[0] for name, one in (("two", text), ("none", silent), ("one", FALLING))}
    names = DagNames.of({name: one for name, one in patterns.items() if one is not None}, None, ())
    assert names.revised == {"quotes": ["two"], "trades": ["one"]}
    assert {"quotes_revise", "trades_revise"} <= names.makers.keys()
