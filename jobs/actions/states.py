"""States of published results that are to be repaired, each in a line with the command that does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trendlake.jobs.terminal.hints import command
from trendlake.jobs.terminal.lines import say

if TYPE_CHECKING:
    from trendlake.pipelines.revision.repairs import Repair


def print_repairs(name: str, states: Sequence[Repair]) -> None:
    """Prints `name: 3 windows show an earlier form: `trendlake backfill ...``, a line for each state."""
    for repair in states:
        say(f"{name}: {repair.text}{'' if repair.command is None else f': `{command(repair.command)}`'}")


def documents_of(states: Sequence[Repair]) -> list[dict[str, Any]]:
    """The states as `--json` shows them."""
    return [
        {
            "state": repair.state,
            "windows": repair.windows,
            "text": repair.text,
            "command": None if repair.command is None else command(repair.command),
        }
        for repair in states
    ]
