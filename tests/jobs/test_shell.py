"""The command in a shell and in pre-commit: completion, and hooks that say what the command says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.conftest import ROOT
from trendlake.cep_core.yaml.source import plain, read_yaml
from trendlake.jobs.main import app

HOOKS = ROOT / ".pre-commit-hooks.yaml"


def command(*arguments: str, **variables: str) -> str:
    environment = {"TRENDLAKE_PROJECT": str(ROOT)} | variables
    return CliRunner().invoke(app, arguments, prog_name="trendlake", env=environment).output


@pytest.mark.parametrize(
    ("shell", "word"), [("bash", "complete -o"), ("zsh", "compdef"), ("fish", "complete --command")]
)
def test_completion_prints_a_script(shell: str, word: str) -> None:
    script = command(_TRENDLAKE_COMPLETE=f"source_{shell}")
    assert word in script
    assert "trendlake" in script
    assert "--install-completion" in command("--help")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("trendlake quar", ["quarantine"]),
        ("trendlake run del", ["delay_snowball"]),
        ("trendlake quarantine show fl", ["flights"]),
        ("trendlake quarantine show results", []),
        ("trendlake sour", ["source"]),
        ("trendlake source delete fl", ["flights"]),
        ("trendlake source delete flights --wh", ["--where"]),
        ("trendlake try delay_snowball --max", ["--max-events"]),
    ],
)
def test_names_are_completed(typed: str, offered: list[str]) -> None:
    """As bash asks for them."""
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    assert command(**words, _TRENDLAKE_COMPLETE="complete_bash").split() == offered


def test_hooks_run_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each entry is a word of the command; it refuses a broken file; the files it is run for are the project's."""
    hooks = plain(read_yaml(HOOKS).data)
    patterns = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("conf/patterns/*.yaml")]
    monkeypatch.setenv("TRENDLAKE_PROJECT", str(tmp_path))
    CliRunner().invoke(app, ["init", str(tmp_path)])
    assert {hook["id"] for hook in hooks} == {"trendlake-validate", "trendlake-test"}
    for hook in hooks:
        name, *words = shlex.split(hook["entry"])
        assert name == "trendlake"
        assert CliRunner().invoke(app, words).exit_code == 0
        assert patterns
        assert all(re.search(hook["files"], path) for path in patterns)
        assert not re.search(hook["files"], "docs/reference.md")
    (tmp_path / "conf" / "patterns" / "broken.yaml").write_text("name: broken\n")
    assert CliRunner().invoke(app, shlex.split(hooks[0]["entry"])[1:]).exit_code == 1
