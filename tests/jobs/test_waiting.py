"""What a command shows on stderr while it prints nothing."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest

from tests.support.own_source import output_of
from trendlake.jobs.terminal import own_process, waiting
from trendlake.pipelines.progress import Count, Work, doing, going

SOON = 0.1
"""Seconds, in place of two."""
TRADES = "id,at,price\n" + "".join(f"{n},2026-01-05T09:{n:02d}:00Z,{n % 7}\n" for n in range(60))
RISING = """\
name: rising
source: trades
pattern: Trade E+
where: ["E.price < NEXT(E).price"]
return: {trends: COUNT(*)}
within: 1 hour
"""


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def shown_soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process is the command's own, which shows its work soon."""
    monkeypatch.setitem(own_process._PROCESS, "is_ours", True)
    monkeypatch.setattr(waiting, "QUIET", SOON)
    monkeypatch.setattr(waiting, "LOOK", SOON / 5)
    monkeypatch.setattr(waiting, "AGAIN", 2 * SOON)
    yield
    assert going() == ()


def until(holds: Callable[[], bool]) -> None:
    """Waits until it holds; fails after 20 seconds."""
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(SOON / 5)


@pytest.mark.usefixtures("shown_soon")
def test_lines_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work and how much of it is done, again after a while; the command's name where it says no more."""
    err = StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    with waiting.waiting("ingest", silent=False):
        until(lambda: "ingest, " in err.getvalue())
        with doing("backfill", "chunks", 12) as chunks, doing("reading trades.csv", "rows") as work:
            chunks.advance(3)
            work.advance(41_000)
            until(lambda: "reading" in err.getvalue())
            work.advance(1_000)
            until(lambda: "42,000" in err.getvalue())
    lines = err.getvalue().splitlines()
    assert re.fullmatch(r"ingest, \d+ s", lines[0])
    assert re.fullmatch(r"backfill; reading trades\.csv, 41,000 rows, \d+ s", lines[1])
    assert re.fullmatch(r"backfill; reading trades\.csv, 42,000 rows, \d+ s", lines[-1])


@pytest.mark.usefixtures("shown_soon")
def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes before a line is printed, and at the end; what is printed comes out as without it."""
    out, err = StringIO(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with (
        waiting.waiting("run", silent=False),
        doing("compute falling: 3 windows", asked=lambda: Count(12, 50, "tasks of Spark")),
    ):
        until(lambda: "compute falling: 3 windows" in err.getvalue())
        assert "12 of 50 tasks of Spark" in err.getvalue()
        print("one line")
        shown = len(err.getvalue())
        assert err.getvalue().endswith("\x1b[2K")  # the line is erased
        until(lambda: "compute falling" in err.getvalue()[shown:])
    assert out.getvalue() == "one line\n"
    assert err.getvalue().endswith("\x1b[2K")
    assert max(len(re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", part)) for part in re.split("[\r\n]", err.getvalue())) <= 80


@pytest.mark.usefixtures("shown_soon")
def test_nothing_is_shown_to_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """To those who ask for JSON, those who import us, and who is being asked something."""
    err = StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    with waiting.waiting("show", silent=True):
        time.sleep(3 * SOON)
    with waiting.waiting("shell", silent=False):
        time.sleep(3 * SOON)
        with waiting.waiting("reset", silent=False), waiting.asking():
            time.sleep(3 * SOON)
        assert err.getvalue() == ""
        with waiting.waiting("show", silent=True), doing("reading"):  # a command of the shell that is asked for JSON
            time.sleep(3 * SOON)
        assert err.getvalue() == ""
        with waiting.waiting("show", silent=False):  # another one
            until(lambda: "show, " in err.getvalue())
    monkeypatch.setitem(own_process._PROCESS, "is_ours", False)
    shown = err.getvalue()
    with waiting.waiting("show", silent=False):
        time.sleep(3 * SOON)
    assert err.getvalue() == shown


def test_work_that_fails_is_over() -> None:
    seen: list[str] = []

    def fails() -> None:
        with doing("dividing"):
            seen.extend(work.what for work in going())
            _ = 1 // 0

    with pytest.raises(ZeroDivisionError):
        fails()
    assert seen == ["dividing"]
    assert going() == ()
    assert Work("reading").count is None


@pytest.mark.parametrize("terminal", [False, True])
def test_a_command_says_what_it_does(tmp_path: Path, terminal: bool) -> None:
    """A real one, which shows its work at once."""
    output_of("init", tmp_path)
    (tmp_path / "trades.csv").write_text(TRADES)
    (tmp_path / "conf" / "patterns" / "rising.yaml").write_text(RISING)
    script = (
        "import sys\n"
        "from trendlake.jobs.terminal import own_process\n"
        "own_process.begin()\n"
        "from trendlake.jobs.terminal import waiting\n"
        "waiting.QUIET, waiting.LOOK = 0.0, 0.005\n"
        "from trendlake.jobs.main import app\n"
        "app(sys.argv[1:], prog_name='trendlake')\n"
    )

    def command(*words: str) -> tuple[str, str]:
        env = os.environ | {"TRENDLAKE_PROJECT": str(tmp_path), "TERM": "xterm", "COLUMNS": "80"}
        master, slave = pty.openpty() if terminal else os.pipe()
        with subprocess.Popen(
            [sys.executable, "-c", script, *words], cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=slave
        ) as process:
            os.close(slave)
            shown = b""
            with suppress(OSError):  # a terminal whose last program has gone
                while part := os.read(master, 1 << 16):
                    shown += part
            os.close(master)
            assert process.stdout is not None
            out = process.stdout.read().decode()
        assert process.returncode == 0, shown
        return out, shown.decode()

    columns = ["--event-id", "id", "--event-time", "at", "--type", "Trade"]
    _, shown = command("new", "source", "trades", "--from", "trades.csv", *columns)
    assert "reading trades.csv" in shown
    out, shown = command("try", "rising", "--events", "trades.csv")
    assert "trying rising" in shown
    assert "trends" in out
    assert "trying" not in out
