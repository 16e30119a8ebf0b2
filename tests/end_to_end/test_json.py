"""`--json` of every command, each in a process of its own: stdout is JSON and nothing else, the output of Java and
Spark goes elsewhere, one command's document agrees with the next one's, and the keys are those of the golden file.

`python -m tests.end_to_end.test_json` writes the golden file.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.golden.documents import keys, stored, write
from tests.support.own_source import FALLING, pair_of_a_batch, start

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.chaos]

TRADES = "id,at,company,price\n" + "".join(
    f"{number},2026-01-05T09:{number // 6:02d}:{number % 6 * 10:02d},A,{60 - number}\n" for number in range(60)
)
DOCUMENTS: dict[str, list[Any]] = defaultdict(list)
"""What each command has printed, errors aside."""
DAY = ("--from", "2026-01-05T09:00", "--to", "2026-01-05T09:10")


def said(folder: Path, *arguments: str | Path, code: int = 0) -> list[Any]:
    """The documents of a command: a line each for `backfill`, one document for the others."""
    environment = {name: value for name, value in os.environ.items() if name != "TRENDLAKE_STATE"}
    environment["PYTHONPATH"] = str(ROOT)
    environment.setdefault("TRENDLAKE_JARS", str(Path(os.environ.get("TRENDLAKE_STATE", ROOT / ".trendlake")) / "jars"))
    command = [sys.executable, "-m", "trendlake.jobs.main", *map(str, arguments), "--json"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    lines = done.stdout.splitlines() if arguments[0] == "backfill" else [done.stdout]
    documents = [json.loads(line) for line in lines]
    groups = ("new", "quarantine", "source")
    name = " ".join(map(str, arguments[: 2 if arguments[0] in groups else 1]))
    DOCUMENTS["error" if "error" in documents[-1] else name] += documents
    return documents


def walk(tmp_path: Path) -> dict[str, list[str]]:
    """Runs every command: from files to results, through a correction and a repair, to the site. Returns the keys of
    the documents by command."""
    DOCUMENTS.clear()
    folder, first = tmp_path / "mine", tmp_path / "trades.csv"
    start(folder, first, TRADES)
    contract = folder / "data_contracts" / "trades.yaml"
    promise = {
        "- name: price": "- name: price\n        logicalTypeOptions: {minimum: 0}",
        "quarantineTolerance\n        value: 0": "quarantineTolerance\n        value: 1",
    }
    for there, more in promise.items():
        assert there in contract.read_text()
        contract.write_text(contract.read_text().replace(there, more, 1))
    (folder / "conf" / "patterns" / "falling.yaml").write_text(FALLING)

    (ingested,) = said(folder, "ingest", "trades", first)
    assert (ingested["source"], ingested["rows"]) == ("trades", 60)
    assert [(one["file"], one["rows_inserted"]) for one in ingested["ingested"]] == [(str(first), 60)]

    (run,) = said(folder, "run", "falling", *DAY, "--run-id", "r1")
    assert [one["stage"] for one in run["stages"]] == ["check_source", "compute", "check_results", "publish"]
    assert (run["stages"][0]["rows_in"], run["stages"][0]["source_version"]) == (60, ingested["version"])
    assert run["stages"][3]["rows_inserted"] == 10
    assert all(Path(run[name]).is_file() for name in ("report", "picture", "site"))
    (records,) = said(folder, "runs", "falling")
    text = {record["stage"]: record for record in records["records"]}
    assert all(one == {name: text[one["stage"]][name] for name in one} for one in run["stages"])

    (early,) = said(folder, "compute", "falling", *DAY, "--run-id", "r2", code=1)
    assert early["error"]["code"] == "STEP_ORDER"
    (step,) = said(folder, "check-source", "falling", *DAY, "--run-id", "r2")
    assert (step["stage"], step["run_id"], step["rows_quarantined"]) == ("check_source", "r2", 0)
    for command in ("compute", "check-results", "publish"):
        (step,) = said(folder, command, "falling", *DAY, "--run-id", "r2")
        assert step["stage"] == command.replace("-", "_")
    (report,) = said(folder, "report", "falling", "--run-id", "r2")
    assert Path(report["report"]).is_file()

    late = tmp_path / "late.csv"
    late.write_text("id,at,company,price\n99,2026-01-05T09:00:55,A,0\n98,2026-01-05T09:01:55,A,-7\n")
    assert said(folder, "ingest", "trades", late)[0]["rows"] == 62
    (dry,) = said(folder, "revise", "falling", "--dry-run")
    assert (dry["rows_updated"], dry["tables"][0]["broken"]) == (1, 1)
    (revised,) = said(folder, "revise", "falling")
    assert revised["revision"]["rows_updated"] == 1
    assert Path(revised["site"]).stat().st_mtime > Path(run["report"]).stat().st_mtime
    assert revised["run_id"] in Path(revised["site"]).read_text()

    broken = tmp_path / "broken.csv"
    (shown,) = said(folder, "quarantine", "show", "trades", "--out", broken)
    assert sum(shown["open"].values()) == 1
    broken.write_text(broken.read_text().replace("-7", "7"))
    (replayed,) = said(folder, "quarantine", "replay", "trades", broken)
    assert (replayed["repaired"], replayed["open"], replayed["to_revise"]) == (1, 0, ["falling"])

    (size,) = said(folder, "backfill", "falling", *DAY, "--dry-run")
    assert (size["pattern"], size["windows"], size["events"]) == ("falling", 10, 62)
    *chunks, total = said(folder, "backfill", "falling", *DAY, "--chunk", "5 minutes")
    assert [(one["chunk"], one["of"], one["publication"]["rows_updated"]) for one in chunks] == [(1, 2, 1), (2, 2, 0)]
    assert (total["computed"], total["done_before"]) == (2, 0)

    (remaining,) = said(folder, "maintain")
    assert {one["table"] for one in remaining["tables"]} >= {"sources/trades", "results/falling", "trendlake_runs"}
    (site,) = said(folder, "site")
    assert [page["pattern"] for page in site["pages"]] == ["falling"]
    assert Path(site["index"]).is_file()
    shutil.copy(ROOT / "data_contracts" / "stock.yaml", contract.parent)
    (stream,) = said(folder, "generate", "stock", "--seconds", "2")
    assert (stream["events"], stream["rows"]) == (200, 200)

    look_at_results(folder)
    check_files(folder, tmp_path, first)
    (deleted,) = said(folder, "source", "delete", "trades", "--where", "price > 50", "--dry-run")
    assert (deleted["selected"], deleted["to_revise"]) == (10, ["falling"])
    (reset,) = said(folder, "reset", "falling", "--yes")
    assert reset["removed"]
    return {name: keys(documents) for name, documents in sorted(DOCUMENTS.items())}


def look_at_results(folder: Path) -> None:
    """Commands that show rows and versions of published results."""
    (shown,) = said(folder, "show", "falling", "--limit", "2")
    assert len(shown["rows"]) == 2
    (difference,) = said(folder, "diff", "falling", "--from", "0", "--to", "1")
    assert len(difference["rows"]) == sum(difference["counts"].values())
    (history,) = said(folder, "history", "falling", "--group", "company=A", "--window", "2026-01-05T09:01")
    assert len(history["values"]) == 2


def check_files(folder: Path, tmp_path: Path, events: Path) -> None:
    """Commands that need no Spark, and an error."""
    said(folder, "show", "nothing", code=1)
    assert said(tmp_path, "init", "other")[0]["wrote"]
    columns = ("--event-id", "id", "--event-time", "at", "--type", "Trade")
    assert said(folder, "new", "source", "quotes", "--from", events, *columns)[0]["wrote"]
    assert said(folder, "new", "pattern", "rising", "--source", "quotes", "--like", "per-day")[0]["wrote"]
    tests = folder / "conf" / "patterns" / "tests" / "falling.yaml"
    tests.parent.mkdir(exist_ok=True)
    tests.write_text("- name: nothing comes of nothing\n  events: []\n  expect: []\n")
    assert said(folder, "test", "falling")[0]["passed"] == 1
    assert said(folder, "try", "falling", "--events", events)[0]["rows"]
    assert said(folder, "explain", "falling")[0]["pattern"] == "falling"
    pair = pair_of_a_batch(tests.parents[1])
    assert said(folder, "explain", pair[0].stem)[0]["shared"]["others"] == [pair[1].stem]
    for file in pair:
        file.unlink()
    assert said(folder, "docs")[0]["pages"]
    assert said(folder, "docs", "tutorial")[0]["text"]
    wrong = folder / "conf" / "patterns" / "wrong.yaml"
    wrong.write_text(FALLING.replace("name: falling", "name: wrong").replace("1 minute", "1 minut"))
    assert said(folder, "validate", code=1)[0]["files"]
    wrong.unlink()


def test_commands_have_their_golden_keys(tmp_path: Path) -> None:
    """A change that is meant: `python -m tests.end_to_end.test_json`, and a line in CHANGELOG.md."""
    by_command = walk(tmp_path)
    assert {name: by_command[name] for name in stored()} == stored()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        write(walk(Path(temporary)))
