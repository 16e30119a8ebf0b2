"""`trendlake.Project` in this process: each method has what its command prints with `--json`, and says nothing."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import trendlake
from tests.jobs.test_without_java import PATTERN
from tests.support.html_tags import Tags
from tests.support.python_project import DAYS, make_project
from trendlake.cep_core import TrendlakeError
from trendlake.jobs.main import app
from trendlake.pipelines.json_text import json_text

SECONDS = ("seconds", "at", "attempt", "started_at", "finished_at", "computed_at")
"""Keys whose values differ from run to run."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TRENDLAKE_STATE", raising=False)
        patch.chdir(folder)
        make_project(folder)
        yield folder


@pytest.fixture
def project(folder: Path) -> Iterator[trendlake.Project]:
    with trendlake.Project(folder) as project:
        yield project


def printed(*words: str) -> Any:
    """The documents of a command, one or those of its lines."""
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 0, result.output
    try:
        return json.loads(result.stdout)
    except json.JSONDecodeError:
        return [json.loads(line) for line in result.stdout.splitlines()]


def plain(document: Any) -> Any:
    """As `--json` writes it, without what differs from run to run."""
    return _steady(json.loads(json_text(document, None)))


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _steady(item) for name, item in value.items() if name not in SECONDS}
    return [_steady(item) for item in value] if isinstance(value, list) else value


def fields_of(document: Any) -> Any:
    """The fields of a frozen document by the names of `--json`."""
    return plain(_by_names_of_json(document))


def _by_names_of_json(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {name.rstrip("_"): _by_names_of_json(item) for name, item in vars(value).items()}
    return [_by_names_of_json(item) for item in value] if isinstance(value, list | tuple) else value


def by_key(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["window_start"], row["symbol"]))


def test_results_are_those_that_show_prints(project: trendlake.Project) -> None:
    results = project.results("falling")
    assert plain(results.to_arrow().to_pylist()) == _steady(by_key(printed("show", "falling")["rows"]))
    assert len(results) == 3
    chosen = project.results("falling", as_of=1, start=DAYS[0], end="2024-01-02", where={"symbol": ["A", "C"]})
    options = ("--as-of", "1", "--from", DAYS[0], "--to", "2024-01-02", "--group", "symbol=A")
    assert plain(chosen.to_arrow().to_pylist()) == _steady(printed("show", "falling", *options)["rows"])
    (row,) = project.results("falling", as_of=1, where={"symbol": "B"}, columns=["trends"]).to_arrow().to_pylist()
    assert row == {"trends": 3}
    assert project.results("falling", where={"symbol": None}).to_arrow().num_rows == 0


def test_results_are_frames_of_other_libraries(project: trendlake.Project) -> None:
    results = project.results("falling")
    table = results.to_arrow()
    assert pa.table(results).equals(table)
    assert pa.schema(results) == table.schema
    assert results.to_reader().read_all().equals(table)
    assert results.to_polars().to_dicts() == table.to_pylist()
    assert results.to_pandas().columns.tolist() == table.column_names
    assert str(results.to_pandas().dtypes["trends"]) == "decimal128(38, 0)[pyarrow]"


def test_a_read_is_a_plan(project: trendlake.Project) -> None:
    """Equal for equal arguments; its mistakes come with its rows."""
    assert project.results("falling") == project.results("falling", where={})
    assert project.results("falling") != project.results("falling", as_of=1)
    nothing = project.results("no_such")
    with pytest.raises(TrendlakeError, match="no pattern 'no_such'"):
        nothing.to_arrow()


def test_diff_history_and_runs(project: trendlake.Project) -> None:
    assert plain(project.diff("falling", 1, 2).to_arrow().to_pylist()) == _steady(
        printed("diff", "falling", "--from", "1", "--to", "2")["rows"]
    )
    mine = project.history("falling", "2024-01-01", group={"symbol": "A"}).to_arrow().to_pylist()
    theirs = printed("history", "falling", "--window", "2024-01-01", "--group", "symbol=A")["values"]
    assert [row["run_id"] for row in mine] == ["first", "second"]
    for row, value in zip(mine, theirs, strict=True):
        note = json.loads(row.pop("note"))
        assert plain({**note, "row": row["row"], "version": row["version"]}) == _steady(value)
        assert {name: value[name] for name in ("run_id", "stage", "source_version")}.items() <= row.items()
    records = project.runs("falling", limit=3).to_arrow().to_pylist()
    for record in records:
        record |= {name: json.loads(record[name]) for name in ("checks", "note", "basis", "sources") if record[name]}
    assert plain(records) == _steady(printed("runs", "falling", "--limit", "3")["records"])


def test_runs_backfills_and_revisions(project: trendlake.Project, capfd: pytest.CaptureFixture[str]) -> None:
    """Documents of the same keys and values; nothing is printed."""
    run = project.run("falling", *DAYS, run_id="third")
    several = project.run(["kind:trends"], *DAYS, run_id="third")
    revision, revisions = project.revise("falling", run_id="r"), project.revise(project.select("*"), run_id="r")
    backfill = project.backfill("falling", *DAYS, chunk="1 day")
    assert capfd.readouterr() == ("", "")
    document = printed("run", "falling", "--from", DAYS[0], "--to", DAYS[1], "--run-id", "third")
    assert fields_of(run) | {"stages": []} == _steady(document) | {"stages": [], "state": "succeeded", "error": None}
    assert [stage.keys() for stage in document["stages"]] == [fields_of(x).keys() | {"seconds"} for x in run.stages]
    assert [stage.stage for stage in run.stages] == ["check_source", "compute", "check_results", "publish"]
    (one,) = several
    assert fields_of(one).keys() - {"error"} == printed("run", "kind:trends", "--run-id", "x").keys()
    assert (one.state, one.error, one.stages[-1].rows_out) == ("succeeded", None, run.stages[-1].rows_out)
    shown = printed("revise", "falling", "--run-id", "r")
    assert fields_of(revision).keys() - {"error"} == shown.keys()
    assert revision.revision is not None
    assert fields_of(revision.revision).keys() | {"seconds"} == shown["revision"].keys()
    assert [item.pattern for item in revisions] == ["falling"]
    *chunks, total = printed("backfill", "falling", "--from", DAYS[0], "--to", DAYS[1], "--chunk", "1 day")
    assert fields_of(backfill) == _steady(total) | {"each": chunks}


def test_nothing_to_run(project: trendlake.Project) -> None:
    run = project.run("falling")
    assert run.from_ is None
    assert run.stages == ()
    assert "nothing to run" in run._repr_html_()
    assert run.nothing_to_run == printed("run", "falling")["nothing_to_run"]


def test_an_error_in_one_stops_no_other(folder: Path, project: trendlake.Project) -> None:
    broken = folder / "conf" / "patterns" / "broken.yaml"
    broken.write_text(PATTERN.replace("falling", "broken").replace("E.price >", "E.prize >"))
    try:
        runs = project.run(["*"], *DAYS)
        assert {run.pattern: (run.state, run.error and run.error["code"]) for run in runs} == {
            "broken": ("failed", "PATTERN"),
            "falling": ("succeeded", None),
        }
        revisions = {one.pattern: one for one in project.revise(["*"])}
        assert revisions["broken"].error is not None
        assert "[PATTERN]" in revisions["broken"]._repr_html_()
        assert revisions["falling"].error is None
        with pytest.raises(TrendlakeError, match="did you mean 'price'"):
            project.run("broken", *DAYS)
    finally:
        broken.unlink()


def test_try_and_publish_agree(project: trendlake.Project) -> None:
    """The pattern over the events that a run reads gives the rows that it publishes."""
    rows = trendlake.evaluate(project.patterns["falling"], project.events("trades", *DAYS))
    assert rows.equals(project.results("falling", start=DAYS[0], end=DAYS[1]).to_arrow())
    assert rows.num_rows == 3


def test_events_are_the_good_ones(project: trendlake.Project) -> None:
    first = project.events("trades", version=1)
    assert first.version == 1
    assert first.to_arrow().column_names[-1] == "event_type"
    assert sorted(first.to_arrow()["event_id"].to_pylist()) == ["a1", "a2", "a3", "a4", "b1", "b2"]
    assert project.events("trades", "2024-01-02").to_arrow()["event_id"].to_pylist() == ["a4"]
    with pytest.raises(TrendlakeError, match="has versions 0 to 2"):
        project.events("trades", version=9).to_arrow()


def test_patterns(project: trendlake.Project, folder: Path) -> None:
    assert list(project.patterns) == ["falling"] == [one.name for one in project.select("*", "source:trades")]
    falling = project.patterns["falling"]
    assert (falling.name, falling.kind, falling.source, falling.text) == ("falling", "trends", "trades", PATTERN)
    assert falling.path == folder / "conf" / "patterns" / "falling.yaml"
    explained = printed("explain", "falling")
    assert falling.explain().splitlines() == explained["explained"]
    assert falling.plan.hash == explained["plan_hash"]
    assert falling.svg().startswith("<svg ")


def test_notebooks_show_it(project: trendlake.Project) -> None:
    """HTML whose tags are closed, without scripts and anything that is fetched; in the colours around it."""
    run = project.run("falling", *DAYS)
    shown = {
        "pattern": project.patterns["falling"],
        "results": project.results("falling"),
        "runs": project.runs(),
        "diff": project.diff("falling", 1, 2),
        "run": run,
        "stage": run.stages[0],
        "revision": project.revise("falling"),
        "backfill": project.backfill("falling", *DAYS),
    }
    pages = {name: one._repr_html_() for name, one in shown.items()}
    for page in pages.values():
        Tags(page).refuse_more_than_a_picture()
        assert "#" not in page.replace("E#0", "").replace("&#x27;", "")
    assert "E.price &gt; NEXT(E).price" in pages["pattern"]
    assert 'class="automaton"' in pages["pattern"]
    assert "3 rows" in pages["results"]
    assert 'class="spark"' in pages["results"]
    assert "trends_log10" not in pages["results"]


QUIET = """
import atexit, sys
import trendlake
from pyspark import SparkContext
atexit.register(lambda: print("typer" in sys.modules, SparkContext._gateway))
with trendlake.Project(sys.argv[1]) as project:
    project.results("falling").to_arrow()
    project.run("no_such")
"""


def test_nothing_of_the_command_line_is_imported(folder: Path) -> None:
    """Neither typer nor Java; the error is that of the command."""
    environment = {name: value for name, value in os.environ.items() if name != "TRENDLAKE_STATE"}
    done = subprocess.run([sys.executable, "-c", QUIET, str(folder)], capture_output=True, text=True, env=environment)
    assert done.stdout == "False None\n"
    assert "no pattern 'no_such'" in done.stderr


def test_hints_are_commands_as_typed(project: trendlake.Project, folder: Path) -> None:
    (folder / "conf" / "patterns" / "rising.yaml").write_text(PATTERN.replace("falling", "rising"))
    try:
        with pytest.raises(TrendlakeError) as error:
            project.results("rising").to_arrow()
    finally:
        (folder / "conf" / "patterns" / "rising.yaml").unlink()
    assert error.value.hint == f"run `trendlake run rising --project-dir {folder}`"


def test_what_only_spark_reads(project: trendlake.Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """No question starts Java."""
    monkeypatch.setattr("trendlake.pipelines.lake.limits.RESULTS_READ", 1)
    with pytest.raises(TrendlakeError, match=r"\[NEEDS_SPARK\] only Spark reads these rows: ") as error:
        project.results("falling").to_arrow()
    assert "Project(..., spark=session)" in str(error.value)


def test_one_version(project: trendlake.Project, folder: Path) -> None:
    """Results that are read while a run publishes are those of the version before."""
    results, before = project.results("falling"), project.results("falling").to_arrow()
    version = results.version
    (folder / "more.csv").write_text("event_id,event_time,symbol,price\nc1,2024-01-01T15:00:00Z,C,9.0\n")
    assert CliRunner().invoke(app, ["ingest", "trades", "more.csv"]).exit_code == 0
    assert project.revise("falling").changed
    assert results.to_arrow().equals(before)
    assert results.version == version
    assert project.results("falling").version != version
    assert project.results("falling").to_arrow().num_rows == 4
