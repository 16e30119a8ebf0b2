"""How a command ends: its document for `--json`, exit codes, and a mistake told without a traceback.

A word of the command prints what a person reads and returns what it did. With `--json` the return value is printed on
stdout as one JSON document, and what the word prints goes to stderr; a word that is a generator tells its parts as they
come, a line of JSON each. An error is a document too: `{"error": {"code", "message", "place", "hint"}}`.
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

from jobs.terminal.options import Json

if TYPE_CHECKING:
    from cep_core.errors import TrendlakeError

MISTAKE, FAULT = 1, 3
EXIT_CODES = (
    "Exit codes: 0 success; 1 an error in your input or data; 2 wrong usage; 3 an internal error. "
    'With --json, stdout is one JSON document (of backfill: one a line), or {"error": ...}; all other output goes to '
    "stderr."
)

PACKAGES = {
    "spark": {
        "altair", "delta", "deltalake", "great_expectations", "jinja2", "markupsafe", "openlineage", "pandas", "py4j",
        "pyspark", "vl_convert",
    },
    "airflow": {"airflow", "psutil", "sqlalchemy"},
}  # fmt: skip
"""What the extras of the installation bring, as it is imported."""

Word = Callable[..., Any]


@dataclass(frozen=True)
class Verdict:
    """The document of a word that judges; where it is not `good`, the command ends as with a mistake."""

    document: Any
    good: bool


def tell(message: str) -> None:
    typer.echo(message, err=True)


def guarded(word: Word) -> Word:
    """Gives a word the option `--json` (it takes `as_json` itself where it must know), and turns its errors into
    messages and exit codes; only a fault of Trendlake's shows a traceback."""
    knows = "as_json" in inspect.signature(word).parameters

    @functools.wraps(word)
    def run(*args: Any, as_json: bool = False, **named: Any) -> None:
        from cep_core.errors import TrendlakeError
        from jobs.terminal.json_output import json_text, of_error
        from pipelines.error_text import in_words
        from pipelines.redaction import redacted

        out, indent = sys.stdout, None if inspect.isgeneratorfunction(word) else 2

        def show(document: Any) -> None:
            if as_json:
                typer.echo(json_text(document, indent), file=out)

        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            try:
                for told in _told(word, args, named | ({"as_json": as_json} if knows else {})):
                    verdict = told if isinstance(told, Verdict) else Verdict(told, good=True)
                    show(verdict.document)
                    if not verdict.good:
                        raise typer.Exit(MISTAKE)
            except (typer.Exit, typer.Abort, typer.BadParameter, KeyboardInterrupt):
                raise
            except Exception as error:
                mistake = error if isinstance(error, TrendlakeError) else not_installed(error)
                if mistake is not None:
                    tell(redacted(str(mistake)))
                    show({"error": of_error(mistake)})
                    raise typer.Exit(MISTAKE) from None
                tell(redacted(traceback.format_exc().rstrip()))
                tell(f"[FAULT] {in_words(error)}")
                show({"error": {"code": "FAULT", "message": in_words(error), "place": None, "hint": None}})
                raise typer.Exit(FAULT) from None

    return run if knows else _with_option(run)


def not_installed(error: Exception) -> TrendlakeError | None:
    """The mistake, where `error` is that a package of an extra of this one is missing."""
    from pipelines.errors import NotInstalledError

    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    for extra, packages in PACKAGES.items():
        if name in packages:
            return NotInstalledError(
                f"this needs packages that are not installed: there is no {name}",
                hint=f"pip install 'trendlake[{extra}]'",
            )
    return None


def _told(word: Word, args: tuple[Any, ...], named: dict[str, Any]) -> Iterator[Any]:
    told = word(*args, **named)
    if inspect.isgeneratorfunction(word):
        yield from told
    else:
        yield told


def _with_option(run: Word) -> Word:
    """Typer reads a word's options from its signature and annotations."""
    own = inspect.signature(run, eval_str=True)
    option = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json)
    run.__signature__ = own.replace(parameters=[*own.parameters.values(), option])  # type: ignore[attr-defined]
    run.__annotations__ = run.__annotations__ | {"as_json": Json}
    return run
