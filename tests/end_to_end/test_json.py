"""`--json` of the words that do something, each in a process of its own: stdout is JSON and nothing else, Java's and
Spark's words too are elsewhere, and what one word tells the next one finds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import IN_CHAOS, ROOT
from tests.own_source import FALLING, start

pytestmark = [pytest.mark.spark, pytest.mark.slow, IN_CHAOS]

TRADES = "id,at,company,price\n" + "".join(
    f"{number},2026-01-05T09:{number // 6:02d}:{number % 6 * 10:02d},A,{60 - number}\n" for number in range(60)
)
DAY = ("--from", "2026-01-05T09:00", "--to", "2026-01-05T09:10")


def said(folder: Path, *arguments: str | Path, code: int = 0) -> list[Any]:
    """The documents of a command, one a line or one in all."""
    environment = {name: value for name, value in os.environ.items() if name != "TRENDLAKE_STATE"}
    environment["PYTHONPATH"] = str(ROOT)
    environment.setdefault("TRENDLAKE_JARS", str(Path(os.environ.get("TRENDLAKE_STATE", ROOT / ".trendlake")) / "jars"))
    command = [sys.executable, "-m", "jobs.main", *map(str, arguments), "--json"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    if arguments[0] == "backfill":
        return [json.loads(line) for line in done.stdout.splitlines()]
    return [json.loads(done.stdout)]


def test_words_that_do_something(tmp_path: Path) -> None:
    """From files to results, through a correction and a repair, to the site."""
    folder, first = tmp_path / "mine", tmp_path / "trades.csv"
    start(folder, first, TRADES)
    contract = folder / "data_contracts" / "trades.yaml"
    promise = {
        "- name: price": "- name: price\n        logicalTypeOptions: {minimum: 0}",
        "- property: eventType": "- {property: quarantineTolerance, value: 1}\n      - property: eventType",
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
    told = {record["stage"]: record for record in records["records"]}
    assert all(one == {name: told[one["stage"]][name] for name in one} for one in run["stages"])

    (early,) = said(folder, "compute", "falling", *DAY, "--run-id", "r2", code=1)
    assert early["error"]["code"] == "STEP_ORDER"
    (step,) = said(folder, "check-source", "falling", *DAY, "--run-id", "r2")
    assert (step["stage"], step["run_id"], step["rows_quarantined"]) == ("check_source", "r2", 0)

    late = tmp_path / "late.csv"
    late.write_text("id,at,company,price\n99,2026-01-05T09:00:55,A,0\n98,2026-01-05T09:01:55,A,-7\n")
    assert said(folder, "ingest", "trades", late)[0]["rows"] == 62
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

    (kept,) = said(folder, "maintain")
    assert {one["table"] for one in kept["tables"]} >= {"sources/trades", "results/falling", "trendlake_runs"}
    (site,) = said(folder, "site")
    assert [page["pattern"] for page in site["pages"]] == ["falling"]
    assert Path(site["index"]).is_file()
    shutil.copy(ROOT / "data_contracts" / "stock.yaml", contract.parent)
    (stream,) = said(folder, "generate", "stock", "--seconds", "2")
    assert (stream["events"], stream["rows"]) == (200, 200)
