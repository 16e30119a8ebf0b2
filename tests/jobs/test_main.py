"""The command: mistakes are told without a traceback, and exit codes say whose they are."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from tests.conftest import ROOT
from trendlake.jobs.main import app
from trendlake.jobs.terminal.times import manual_run_id, micros_of
from trendlake.pipelines.errors import BadTimeError

runner = CliRunner()
AT = ["--from", "2013-01-01", "--to", "2013-01-02"]
BROKEN = """\
name: broken
kind: trends
source: flights
pattern: Fligt F+
where: ["F.dep_dely > 0"]
return: {n: COUNT(*)}
within: 1 dy
"""


def project(tmp_path: Path) -> Path:
    """A project with the real contracts and profile, and one broken pattern."""
    (tmp_path / "conf" / "patterns").mkdir(parents=True)
    (tmp_path / "conf" / "profiles").symlink_to(ROOT / "conf" / "profiles")
    (tmp_path / "data_contracts").symlink_to(ROOT / "data_contracts")
    (tmp_path / "conf" / "patterns" / "broken.yaml").write_text(BROKEN)
    return tmp_path


def test_help_is_quick_and_has_examples() -> None:
    """Nothing heavy is loaded to print it."""
    code = """
import sys
from typer.testing import CliRunner
from trendlake.jobs.main import app
assert CliRunner().invoke(app, ["--help"]).exit_code == 0
print(sorted({"numba", "numpy", "pandas", "pyarrow", "pydantic", "pyspark", "lark"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "trendlake run rising --from" in result.output
    assert "Exit codes" in result.output


def test_the_version() -> None:
    result = runner.invoke(app, ["--version"])
    assert result.output == f"trendlake {version('trendlake')}\n"


@pytest.mark.parametrize(
    "word",
    [
        "ingest",
        "generate",
        "check-source",
        "compute",
        "check-results",
        "publish",
        "report",
        "site",
        "run",
        "validate",
        "explain",
        "show",
        "runs",
        "init",
        "test",
        "schema",
        "backfill",
        "plan",
        "apply",
        "try",
    ],
)
def test_every_word_explains_itself(word: str) -> None:
    result = runner.invoke(app, [word, "--help"])
    assert result.exit_code == 0
    assert f"Example: trendlake {word}" in result.output


def test_validate_tells_all_mistakes_with_their_places(tmp_path: Path) -> None:
    """All of a file at once, each with a caret; exit code 1."""
    result = runner.invoke(app, ["validate", "--project-dir", str(project(tmp_path))])
    assert result.exit_code == 1
    assert "ok    " in result.output
    assert "broken.yaml:7:" in result.output
    assert "^" in result.output


def test_validate_checks_the_project_s_own_files() -> None:
    result = runner.invoke(app, ["validate", "--project-dir", str(ROOT)])
    assert result.exit_code == 0, result.output
    assert result.output.count("ok    ") >= 4


def test_explain_says_how() -> None:
    result = runner.invoke(app, ["explain", "delay_snowball", "--project-dir", str(ROOT)])
    assert result.exit_code == 0, result.output
    assert "Fenwick" in result.output
    assert "cut by carrier and by time" in result.output


def test_explain_draws(tmp_path: Path) -> None:
    """A picture that stands alone; where it cannot be written, that is told."""
    out = tmp_path / "snowball.svg"
    result = runner.invoke(app, ["explain", "delay_snowball", "--project-dir", str(ROOT), "--svg", str(out)])
    assert result.exit_code == 0, result.output
    root = ElementTree.parse(out).getroot()
    assert root.findtext("{http://www.w3.org/2000/svg}title") == "delay_snowball"
    assert "F.dep_delay < NEXT(F).dep_delay" in "".join(root.itertext())
    nowhere = str(tmp_path / "no" / "such.svg")
    result = runner.invoke(app, ["explain", "delay_snowball", "--project-dir", str(ROOT), "--svg", nowhere])
    assert result.exit_code == 1
    assert "cannot be written" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "delay_snowbal", *AT], "did you mean 'delay_snowball'?"),
        (["run", "delay_snowball", "--from", "yesterday", "--to", "2013-01-02"], "is no ISO 8601 time"),
        (["run", "delay_snowball", "--from", "2013-01-02", "--to", "2013-01-02"], "the interval is empty"),
        (["run", "delay_snowball", *AT, "--profile", "locl"], "did you mean 'local'?"),
        (["ingest", "flight"], "did you mean 'flights'?"),
        (["show", "nothing"], "there is no pattern 'nothing'"),
    ],
)
def test_a_user_s_mistake_is_exit_code_1(arguments: list[str], message: str) -> None:
    """One message with a way out; no traceback, and Spark is not started for it."""
    result = runner.invoke(app, [*arguments, "--project-dir", str(ROOT)])
    assert result.exit_code == 1
    assert message in result.output
    assert "Traceback" not in result.output


def test_jars_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before set-up the message says what to type, where Spark is needed: for a table that this process cannot read. In
    a process of its own: a Java that runs has its jars."""
    log = tmp_path / "warehouse" / "trendlake_runs" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("{}")
    monkeypatch.setenv("TRENDLAKE_STATE", str(tmp_path))
    monkeypatch.setenv("TRENDLAKE_JARS", str(tmp_path))
    command = [sys.executable, "-m", "trendlake.jobs.main", "maintain", "--project-dir", str(ROOT)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "Delta's jars are not in" in result.stderr
    assert "trendlake setup" in result.stderr


def test_wrong_usage_is_exit_code_2() -> None:
    assert runner.invoke(app, ["compute", "delay_snowball", *AT]).exit_code == 2


def test_times_are_utc_where_they_say_no_zone() -> None:
    assert micros_of("2013-01-01", "--from") == 1_356_998_400_000_000
    assert micros_of("2013-01-01T01:00:00+01:00", "--from") == 1_356_998_400_000_000
    assert micros_of("1969-12-31T23:59:59.000001Z", "--from") == -999_999
    with pytest.raises(BadTimeError):
        micros_of("", "--from")


def test_run_ids_differ() -> None:
    assert manual_run_id("a").startswith("a_20")
