"""Commands in messages, such that they work as typed: with the project and the profile that this command was given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any

from typer import Typer
from typer.main import get_command

COMMAND = re.compile(r"`trendlake ([a-z][^`\n]*)`")
_GIVEN: ContextVar[Mapping[str, str]] = ContextVar("given", default=MappingProxyType({}))

_COMMANDS: list[Typer] = []
"""The command with all that it has, once that is imported."""


def know(app: Typer) -> None:
    """Says which commands there are, with their options."""
    _COMMANDS[:] = [app]


@contextmanager
def given(profile: str | None, project_dir: Path | None) -> Iterator[None]:
    """While a command runs that was given these options."""
    options = {"--profile": profile, "--project-dir": project_dir}
    token = _GIVEN.set({name: str(value) for name, value in options.items() if value is not None})
    try:
        yield
    finally:
        _GIVEN.reset(token)


def as_typed(text: str) -> str:
    """`text`, in which each command between backticks has the options that its reader needs."""
    return COMMAND.sub(lambda named: f"`{command(named[1])}`", text) if _GIVEN.get() else text


def command(words: str) -> str:
    """`trendlake`, `words` and the given options that this command has: `trendlake revise x --profile p`."""
    options = [
        f" {name} {shlex.quote(value)}"
        for name, value in _GIVEN.get().items()
        if name in _options_of(words) and name not in words
    ]
    return f"trendlake {words}{''.join(options)}"


def _options_of(words: str) -> set[str]:
    """The options of the command that `words` begin with; none where there is no such command."""
    node: Any = get_command(*_COMMANDS)
    for word in words.split():
        commands = getattr(node, "commands", {})
        if word not in commands:
            break
        node = commands[word]
    return {option for parameter in node.params for option in parameter.opts}
