"""The command's words typed in this process: all of them share the tests' Spark session."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from trendlake.jobs.main import app
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.lake.lake import Lake

ACTIONS = (
    "backfill",
    "delete",
    "history",
    "ingest",
    "maintain",
    "orphans",
    "quarantine",
    "reset",
    "revise",
    "revise_dry_run",
    "run",
    "show",
)
"""The modules of `jobs.actions` that may start a session."""
COMMAND = re.compile(r"`(trendlake [^`]+)`|^next: (trendlake .+)$", re.MULTILINE)


def share_session(patch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    """Until the end of `patch` no command starts Spark, or ends it."""

    @contextmanager
    def shared(place: Place, _app: str, **_options: bool) -> Iterator[Lake]:
        yield Lake.of(spark, place.warehouse)

    names = "trendlake.jobs.terminal.workspace", *(f"trendlake.jobs.actions.{name}" for name in ACTIONS)
    modules = [import_module(name) for name in names]  # all before the first is patched, which others import from
    for module in modules:
        if hasattr(module, "session"):
            patch.setattr(module, "session", shared)
    for name in ("TRENDLAKE_STATE", "TRENDLAKE_PROJECT", "TRENDLAKE_PROFILE"):
        patch.delenv(name, raising=False)


@dataclass(frozen=True)
class Desk:
    """A terminal at which commands about the project in `folder` are typed, all with the options `given`."""

    folder: Path
    given: tuple[str, ...] = ()

    def type(self, *words: str | Path, code: int | None = 0) -> str:
        """What the command prints, ending with the exit code `code` (None: any)."""
        result = CliRunner().invoke(app, [str(word) for word in (*words, *self.given)])
        assert code is None or result.exit_code == code, result.output
        assert result.exit_code in (0, 1), result.output
        return result.output

    def documents(self, *words: str | Path, code: int | None = 0) -> list[dict[str, Any]]:
        """The document, or documents, that the command prints for programs."""
        result = CliRunner().invoke(app, [str(word) for word in (*words, *self.given, "--json")])
        assert code is None or result.exit_code == code, result.output
        text = result.stdout.strip()
        return [json.loads(text)] if text.startswith("{\n") else [json.loads(line) for line in text.splitlines()]

    def document(self, *words: str | Path, code: int | None = 0) -> dict[str, Any]:
        (document,) = self.documents(*words, code=code)
        return document


def commands(text: str) -> list[str]:
    """The commands that a text names, each once."""
    return list(dict.fromkeys(quoted or following for quoted, following in COMMAND.findall(text)))


def typed(command: str, code: int | None = 0) -> str:
    """What a command prints that is typed as it was printed, and whose question is answered with yes."""
    words = shlex.split(command)
    assert words.pop(0) == "trendlake"
    result = CliRunner().invoke(app, words, input="y\n")
    assert code is None or result.exit_code == code, f"{command}\n{result.output}"
    return result.output
