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
from typing import Any

import typer

from trendlake.jobs.terminal.hints import given
from trendlake.jobs.terminal.lines import print_error
from trendlake.jobs.terminal.options import Json
from trendlake.jobs.terminal.verdict import Verdict

USER_ERROR, INTERNAL_ERROR = 1, 3
EXIT_CODES = (
    "Exit codes: 0 success; 1 an error in your input or data; 2 wrong usage; 3 an internal error. "
    'With --json, stdout is one JSON document (of run, apply, backfill: one a line), or {"error": ...}; all other '
    "output goes to stderr."
)

Command = Callable[..., Any]


def guarded(command: Command) -> Command:
    """Adds the option `--json` to a command and turns its errors into messages and exit codes. A command that has a
    parameter `as_json` receives the option's value. Only an internal error shows a traceback."""
    receives_json = "as_json" in inspect.signature(command).parameters

    @functools.wraps(command)
    def run(*args: Any, as_json: bool = False, **named: Any) -> None:
        from trendlake.jobs.terminal.json_output import of_error
        from trendlake.jobs.terminal.own_process import before_a_command
        from trendlake.jobs.terminal.user_errors import user_error
        from trendlake.jobs.terminal.waiting import waiting
        from trendlake.pipelines.error_text import in_words
        from trendlake.pipelines.json_text import json_text
        from trendlake.pipelines.redaction import redacted

        before_a_command(silent=as_json)
        out, indent = sys.stdout, None if inspect.isgeneratorfunction(command) else 2

        def show(document: Any) -> None:
            if as_json:
                typer.echo(json_text(document, indent), file=out)

        options = given(named.get("profile"), named.get("project_dir"))
        shown = waiting(command.__name__.strip("_").replace("_", " "), silent=as_json)
        with redirect_stdout(sys.stderr) if as_json else nullcontext(), options, shown:
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
                mistake = user_error(error)
                if mistake is not None:
                    print_error(redacted(str(mistake)))
                    show({"error": of_error(mistake)})
                    raise typer.Exit(USER_ERROR) from None
                print_error(redacted(traceback.format_exc().rstrip()))
                print_error(f"[FAULT] {in_words(error)}")
                show({"error": {"code": "FAULT", "message": in_words(error), "place": None, "hint": None}})
                raise typer.Exit(INTERNAL_ERROR) from None

    return run if receives_json else _with_option(run)


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
