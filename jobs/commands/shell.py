"""Options of the command that reads commands from a terminal."""

from __future__ import annotations

import typer


def shell(context: typer.Context) -> None:
    """Type commands in one process, where imports and Spark stay warm.

    Each line is a command as in a terminal, with or without the word trendlake; lines from a file or a pipe are run one
    after the other. `exit` or Ctrl-D ends. The exit code is that of the last command.

    Example: trendlake shell

    Example: trendlake shell < commands.txt
    """
    from trendlake.jobs.actions.shell import typed

    command = context.find_root().command
    if code := typed(lambda words: command.main(words, prog_name="trendlake")):
        raise typer.Exit(code)
