"""How a command ends: exit codes, and a mistake told without a traceback."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import typer

MISTAKE, FAULT = 1, 3
EXIT_CODES = (
    "Exit codes: 0 done; 1 a mistake of the user's, or of the data; 2 wrong usage; "
    "3 a fault of Trendlake or of what it runs on."
)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def tell(message: str) -> None:
    typer.echo(message, err=True)


def guarded(command: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Turns an error into a message and an exit code; only a fault of Trendlake's shows a traceback."""

    @functools.wraps(command)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        from cep_core.errors import TrendlakeError
        from pipelines.secrets import redacted
        from pipelines.telling import in_words

        try:
            return command(*args, **kwargs)
        except TrendlakeError as error:
            tell(redacted(str(error)))
            raise typer.Exit(MISTAKE) from None
        except (typer.Exit, typer.Abort, typer.BadParameter, KeyboardInterrupt):
            raise
        except Exception as error:
            tell(redacted(traceback.format_exc().rstrip()))
            tell(f"[FAULT] {in_words(error)}")
            raise typer.Exit(FAULT) from None

    return run
