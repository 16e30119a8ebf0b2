"""`trendlake plan`: the state of each pattern after an edit, and the commands that bring its results up to date."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.own_source import output_of

RULE = "        logicalTypeOptions: {minimum: 0}\n"


def planned(*words: str, code: int = 0) -> dict[str, dict[str, Any]]:
    """The documents by pattern."""
    output = output_of("plan", *words, "--json", code=code)
    return {one["pattern"]: one for one in json.loads(output[output.index("{") :])["patterns"]}


def pattern(old: str, new: str) -> Callable[[Path], None]:
    """An edit of `falling`."""

    def edit(folder: Path) -> None:
        file = folder / "conf" / "patterns" / "falling.yaml"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    return edit


def contract(old: str, new: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        file = folder / "data_contracts" / "trades.yaml"
        text = file.read_text()
        assert re.search(old, text)
        file.write_text(re.sub(old, new, text, count=1))

    return edit


MEASURES = "{trends: COUNT(*), lowest: MIN(E.price)}"
END = "within: 1 minute\n"
EDITS: dict[str, tuple[Callable[[Path], None], str, str | None]] = {
    "description": (pattern(END, f"{END}description: Falls.\n"), "words_only", None),
    "owner": (pattern(END, f"{END}owner: ops\n"), "words_only", None),
    "tags": (pattern(END, f"{END}tags: [a]\n"), "words_only", None),
    "schedule": (pattern(END, f'{END}schedule: "@daily"\n'), "words_only", None),
    "words of a condition": (pattern("E.price > NEXT(E).price", "E.price  >  NEXT(E).price"), "words_only", None),
    "condition": (pattern("E.price > NEXT(E).price", "E.price >= NEXT(E).price"), "changes_results", "compatible"),
    "strategy": (pattern(END, f"{END}select: contiguous\n"), "changes_results", "compatible"),
    "having": (pattern(END, f"{END}having: [trends > 1]\n"), "changes_results", "compatible"),
    "window": (pattern(END, "within: 2 minutes\n"), "changes_results", "compatible"),
    "measure more": (pattern(MEASURES, MEASURES[:-1] + ", n: COUNT(E)}"), "changes_results", "compatible"),
    "measure less": (pattern(MEASURES, "{trends: COUNT(*)}"), "changes_results", "incompatible"),
    "measure renamed": (pattern("lowest: MIN", "least: MIN"), "changes_results", "incompatible"),
    "measure retyped": (pattern("lowest: MIN(E.price)", "lowest: COUNT(E)"), "changes_results", "incompatible"),
    "group": (pattern("group_by: [company]\n", ""), "changes_results", "incompatible"),
    "rule": (contract(r"(physicalType: bigint\n)(?=slaProperties)", r"\1" + RULE), "contract", None),
    "rule that rows break": (
        contract(r"(physicalType: bigint\n)(?=slaProperties)", r"\1" + RULE.replace("0", "8")),
        "contract",
        None,
    ),
    "words of a contract": (contract(r"\nschema:", "\n# a remark\nschema:"), "unchanged", None),
    "syntax": (pattern("within: 1 minute", "wihtin: 1 minute"), "error", None),
}


KEYS = r"^falling +changes results +return\.least \(new column\), return\.lowest \(column removed\)$"
COMMANDS = ("condition", "window", "group")
"""Edits after which the commands are typed; a revision by a changed contract is for Spark."""


def test_the_state_after_each_edit(project: Path) -> None:
    """Readers of the results are named. Those that want a column which the results do not have yet are behind."""
    files = [project / "conf" / "patterns" / "falling.yaml", project / "data_contracts" / "trades.yaml"]
    texts = [file.read_text() for file in files]
    for name, (edit, state, readers) in EDITS.items():
        edit(project)
        documents = planned(code=1 if state == "error" else 0)
        mine = documents["falling"]
        assert (name, mine["state"], mine["readers"]) == (name, state, readers)
        assert mine["downstream"] == ["weekly", "below"]
        stale = state in ("changes_results", "contract") and name != "rule"
        assert sum(count for *_, count in mine["windows"]) == (0 if not stale else 5 if name == "window" else 10)
        if stale:
            (((since, until, _),)) = mine["windows"]
            assert (since, until) == ("2026-01-05T09:00:00Z", "2026-01-05T09:10:00Z")
            assert (mine["events"], mine["seconds"] > 0) == (40, True)
        if state == "error":
            assert "UNKNOWN_KEY" in {one["code"] for one in mine["error"]["errors"]}
        else:
            assert documents["weekly"]["state"] in ("behind", "unchanged")
            assert bool(mine["keys"]) == (state in ("changes_results", "words_only"))
            assert documents["weekly"]["state"] == "behind" or not mine["columns_added"]
        if state == "contract":
            assert f"10 windows judged again, {10 if stale else 0} with another verdict" in mine["why"]
        if name == "measure retyped":
            assert "'lowest' is bigint, and the pattern gives decimal(38,0)" in mine["columns_retyped"][0]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_the_commands_leave_nothing_to_do(project: Path, name: str) -> None:
    EDITS[name][0](project)
    for typed in planned()["falling"]["commands"]:
        output_of(*shlex.split(typed)[1:])
    again = planned()["falling"]
    assert (again["state"], again["commands"]) == ("unchanged", [])


def test_new_renamed_and_removed(project: Path) -> None:
    folder = project / "conf" / "patterns"
    assert {name: one["state"] for name, one in planned().items()} == {
        "falling": "unchanged",
        "weekly": "unchanged",
        "below": "new",
    }
    text = (folder / "weekly.yaml").read_text()
    (folder / "weekly.yaml").unlink()
    (folder / "below.yaml").unlink()
    assert planned()["weekly"]["state"] == "removed"
    (folder / "monthly.yaml").write_text(text.replace("name: weekly", "name: monthly\nrenamed_from: weekly"))
    renamed = planned()["monthly"]
    assert (renamed["state"], renamed["windows"]) == ("renamed", [])
    assert "weekly" in renamed["why"]


def test_late_rows(project: Path) -> None:
    """A pattern behind its source, whose windows only the change feed tells; a weak one stays as it was."""
    late = project / "late.csv"
    late.write_text("id,at,company,price\nlate,2026-01-05T09:03:15Z,A,1\n")
    output_of("ingest", "trades", late)
    documents = planned("falling", "weekly")
    assert (documents["falling"]["state"], documents["falling"]["windows"]) == ("behind", [])
    assert "results show version" in documents["falling"]["why"]
    assert documents["weekly"]["state"] == "unchanged"
    for typed in documents["falling"]["commands"]:
        output_of(*shlex.split(typed)[1:])
    documents = planned()
    assert (documents["falling"]["state"], documents["weekly"]["state"]) == ("unchanged", "behind")
    pattern(END, f"{END}consistency: weak\n")(project)
    output_of("ingest", "trades", late, code=0)
    assert planned("falling")["falling"]["state"] == "words_only"


def test_text_markdown_and_what_fails(project: Path) -> None:
    """One pattern's error stops no other; texts from files do not break a table."""
    pattern("lowest: MIN", "least: MIN")(project)
    output = output_of("plan")
    assert re.search(KEYS, output, re.MULTILINE)
    stale = re.escape("  10 of 10 windows stale, 2026-01-05 09:00 to 2026-01-05 09:10 (UTC)")
    assert re.search(stale + r"; 40 events, 0\.0 MB, about \d+ s \(from 1 run\)\n", output)
    assert "readers of its results lose columns: the change is incompatible" in output
    assert "  next: trendlake backfill falling --from" in output
    assert "  then: weekly, below read its results, and are revised after it" in output
    for states, code in (("", 0), ("incompatible", 1), ("stale", 1), ("contract", 0), ("new, contract", 1)):
        output_of("plan", "--fail-on", states, code=code)
    assert "did you mean 'stale'?" in output_of("plan", "--fail-on", "stail", code=1)
    lines = output_of("plan", "--format", "markdown").splitlines()
    assert lines[0] == "| pattern | state | why | windows | next |"
    assert {line.count(" | ") for line in lines[2:]} == {4}
    assert any(line.startswith("| `below` | new | nothing is published |") for line in lines)
    broken = project / "conf" / "patterns" / "broken.yaml"
    broken.write_text("name: broken\nsource: trades\npattern: Trade |\n")
    assert planned(code=1)["falling"]["state"] == "changes_results"


def test_the_keys_and_their_old_text_in_git(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text that was published is that of the last commit with the digests noted, whatever was committed since."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(project.parent))
    file = project / "conf" / "patterns" / "falling.yaml"
    pattern("E.price > NEXT(E).price", "E.price >= NEXT(E).price")(project)
    (mine,) = details()["patterns"]
    assert (mine["state"], mine["keys"], mine["why"]) == ("changes_results", ["where"], "where")
    new = json.dumps(["[company]", "E.price >= NEXT(E).price"])
    assert mine["texts"] == [{"key": "where", "old": None, "new": new, "looked_up": False}]

    def git(*words: str) -> None:
        identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
        subprocess.run(["git", "-C", str(project), *identity, *words], check=True, capture_output=True)

    git("init")
    for old, text in ((">=", ">"), (">", "<"), ("<", ">=")):
        pattern(f"E.price {old} NEXT", f"E.price {text} NEXT")(project)
        git("add", str(file))
        git("commit", "-m", text)
    (mine,) = details()["patterns"]
    assert mine["texts"] == [
        {"key": "where", "old": json.dumps(["[company]", "E.price > NEXT(E).price"]), "new": new, "looked_up": True}
    ]
    assert (
        '    - ["[company]", "E.price > NEXT(E).price"]\n    + ["[company]", "E.price >= NEXT(E).price"]\n'
        in output_of("plan", "falling", "--details")
    )


def details() -> Any:
    output = output_of("plan", "falling", "--details", "--json")
    return json.loads(output[output.index("{") :])


def test_notes_without_keys(project: Path) -> None:
    """As versions before noted them: the state is the same, the keys are not known."""
    for file in project.rglob("results/falling/_delta_log/*.json"):
        file.write_text(re.sub(r', \\"keys\\": \{[^}]*\}', "", file.read_text()))
    runs = project / ".trendlake"
    assert not any("keys" in file.read_text() for file in runs.rglob("results/falling/_delta_log/*.json"))
    pattern(END, f"{END}owner: ops\n")(project)
    assert (planned("falling")["falling"]["state"], planned("falling")["falling"]["keys"]) == ("unchanged", [])
    pattern("E.price > NEXT(E).price", "E.price >= NEXT(E).price")(project)
    mine = planned("falling")["falling"]
    assert (mine["state"], mine["keys"], mine["why"]) == ("changes_results", [], "the same columns")


def test_nothing_is_written(project: Path) -> None:
    pattern("group_by: [company]\n", "")(project)
    before = {path: path.stat().st_mtime_ns for path in project.rglob("*") if path.is_file()}
    planned()
    assert {path: path.stat().st_mtime_ns for path in project.rglob("*") if path.is_file()} == before
