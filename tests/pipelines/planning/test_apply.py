"""`trendlake apply`: after it, plan says that nothing is left, and the rows are those of a new warehouse."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.pipelines.planning.conftest import DAYS
from tests.pipelines.planning.test_plan import EDITS, END, contract, pattern, planned
from tests.support.own_source import output_of
from trendlake.pipelines.steps import backfill as stepping

PROVENANCE = ("run_id", "computed_at", "source_version")
"""Columns that differ between two warehouses with the same results."""


def documents(*words: str, code: int = 0) -> list[dict[str, Any]]:
    """What `apply --yes --json` prints, a line each."""
    output = output_of("apply", *words, "--yes", "--json", code=code)
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def rows(folder: Path, name: str, columns: list[str] | None = None) -> list[dict[str, Any]]:
    (table,) = folder.rglob(f"results/{name}")
    read = DeltaTable(str(table)).to_pyarrow_table(columns=columns)
    return sorted(read.drop([name for name in PROVENANCE if name in read.column_names]).to_pylist(), key=str)


def of_a_new_warehouse(project: Path, folder: Path, *names: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of the project's files as they are, computed by runs and nothing else."""
    shutil.copytree(project, folder, ignore=shutil.ignore_patterns(".trendlake"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRENDLAKE_PROJECT", str(folder))
        patch.setenv("TRENDLAKE_STATE", str(folder / ".trendlake"))
        output_of("ingest", "trades", folder / "trades.csv")
        for name in names:
            output_of("run", name, *DAYS)
    return {name: rows(folder, name) for name in names}


def check_applied(project: Path, folder: Path) -> None:
    states = {name: planned()[name]["state"] for name in ("falling", "weekly")}
    assert states == {"falling": "unchanged", "weekly": "unchanged"}
    fresh = of_a_new_warehouse(project, folder, "falling", "weekly")
    for name, wanted in fresh.items():
        columns = [*wanted[0]] if wanted else None
        assert rows(project, name, columns) == wanted


def test_an_edit_with_late_rows_and_a_reader(project: Path, tmp_path: Path) -> None:
    """The stale windows, then the reader; afterwards nothing is left to apply."""
    pattern("E.price > NEXT(E).price", "E.price >= NEXT(E).price")(project)
    late = project / "late.csv"
    late.write_text("id,at,company,price\nlate,2026-01-05T09:03:15Z,A,1\n")
    output_of("ingest", "trades", late)
    first, *done = documents()
    assert [one["pattern"] for one in first["patterns"]] == ["below", "falling", "weekly"]
    assert [one.get("pattern") for one in done if "pattern" in one] == ["falling", "weekly"]
    assert sum(one.get("chunks", 0) for one in done) == 10
    (project / "trades.csv").write_text((project / "trades.csv").read_text() + late.read_text().splitlines()[1] + "\n")
    check_applied(project, tmp_path / "fresh")
    assert len(documents()) == 1


CHANGED = [name for name, (_, state, _) in EDITS.items() if state in ("changes_results", "contract")]
REFUSED = ("measure retyped", "rule that rows break")


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("name", [name for name in CHANGED if name not in REFUSED])
def test_each_edit_applied(shared_project: Path, tmp_path: Path, name: str) -> None:
    EDITS[name][0](shared_project)
    documents()
    check_applied(shared_project, tmp_path / "fresh")


def test_more_rows_than_a_contract_tolerates(project: Path) -> None:
    """As a revision says: nothing is published."""
    before = rows(project, "falling")
    EDITS["rule that rows break"][0](project)
    _, *done = documents(code=1)
    assert [(one["pattern"], one["error"]["code"]) for one in done] == [("falling", "TOLERANCE")]
    assert rows(project, "falling") == before


def test_another_type_is_refused_and_readers_are_left(project: Path) -> None:
    """As a run refuses it: nothing is published, and what reads the results is not touched."""
    before = {name: rows(project, name) for name in ("falling", "weekly")}
    EDITS["measure retyped"][0](project)
    _, *done = documents(code=1)
    assert [(one["pattern"], one["error"]["code"]) for one in done] == [("falling", "RESULTS_TYPE")]
    assert {name: rows(project, name) for name in before} == before


def test_it_asks(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal the plan is printed, nothing is done, and the exit code is 2."""
    pattern("E.price > NEXT(E).price", "E.price >= NEXT(E).price")(project)
    before = rows(project, "falling")
    output = output_of("apply", "falling", code=2)
    assert re.search(r"^falling +changes results +where$", output, re.MULTILINE)
    assert "--yes" in output
    assert rows(project, "falling") == before
    assert planned("falling")["falling"]["state"] == "changes_results"


def test_from_and_words_only_and_removed(project: Path) -> None:
    """Windows before `--from` keep their form; edits of words, and results without a file, are no work."""
    pattern(END, f"{END}owner: ops\n")(project)
    (project / "conf" / "patterns" / "below.yaml").unlink()
    (project / "conf" / "patterns" / "weekly.yaml").unlink()
    (plan,) = documents()
    states = {one["pattern"]: one["state"] for one in plan["patterns"]}
    assert states == {"falling": "words_only", "weekly": "removed"}
    pattern("E.price > NEXT(E).price", "E.price >= NEXT(E).price")(project)
    documents("falling", "--from", "2026-01-05T09:06")
    again = planned("falling")["falling"]
    assert again["windows"] == [["2026-01-05T09:00:00Z", "2026-01-05T09:06:00Z", 6]]


def test_a_plan_file(project: Path) -> None:
    """It is applied where all is as it was; newer rows of a source are read, and named."""
    plan = project / "plan.json"
    pattern("E.price > NEXT(E).price", "E.price >= NEXT(E).price")(project)
    output_of("plan", "falling", "--out", plan)
    pattern("E.price >= NEXT(E).price", "E.price < NEXT(E).price")(project)
    assert "[STALE_PLAN] falling: the pattern was edited" in output_of("apply", plan, "--yes", code=1)
    pattern("E.price < NEXT(E).price", "E.price >= NEXT(E).price")(project)
    contract(r"\nschema:", "\n# a remark\nschema:")(project)
    late = project / "late.csv"
    late.write_text("id,at,company,price\nlate,2026-01-05T09:03:15Z,A,1\n")
    output_of("ingest", "trades", late)
    output = output_of("apply", plan, "--yes")
    assert re.search(r"falling: trades is at version \d+, the plan was made at version \d+; the newest is read", output)
    assert planned("falling")["falling"]["state"] == "unchanged"
    assert "nothing to apply" in output_of("apply", plan, "--yes")
    pattern("E.price >= NEXT(E).price", "E.price < NEXT(E).price")(project)
    output_of("apply", "falling", "--yes")
    pattern("E.price < NEXT(E).price", "E.price >= NEXT(E).price")(project)
    stale = output_of("apply", plan, "--yes", code=1)
    assert re.search(r"\[STALE_PLAN\] falling: results are at version \d+, the plan was made at version \d+", stale)
    plan.write_text("[]")
    assert "[PROJECT]" in output_of("apply", plan, "--yes", code=1)


def test_interrupted(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typed again, it computes only the windows that are left, also by a plan file."""
    pattern("E.price > NEXT(E).price", "E.price >= NEXT(E).price")(project)
    plan = project / "plan.json"
    output_of("plan", "--out", plan)
    steps, publications = dict(stepping.STEPS), 0

    def publish(run: Any) -> Any:
        nonlocal publications
        if publications == 4:
            raise KeyboardInterrupt
        publications += 1
        return steps["publish"](run)

    with monkeypatch.context() as patch:
        patch.setitem(stepping.STEPS, "publish", publish)
        output_of("apply", plan, "--yes", code=130)
    assert planned("falling")["falling"]["windows"][0][2] == 6
    _, *done = documents(plan)
    assert sum(one.get("computed", 0) for one in done) == 6
    check_applied(project, tmp_path / "fresh")
