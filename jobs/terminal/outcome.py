"""How a command ends: exit codes, the document of `--json`, and errors without a traceback.

A command prints text for people and returns what it did. With `--json` the return value is printed on stdout as one
JSON document, and the text goes to stderr. A command that is a generator yields several documents, each printed as a
line of JSON when it is ready. An error is a document too: `{"error": {"code", "message", "place", "hint"}}`.
"""

from __future__ import annotations

import functools
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from trendlake.jobs.terminal.hints import as_typed, given
from trendlake.jobs.terminal.options import Json

if TYPE_CHECKING:
    from trendlake.cep_core.errors import TrendlakeError

USER_ERROR, INTERNAL_ERROR = 1, 3
EXIT_CODES = (
    "Exit codes: 0 success; 1 an error in your input or data; 2 wrong usage; 3 an internal error. "
    'With --json, stdout is one JSON document (of run and backfill: one a line), or {"error": ...}; all other output '
    "goes to stderr."
)

PACKAGES = {
    "spark": {
        "altair",
        "duckdb",
        "delta",
        "deltalake",
        "great_expectations",
        "jinja2",
        "markupsafe",
        "openlineage",
        "pandas",
        "py4j",
        "pyspark",
        "vl_convert",
    },
    "airflow": {"airflow", "psutil", "sqlalchemy"},
}
"""The packages that each extra of the installation brings, by the name that is imported."""

Command = Callable[..., Any]


@dataclass(frozen=True)
class Verdict:
    """The document of a command that checks something; unless it is `good`, the exit code is that of a user error,
    or of an internal error where it was one (`fault`)."""

    document: Any
    good: bool
    fault: bool = False


def print_error(message: str) -> None:
    """Prints a line on stderr; the commands that it names work as typed."""
    typer.echo(as_typed(message), err=True)


def guarded(command: Command) -> Command:
    """Adds the option `--json` to a command and turns its errors into messages and exit codes. A command that has a
    parameter `as_json` receives the option's value. Only an internal error shows a traceback."""
    receives_json = "as_json" in inspect.signature(command).parameters

    @functools.wraps(command)
    def run(*args: Any, as_json: bool = False, **named: Any) -> None:
        from trendlake.cep_core.errors import TrendlakeError
        from trendlake.jobs.terminal.json_output import json_text, of_error
        from trendlake.jobs.terminal.own_process import before_a_command
        from trendlake.pipelines.error_text import in_words
        from trendlake.pipelines.redaction import redacted
        from trendlake.pipelines.storage_errors import storage_error

        before_a_command()
        out, indent = sys.stdout, None if inspect.isgeneratorfunction(command) else 2

        def show(document: Any) -> None:
            if as_json:
                typer.echo(json_text(document, indent), file=out)

        options = given(named.get("profile"), named.get("project_dir"))
        with redirect_stdout(sys.stderr) if as_json else nullcontext(), options:
            try:
                code = 0
                for result in _results(command, args, named | ({"as_json": as_json} if receives_json else {})):
                    verdict = result if isinstance(result, Verdict) else Verdict(result, good=True)
                    show(verdict.document)
                    if not verdict.good:
                        code = INTERNAL_ERROR if verdict.fault else code or USER_ERROR
                if code:
                    raise typer.Exit(code)
            except (typer.Exit, typer.Abort, typer.BadParameter, KeyboardInterrupt):
                raise
            except Exception as error:
                mine = error if isinstance(error, TrendlakeError) else None
                user_error = mine or not_installed(error) or storage_error(error)
                if user_error is not None:
                    print_error(redacted(str(user_error)))
                    show({"error": of_error(user_error)})
                    raise typer.Exit(USER_ERROR) from None
                print_error(redacted(traceback.format_exc().rstrip()))
                print_error(f"[FAULT] {in_words(error)}")
                show({"error": {"code": "FAULT", "message": in_words(error), "place": None, "hint": None}})
                raise typer.Exit(INTERNAL_ERROR) from None

    return run if receives_json else _with_option(run)


def not_installed(error: Exception) -> TrendlakeError | None:
    """The user error for a ModuleNotFoundError of a package that an extra brings; None for other errors."""
    from trendlake.pipelines.errors import NotInstalledError
    from trendlake.pipelines.project.shipped import install_command

    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    for extra, packages in PACKAGES.items():
        if name in packages:
            return NotInstalledError(
                f"this needs packages that are not installed: there is no {name}", hint=install_command(extra)
            )
    return None


def _results(command: Command, args: tuple[Any, ...], named: dict[str, Any]) -> Iterator[Any]:
    result = command(*args, **named)
    if inspect.isgeneratorfunction(command):
        yield from result
    else:
        yield result


def _with_option(run: Command) -> Command:
    """Adds `--json` to the signature and annotations, from which Typer reads options."""
    own = inspect.signature(run, eval_str=True)
    option = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json)
    run.__signature__ = own.replace(parameters=[*own.parameters.values(), option])  # type: ignore[attr-defined]
    run.__annotations__ = run.__annotations__ | {"as_json": Json}
    return run
