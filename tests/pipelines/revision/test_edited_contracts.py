"""An edit of a contract's rules judges rows again, and computes windows again that hold a row with another verdict, in
this process. The results are then those of a run by the edited contract; a random sequence of edits, late rows and
runs holds both together."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import trendlake
from tests.support.one_session import share_session
from tests.support.own_source import FALLING, output_of
from trendlake.jobs.main import app
from trendlake.pipelines.lake import limits

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: trades
version: 1.0.0
name: trades
status: active
schema:
  - name: trades
    customProperties:
      - {property: eventType, value: Trade}
      - {property: quarantineTolerance, value: %(tolerance)s}
    properties:
      - name: id
        logicalType: integer
        physicalType: bigint
        required: true
        unique: true
        customProperties: [{property: eventRole, value: event_id}]
      - name: at
        logicalType: timestamp
        required: true
        customProperties: [{property: eventRole, value: event_time}]
      - {name: company, logicalType: string%(company)s}
      - {name: price, logicalType: integer, physicalType: bigint%(price)s}
"""
PLAIN = {"company": "", "price": "", "tolerance": "1"}
MINUTES = 8
DAYS = ("2026-01-05T09:00", "2026-01-05T09:08")
ROWS = [
    (number, minute, seconds, company, (number * 5 + minute) % 10)
    for number, (minute, company, seconds) in enumerate(
        (minute, company, seconds) for minute in range(MINUTES) for company in "AB" for seconds in (10, 20, 30)
    )
]
prices = st.one_of(
    st.just(""),
    st.builds(
        lambda low, high: f", logicalTypeOptions: {{minimum: {low}, maximum: {high}}}",
        st.integers(-1, 4),
        st.integers(4, 10),
    ),
    st.just(", required: true"),
    st.just(", quality: [{metric: invalidValues, arguments: {validValues: [0, 1, 2, 3, 5, 8]}, mustBe: 0}]"),
    st.just(", quality: [{metric: invalidValues, arguments: {validValues: [0, 1]}, mustBeLessThan: 3}]"),
    st.just(", unique: true"),
)
companies = st.sampled_from(
    ("", ", required: true", ", logicalTypeOptions: {maxLength: 1}", ", logicalTypeOptions: {pattern: '[B-Z]'}")
)
edits = st.fixed_dictionaries({"company": companies, "price": prices, "tolerance": st.just("1")})
late_rows = st.lists(st.tuples(st.integers(0, MINUTES - 1), st.sampled_from("AB"), st.integers(0, 9)), max_size=2)
steps = st.lists(st.tuples(edits, late_rows, st.booleans()), min_size=1, max_size=3)


def written(folder: Path, values: dict[str, str]) -> None:
    (folder / "data_contracts" / "trades.yaml").write_text(CONTRACT % values)


def csv(rows: Sequence[tuple[int, int, int, str, int]]) -> str:
    lines = [
        f"{number},2026-01-05T09:{minute:02d}:{second:02d}Z,{more}"
        for number, minute, second, *of_it in rows
        for more in [",".join(map(str, of_it))]
    ]
    return "\n".join(["id,at,company,price", *lines, ""])


def deliver(folder: Path, rows: Sequence[tuple[int, int, int, str, int]]) -> None:
    (folder / "more.csv").write_text(csv(rows))
    output_of("ingest", "trades", folder / "more.csv", "--project-dir", folder)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("contracts") / "project"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TRENDLAKE_STATE", raising=False)
        output_of("init", folder)
        written(folder, PLAIN)
        (folder / "conf" / "patterns" / "falling.yaml").write_text(FALLING)
        deliver(folder, ROWS)
        with trendlake.Project(folder) as project:
            project.run("falling", *DAYS)
    return folder


@pytest.fixture
def folder(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TRENDLAKE_STATE", raising=False)
    return copied(published, tmp_path / "project")


def copied(folder: Path, other: Path) -> Path:
    shutil.rmtree(other, ignore_errors=True)
    shutil.copytree(folder, other)
    return other


def rows_of(folder: Path) -> list[dict[str, Any]]:
    names = ["window_start", "company", "trends", "lowest"]
    with trendlake.Project(folder) as project:
        table = project.results("falling", columns=names).to_arrow().select(names)
    return sorted(table.to_pylist(), key=str)


def document_of(*words: str, folder: Path) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*words, "--json", "--project-dir", str(folder)])
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def planned(folder: Path) -> dict[str, Any]:
    (document,) = document_of("plan", "falling", folder=folder)["patterns"]
    return dict(document)


def revised(folder: Path) -> dict[str, Any]:
    """The step of a revision."""
    return dict(document_of("revise", "falling", folder=folder)["revision"])


def check_of(step: dict[str, Any]) -> dict[str, Any]:
    """The check of a revision's step that says what it has looked at."""
    (check,) = (check for check in step["checks"] if check["check"] == "revision")
    return dict(check["data"] | {"observed": check["observed"]})


def test_a_rule_that_no_row_breaks(folder: Path) -> None:
    """Judges all windows and computes none; the results get no version, and the next revision has nothing to do."""
    before = rows_of(folder)
    written(folder, {**PLAIN, "price": ", logicalTypeOptions: {minimum: 0, maximum: 9}"})
    done = revised(folder)
    assert (check_of(done)["judged_again"], check_of(done)["windows"], done["road"]) == (MINUTES, 0, "here")
    assert (done["results_version"], rows_of(folder)) == (1, before)
    assert "nothing new" in check_of(revised(folder))["observed"]


def test_a_rule_that_some_rows_break(folder: Path) -> None:
    """Only windows with such a row are computed; the plan says so before. Without the rule all is as it was."""
    before = rows_of(folder)
    worst = {minute for _, minute, _, _, price in ROWS if price > 8}
    assert 0 < len(worst) < MINUTES
    written(folder, {**PLAIN, "price": ", logicalTypeOptions: {maximum: 8}"})
    words = output_of("plan", "falling", "--project-dir", folder)
    assert f"{MINUTES} windows judged again, {len(worst)} with another verdict" in " ".join(words.split())
    done = check_of(revised(folder))
    assert (done["judged_again"], done["windows"]) == (MINUTES, len(worst))
    assert done["rows"] == sum(price > 8 for *_, price in ROWS)
    assert rows_of(folder) == recomputed(folder) != before
    assert "price" in output_of("quarantine", "show", "trades", "--project-dir", folder)
    written(folder, PLAIN)
    assert check_of(revised(folder))["windows"] == len(worst)
    assert rows_of(folder) == before


@pytest.mark.spark
@pytest.mark.long
def test_on_spark(folder: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more rows than this process takes: the same windows, rows, and quarantine."""
    share_session(monkeypatch, spark)
    written(folder, {**PLAIN, "price": ", logicalTypeOptions: {maximum: 8}, unique: false"})
    here = copied(folder, folder.with_name("here"))
    of_here = revised(here)
    monkeypatch.setattr(limits, "REVISED", 1)
    done = revised(folder)
    assert (of_here["road"], done["road"]) == ("here", "spark")
    for name in ("rows", "windows", "judged_again"):
        assert check_of(done)[name] == check_of(of_here)[name]
    assert done["rows_quarantined"] == of_here["rows_quarantined"] > 0
    assert rows_of(folder) == rows_of(here)
    written(folder, {**PLAIN, "price": ", logicalTypeOptions: {maximum: 9}, unique: false"})
    done = revised(folder)
    assert done["rows_quarantined"] == 0
    assert rows_of(folder) == recomputed(folder)


def test_too_many_rows_break_it(folder: Path) -> None:
    """All bad rows of the published windows count, as in a run, though no window has been computed."""
    written(folder, {**PLAIN, "price": ", logicalTypeOptions: {maximum: 1}", "tolerance": "0.1"})
    result = CliRunner().invoke(app, ["revise", "falling", "--project-dir", str(folder)])
    assert (result.exit_code, "it tolerates 10.00%" in result.output) == (1, True), result.output
    assert f"of {len(ROWS)} rows" in result.output


def test_what_is_computed_again_as_a_whole(folder: Path) -> None:
    """The plan says why: other things than rules have changed, or the earlier text is gone."""
    rule = {**PLAIN, "price": ", logicalTypeOptions: {maximum: 8}"}
    written(folder, rule)
    file = folder / "data_contracts" / "trades.yaml"
    file.write_text(file.read_text().replace("unique: true\n", "primaryKey: true\n"))
    assert "not only rules of 'trades' have" in planned(folder)["why"]
    written(folder, rule)
    shutil.rmtree(folder / ".trendlake" / "warehouse" / "contracts")
    document = planned(folder)
    assert "how 'trades' was judged before is not stored" in document["why"]
    assert document["state"] == "contract"


def test_words_for_a_damaged_text(folder: Path) -> None:
    """A text that is not that of the fingerprint is not believed."""
    (file,) = (folder / ".trendlake" / "warehouse" / "contracts").glob("*/trades.yaml")
    file.write_text(CONTRACT % {**PLAIN, "price": ", required: true"})
    written(folder, {**PLAIN, "price": ", logicalTypeOptions: {maximum: 8}"})
    assert "is not stored" in planned(folder)["why"]


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_random_edits(published: Path, tmp_path: Path, chain: list[tuple[dict[str, str], Any, bool]]) -> None:
    """Edits of rules, late rows, and runs of a part before the revision: then results are those of a run by the edited
    contract, in all windows, and each row of the source is good or in the quarantine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TRENDLAKE_STATE", raising=False)
        folder, number = copied(published, tmp_path / "project"), len(ROWS)
        last = PLAIN
        for values, late, partly in chain:
            written(folder, values)
            if late:
                deliver(folder, [(number + i, minute, 40, *of_it) for i, (minute, *of_it) in enumerate(late)])
                number += len(late)
            if partly and values != last:  # by one contract, of two versions: Spark follows the change feed then
                with trendlake.Project(folder) as project:
                    project.run("falling", "2026-01-05T09:02", "2026-01-05T09:05")
            expected = recomputed(folder)
            done = revised(folder)
            assert done["road"] in ("here", None)
            assert rows_of(folder) == expected
            last = values


def recomputed(folder: Path) -> list[dict[str, Any]]:
    """The rows that a run of all windows publishes in a copy of the project."""
    other = copied(folder, folder.with_name("recomputed"))
    with trendlake.Project(other) as project:
        project.run("falling", *DAYS)
    return rows_of(other)
