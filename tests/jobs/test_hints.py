"""Commands in messages have the options that the command before them was given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tests.support.own_source import output_of
from trendlake.jobs.main import app
from trendlake.jobs.terminal.hints import PROFILE, PROJECT, WITHOUT, as_typed, command, given

PLACE = Path("/my lake")


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("run `trendlake run x`", "run `trendlake run x --profile p --project-dir '/my lake'`"),
        ("`trendlake validate x.yaml`", "`trendlake validate x.yaml --project-dir '/my lake'`"),
        ("`trendlake quarantine show x`", "`trendlake quarantine show x --profile p --project-dir '/my lake'`"),
        ("`trendlake setup`", "`trendlake setup`"),
        ("`trendlake new pattern x`", "`trendlake new pattern x --project-dir '/my lake'`"),
        ("`trendlake run x --profile q`", "`trendlake run x --profile q --project-dir '/my lake'`"),
        ("write `renamed_from: x`, or `trendlake` alone", "write `renamed_from: x`, or `trendlake` alone"),
    ],
)
def test_the_options_that_a_command_has(text: str, typed: str) -> None:
    """Quoted as a shell wants them; none that a command does not take, none twice."""
    with given("p", PLACE):
        assert as_typed(text) == typed
    assert as_typed(text) == text


@pytest.mark.parametrize("option", [PROFILE, PROJECT])
def test_the_commands_without_an_option(option: str) -> None:
    assert WITHOUT[option] == {words for words, options in commands(get_command(app)) if option not in options}


def commands(node: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, set[str]]]:
    """Each command with its options."""
    below = getattr(node, "commands", None)
    if below is None:
        yield " ".join(words), {option for parameter in node.params for option in parameter.opts}
    for name, other in (below or {}).items():
        yield from commands(other, (*words, name))


def test_nothing_is_added_where_nothing_was_given() -> None:
    """Who stands in the project types no options."""
    with given(None, None):
        assert command("run x") == "trendlake run x"


def test_errors_have_them_in_text_and_json(tmp_path: Path) -> None:
    """The hint of an error, for people and for programs."""
    output_of("init", tmp_path / "mine")
    options = ("--project-dir", tmp_path / "mine")
    printed = output_of("ls", "tag:none", *options, code=1)
    assert f"`trendlake ls --project-dir {tmp_path / 'mine'}`" in printed
    output = output_of("ls", "tag:none", *options, "--json", code=1)
    document = json.loads(output[output.index("{") :])
    assert f"`trendlake ls --project-dir {tmp_path / 'mine'}`" in document["error"]["hint"]
