"""Commands in messages, such that they work as typed: with the project and the profile that this command was given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType

COMMAND = re.compile(r"`trendlake ([a-z][^`\n]*)`")
_GIVEN: ContextVar[Mapping[str, str]] = ContextVar("given", default=MappingProxyType({}))
PROFILE, PROJECT = "--profile", "--project-dir"
_OF_NO_PROJECT = {"init", "schema", "docs", "setup", "shell"}
WITHOUT: Mapping[str, set[str]] = {
    PROFILE: {*_OF_NO_PROJECT, "validate", "explain", "expand", "test", "airflow", "new pattern"},
    PROJECT: _OF_NO_PROJECT,
}
"""The commands that do not have an option. A test holds it to the options that there are."""


@contextmanager
def given(profile: str | None, project_dir: Path | None) -> Iterator[None]:
    """While a command runs that was given these options."""
    options = {PROFILE: profile, PROJECT: project_dir}
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
    first, *rest = words.split()
    names = {first, " ".join([first, *rest[:1]])}
    options = [
        f" {name} {shlex.quote(value)}"
        for name, value in _GIVEN.get().items()
        if not names & WITHOUT[name] and name not in words
    ]
    return f"trendlake {words}{''.join(options)}"
