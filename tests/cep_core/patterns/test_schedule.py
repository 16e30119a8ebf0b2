"""A schedule is checked where its file is: Airflow would say so hours later, in an import error."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trendlake.cep_core.errors import TextError
from trendlake.cep_core.patterns.schedule import NAMES, check_schedule
from trendlake.pipelines.authoring.validate import check_files
from trendlake.pipelines.project.paths import Project

PATTERN = """\
name: rising
source: {source}
pattern: {pattern}
where: ["S.price < NEXT(S).price"]
return: {{n: COUNT(*)}}
within: 1 day
schedule: "{schedule}"
"""


@pytest.mark.parametrize("text", [*NAMES, "0 6 * * *", "*/15 * * * *", "0 0 * * MON-FRI", "0 0 L * *", "0 0 29 2 *"])
def test_what_airflow_takes(text: str) -> None:
    assert check_schedule(text) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("@dayly", "did you mean '@daily'?"),
        ("@once", "is no schedule"),
        ("99 99 * * *", "out of range"),
        ("*/0 * * * *", "step '0'"),
        ("every day", "five fields, minute hour day-of-month month day-of-week; 2 found"),
        ("", "five fields"),
        ("0 0 * * * *", "6 found"),
        ("R R * * *", "a random time is no schedule"),
        ("H * * * *", "is no cron expression"),
        ("0 0 31 2 *", "is no day of any year"),
    ],
)
def test_what_is_no_schedule(text: str, reason: str) -> None:
    with pytest.raises(TextError) as caught:
        check_schedule(text)
    assert reason in str(caught.value)


def errors_of(folder: Path, **parts: str) -> str:
    """What `validate` says of a pattern over a source that is not there, or is of this project."""
    project = Project(folder, folder / ".trendlake")
    project.patterns.mkdir(parents=True)
    project.contracts.symlink_to(ROOT / "data_contracts")
    file = project.patterns / "rising.yaml"
    file.write_text(PATTERN.format(**{"source": "stock", "pattern": "Stock S+", "schedule": "@daily"} | parts))
    ((_, error, _),) = check_files(project, [file])
    return str(error)


def test_validate_says_where(tmp_path: Path) -> None:
    assert errors_of(tmp_path).startswith("None")
    assert "rising.yaml:7:12: [BAD_VALUE]" in errors_of(tmp_path / "b", schedule="@dayly")


def test_all_errors_come_at_once_where_the_source_is_not_there(tmp_path: Path) -> None:
    """What a pattern says is checked without the columns of its source; that there may be none such is no error."""
    said = errors_of(tmp_path, source="stonk", pattern="Stock S+ )", schedule="99 99 * * *")
    assert "the source 'stonk' has no contract" in said
    assert "out of range" in said
    assert "[SYNTAX]" in said
    assert "UNKNOWN_ATTRIBUTE" not in said
    assert said.count("] ") == 3


def test_known_sources_do_not_list_contracts_of_results(tmp_path: Path) -> None:
    """Those are templates; no pattern can read them by that name."""
    said = errors_of(tmp_path, source="qqqqq")
    assert "known:" in said
    assert "flights" in said
    assert "results_" not in said


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/*/*.yaml")), ids=lambda path: path.stem)
def test_a_right_pattern_of_a_source_that_is_not_there_has_one_error(path: Path, tmp_path: Path) -> None:
    text = re.sub(r"(?m)^source: .*$", "source: not_there", path.read_text())
    text = text.replace("FROM quotes MATCH_RECOGNIZE", "FROM not_there MATCH_RECOGNIZE")
    project = Project(tmp_path, tmp_path / ".trendlake")
    project.contracts.mkdir()
    file = tmp_path / path.name
    file.write_text(text)
    for beside in path.parent.glob("*.csv"):  # the rows of `for_each` and `each`
        (tmp_path / beside.name).write_bytes(beside.read_bytes())
    ((_, error, _),) = check_files(project, [file])
    assert str(error).count("] ") == 1
    missing = "not_there" if "source: not_there" in text else "shop_customers"  # of several tables, too, one is named
    assert f"the source '{missing}' has no contract" in str(error)
