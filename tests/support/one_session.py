"""The command's words typed in this process: all of them share the tests' Spark session."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from trendlake.jobs import actions
from trendlake.jobs.main import app
from trendlake.jobs.terminal import workspace
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.lake.lake import Lake

COMMAND = re.compile(r"`(trendlake [^`]+)`|^next: (trendlake .+)$", re.MULTILINE)


def share_session(patch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    """Until the end of `patch` no command starts Spark, or ends it."""

    @contextmanager
    def shared(place: Place, _app: str, **_options: bool) -> Iterator[Lake]:
        yield Lake.of(spark, place.warehouse)

    for one in walk_packages(actions.__path__, f"{actions.__name__}."):
        import_module(one.name)  # all before the first is patched: a later import would keep this session for ever
    own = workspace.session
    for name, module in list(sys.modules.items()):
        if name.startswith("trendlake.jobs.") and vars(module).get("session") is own:
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
