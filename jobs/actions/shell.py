"""`trendlake shell`: reads commands and runs them, one after the other, in this process."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from trendlake.jobs.terminal import workspace
from trendlake.jobs.terminal.lines import print_error, say
from trendlake.jobs.terminal.outcome import USER_ERROR

PROMPT = "trendlake> "
ENDS = ("exit", "quit")


def typed(command: Callable[[list[str]], Any]) -> int:
    """Runs each line of the standard input. Returns the exit code of the last command. `command`: the whole command,
    given its words; it ends as a process does."""
    code = 0
    with workspace.kept_sessions():
        for line in lines():
            try:
                words = shlex.split(line, comments=True)
            except ValueError as error:
                print_error(f"this line cannot be read: {error}")
                code = 2
                continue
            words = words[1:] if words[:1] == ["trendlake"] else words
            if words[:1] and words[0] in ENDS:
                break
            if words:
                code = run(command, words)
    return code


def lines() -> Iterator[str]:
    """The lines of the standard input; from a terminal with a prompt, and the keys of an editor of lines."""
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    with suppress(ImportError):
        import readline  # noqa: F401 - `input` uses it
    while True:
        try:
            yield input(PROMPT)
        except KeyboardInterrupt:
            say()
        except EOFError:
            say()
            return


def run(command: Callable[[list[str]], Any], words: list[str]) -> int:
    """The exit code of a command."""
    if words[0] == "shell":
        print_error("this is the shell")
        return USER_ERROR
    try:
        command(words)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else USER_ERROR
    return 0
