"""`--json`: stdout is one document whatever happens, and nothing else; what people read goes to stderr."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from tests.conftest import ROOT
from tests.support.own_source import start
from trendlake.cep_core.errors import Place, TrendlakeError
from trendlake.jobs.main import app
from trendlake.jobs.terminal.json_output import of_record
from trendlake.jobs.terminal.outcome import guarded
from trendlake.jobs.terminal.verdict import Verdict
from trendlake.pipelines import redaction
from trendlake.pipelines.runs.record import SCHEMA
from trendlake.pipelines.runs.stage import Record

AT = ["--from", "2026-01-05", "--to", "2026-01-06"]


def said(*arguments: str | Path, code: int = 0) -> tuple[Any, str]:
    """The document of a command, and what it prints beside it."""
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout), result.stderr


def words(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, below in node.commands.items():
        if hasattr(below, "commands"):
            yield from words(below, (*path, name))
        else:
            yield (*path, name), below


def test_every_word_has_it() -> None:
    """And explains itself, as before. Each command that is typed into `shell` has its own `--json`."""
    commands_of_app = dict(words(get_command(app)))
    assert len(commands_of_app) > 25
    assert [
        path for path, word in commands_of_app.items() if not any("--json" in item.opts for item in word.params)
    ] == [("shell",)]
    assert [path for path, word in commands_of_app.items() if "Example: trendlake" not in word.help] == []
    assert [path for path, word in commands_of_app.items() if any(not item.help for item in word.params)] == []


def test_a_project_from_nothing(tmp_path: Path) -> None:
    """What was written, by words that need no Spark."""
    folder, rows = tmp_path / "mine", tmp_path / "trades.csv"
    rows.write_text("id,at,company,price\n1,2026-01-05T09:00:00,A,3\n2,2026-01-05T09:00:10,A,2\n")
    at = ("--project-dir", folder)
    wrote, beside = said("init", folder)
    assert all(Path(path).exists() for path in wrote["wrote"])
    assert "next: trendlake new source" in beside
    columns = ("--event-id", "id", "--event-time", "at", "--type", "Trade")
    document, notes = said("new", "source", "trades", "--from", rows, *columns, *at)
    assert document["wrote"] == [str(folder / "data_contracts" / "trades.yaml")]
    assert document["notes"] == [line for line in notes.splitlines() if line.startswith("note: ")]
    assert len(document["notes"]) == 1
    (pattern,) = said("new", "pattern", "falling", "--kind", "trends", *at)[0]["wrote"]
    assert Path(pattern).is_file()
    files = said("validate", *at)[0]["files"]
    assert pattern in [item["file"] for item in files]
    assert {(item["good"], *item["mistakes"]) for item in files} == {(True,)}
    plan = said("explain", "falling", "--svg", tmp_path / "falling.svg", *at)[0]
    assert (plan["pattern"], plan["source"], plan["picture"]) == ("falling", "trades", str(tmp_path / "falling.svg"))
    assert plan["explained"][0].startswith(f"plan {plan['plan_hash']}")


def test_a_verdict_that_is_bad(tmp_path: Path) -> None:
    """It is the document; the exit code says that it is bad. Each mistake of a file has its place."""
    start(tmp_path, tmp_path / "trades.csv", "id,at,company,price\n1,2026-01-05T09:00:00,A,3\n")
    wrong = tmp_path / "conf" / "patterns" / "wrong.yaml"
    wrong.write_text(
        "name: wrong\nsource: trades\npattern: Trade E+\nreturn: {n: COUNT(*)}\nwithin: 1 dy\ncolour: red\n"
    )
    (checked,) = said("validate", wrong, "--project-dir", tmp_path, code=1)[0]["files"]
    assert not checked["good"]
    mistakes = {(item["code"], item["place"]["line"]) for item in checked["mistakes"]}
    assert mistakes == {("BAD_VALUE", 5), ("UNKNOWN_KEY", 6)}
    wrong.write_text("name: wrong\nsource: trades\npattern: Trade E+\nreturn: {n: COUNT(*)}\nwithin: 1 day\n")
    tests = wrong.parent / "tests" / "wrong.yaml"
    tests.parent.mkdir(exist_ok=True)
    tests.write_text(
        "- name: nothing comes of nothing\n  events: []\n  expect: []\n"
        "- name: nor this\n  events: []\n  expect: [{window_start: 2026-01-05T00:00:00Z, n: 1}]\n"
    )
    document, beside = said("test", "wrong", "--project-dir", tmp_path, code=1)
    assert (document["passed"], document["failed"]) == (1, 1)
    assert [bool(test["differences"]) for test in document["tests"]] == [False, True]
    assert "1 passed, 1 failed" in beside


def test_documents_of_files(tmp_path: Path) -> None:
    """A schema is itself; a stream tells its seed."""
    assert said("schema", "pattern")[0] == json.loads((ROOT / "docs" / "schemas" / "pattern.json").read_text())
    out = tmp_path / "stream.parquet"
    document = said("generate", "stock", "--events", "10", "--seed", "7", "--out", out)[0]
    about = {"stream": "stock", "events": 10, "rate": 100.0, "seed": 7, "start": "2026-01-05T09:00:00Z"}
    assert document == about | {"file": str(out)}


@pytest.mark.parametrize(
    ("arguments", "code", "hint"),
    [
        (["run", "delay_snowbal", *AT], "PROJECT", "did you mean 'delay_snowball'?"),
        (["backfill", "delay_snowball", "--from", "x", "--to", "y"], "BAD_TIME", "such as 2013-01-01"),
        (["revise", "nothing"], "PROJECT", "known: "),
        (["quarantine", "replay", "flight", "x.csv"], "PROJECT", "did you mean 'flights'?"),
        (["source", "delete", "flight", "--where", "flight = 1"], "PROJECT", "did you mean 'flights'?"),
        (["source", "delete", "flights", "--ids", "ids.txt"], "SOURCE_FILE", "files end in .csv"),
        (["ingest", "flight"], "PROJECT", "did you mean 'flights'?"),
        (["publish", "delay_snowball", *AT, "--run-id", "r", "--profile", "locl"], "PROFILE", "did you mean 'local'?"),
    ],
)
def test_a_mistake_is_a_document(arguments: list[str], code: str, hint: str) -> None:
    """The same as people read on stderr."""
    document, beside = said(*arguments, "--project-dir", ROOT, code=1)
    assert document["error"]["code"] == code
    assert document["error"]["hint"].startswith(hint)
    assert f"[{code}] {document['error']['message']}" in beside


def test_wrong_usage_has_no_document() -> None:
    for words in (["compute", "delay_snowball"], ["source", "delete", "flights"]):
        result = CliRunner().invoke(app, [*words, "--json"])
        assert (result.exit_code, result.stdout) == (2, "")


def ended(word: Any, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str], str]:
    """Exit code, the lines of stdout, and stderr of a word asked for JSON."""
    code = 0
    try:
        guarded(word)(as_json=True)
    except typer.Exit as end:
        code = end.exit_code
    shown = capsys.readouterr()
    return code, shown.out.splitlines(), shown.err


def test_parts_come_as_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a word that is a generator; where it fails half-way, the parts that are done have been told."""

    def parts() -> Iterator[dict[str, int]]:
        for part in (1, 2):
            print(f"part {part} of 3")
            yield {"part": part}
        raise TrendlakeError("no third", place=Place("a.yaml", 3, 4))

    code, lines, beside = ended(parts, capsys)
    assert (code, *map(json.loads, lines[:2])) == (1, {"part": 1}, {"part": 2})
    place = {"file": "a.yaml", "line": 3, "column": 4}
    error = {"code": "TRENDLAKE", "message": "no third", "place": place, "hint": None}
    assert [json.loads(line) for line in lines[2:]] == [{"error": error}]
    assert "part 1 of 3\npart 2 of 3\n" in beside


def test_a_fault_is_a_document_without_secrets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The traceback is on stderr alone."""
    monkeypatch.setattr(redaction, "_known", {"correct horse"})

    def breaks() -> None:
        raise RuntimeError("login with correct horse failed")

    def refuses() -> Verdict:
        raise TrendlakeError('"token": correct horse', hint="try correct horse")

    code, lines, beside = ended(breaks, capsys)
    document = json.loads("\n".join(lines))["error"]
    assert (code, document["code"], document["message"]) == (3, "FAULT", "RuntimeError: login with *** failed")
    assert "Traceback" in beside
    code, lines, beside = ended(refuses, capsys)
    assert (code, json.loads("\n".join(lines))["error"]["hint"]) == (1, "try ***")
    assert "correct" not in "".join(lines) + beside


def test_a_word_without_json_prints_as_ever(capsys: pytest.CaptureFixture[str]) -> None:
    def counts() -> Verdict:
        print("one, two")
        return Verdict({"count": 2}, good=False)

    with pytest.raises(typer.Exit):
        guarded(counts)()
    assert capsys.readouterr().out == "one, two\n"


def test_records_have_the_names_of_the_run_record() -> None:
    """What `run --json` tells is found again by `runs --json`; numbers stay whole, times are UTC."""
    record = Record("r", "p", "publish", interval_from=0, rows_in=2**53 + 1, succeeded=True)
    document = of_record(record)
    assert set(SCHEMA.names) - set(document) == {"error", "started_at", "finished_at"}
    assert set(document) <= set(SCHEMA.names)
    assert document["interval_from"].isoformat() == "1970-01-01T00:00:00+00:00"
    assert document["status"] == "succeeded"
