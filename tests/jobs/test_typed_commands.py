"""`trendlake shell`: its commands print what they print by themselves, and Spark starts once."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.jobs.test_without_java import FIRST, PATTERN
from trendlake.jobs.actions.shell import PROMPT

SESSIONS = """
import sys
from dataclasses import replace
from pathlib import Path
from trendlake.jobs.terminal.workspace import find_place, kept_sessions, session
place = find_place(Path(sys.argv[1]), None)
other = replace(place, profile=place.profile.model_copy(update={"master": "local[1]"}))
seen = []
with kept_sessions():
    for one in (place, place, other):
        with session(one, "x") as lake:
            context = lake.spark.sparkContext
            seen.append((context.applicationId, context.master))
    assert context._jsc is not None
assert context._jsc is None
with session(place, "x") as lake:
    context = lake.spark.sparkContext
    seen.append((context.applicationId, context.master))
assert context._jsc is None
ids = [one for one, _ in seen]
print(ids[0] == ids[1], len(set(ids)), [master for _, master in seen][1:3])
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("shell")
    assert asked(tmp_path, "", "init", ".").returncode == 0
    (tmp_path / "first.csv").write_text(FIRST)
    (tmp_path / "conf/patterns/falling.yaml").write_text(PATTERN)
    return tmp_path


def asked(folder: Path, typed: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "TRENDLAKE_STATE"}
    command = [sys.executable, "-m", "trendlake.command", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, input=typed, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.long
def test_lines_of_a_file(project: Path) -> None:
    """A mistake ends its own command only; the last command's exit code is the shell's."""
    typed = """
        new source trades --from first.csv --event-time event_time --event-id event_id --type Trade
        # a comment
        trendlake ingest trades 'first.csv'
        shw falling
        show 'falling
        shell
        run falling --from 2024-01-01 --to 2024-01-03 --run-id one
        show falling --json
    """
    done = asked(project, typed, "shell")
    assert done.returncode == 0, done.stderr
    assert "No such command 'shw'" in done.stderr
    assert "this line cannot be read: No closing quotation" in done.stderr
    assert "this is the shell" in done.stderr
    alone = asked(project, "", "show", "falling", "--json")
    assert json.loads(alone.stdout)["rows"]
    assert done.stdout.endswith(alone.stdout)


@pytest.mark.parametrize(
    ("typed", "code"),
    [("nothing\n", 2), ("show nothing\n", 1), ("show nothing\nexit\nls\n", 1), ("", 0), ("show '", 2)],
)
def test_exit_codes(project: Path, typed: str, code: int) -> None:
    assert asked(project, typed, "shell").returncode == code


@pytest.mark.repeats
@pytest.mark.spark
def test_spark_starts_once(project: Path) -> None:
    """For commands of one place; another profile has a session of its own, as the next process has."""
    command = [sys.executable, "-c", SESSIONS, str(project)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "True 3 ['local[*]', 'local[1]']"


def test_a_terminal(project: Path) -> None:
    """It has a prompt; Ctrl-C gives a new one, Ctrl-D ends, and the last command's exit code is the shell's."""
    keyboard, terminal = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "TRENDLAKE_STATE"}
    command = [sys.executable, "-m", "trendlake.command", "shell"]
    ends = {"stdin": terminal, "stdout": terminal, "stderr": terminal}
    shell = subprocess.Popen(command, cwd=project, env=environment, **ends)
    try:
        os.close(terminal)
        text = screen(keyboard, "", prompts=1)
        os.write(keyboard, b"ls\n")
        text = screen(keyboard, text, prompts=2)
        assert "falling" in text
        # Python overlooks a signal in the moment between the prompt and the wait for a key
        while text.count(PROMPT) < 3:
            shell.send_signal(signal.SIGINT)
            if select.select([keyboard], [], [], 2)[0]:
                text = screen(keyboard, text, prompts=3)
        os.write(keyboard, b"show nothing\n")
        text = screen(keyboard, text, prompts=text.count(PROMPT) + 1)
        assert "no pattern 'nothing'" in text
        os.write(keyboard, b"\x04")
        assert shell.wait(60) == 1
    finally:
        shell.kill()
        shell.wait()
        os.close(keyboard)


def screen(keyboard: int, text: str, prompts: int) -> str:
    """`text` and more of a terminal's, until it shows so many prompts. Raises AssertionError after a silent minute."""
    while text.count(PROMPT) < prompts:
        assert select.select([keyboard], [], [], 60)[0], text
        text += os.read(keyboard, 4096).decode()
    return text
