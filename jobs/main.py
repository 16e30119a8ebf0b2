"""The `trendlake` command: which commands there are, in panels. Their options are in `jobs.commands`."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from trendlake.jobs.commands import airflow, check, look, quarantine, run, setup, shell, sources, try_pattern, versions
from trendlake.jobs.terminal.outcome import EXIT_CODES

EXAMPLES = """
Examples:

\b
  trendlake init my_project
  trendlake new source trades --from trades.csv \\
      --event-id id --event-time at --type Trade
  trendlake ingest trades trades.csv
  trendlake new pattern rising --like longest-run
  trendlake try rising
  trendlake run rising --from 2026-01-01 --to 2026-02-01
  trendlake show rising
"""
PANELS = {
    "Write": ("init", "new", "ingest", "source", "generate"),
    "Check": ("validate", "plan", "explain", "expand", "try", "test", "schema"),
    "Run": ("run", "apply", "backfill", "revise", "airflow"),
    "Look": ("ls", "show", "diff", "history", "runs", "quarantine", "site", "docs"),
    "Operate": ("setup", "shell", "maintain", "reset"),
}
"""The first screen of help. Commands without a panel are the single steps of a run, which Airflow starts."""
NAMES = tuple(name for names in PANELS.values() for name in names)
STEPS = ("check-source", "compute", "check-results", "publish", "report")


class Panels(TyperGroup):
    """A group whose help shows its commands in `PANELS`, each line uncut."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As Typer's own, but for the command that it proposes for one that is misspelt."""
        if args and args[0] not in self.commands and (near := near_command(args[0], NAMES)):
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{near}'?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """`ctx`, `formatter`: those of Click, in Typer's own copy of it."""
        for title, names in PANELS.items():
            with formatter.section(title):
                formatter.write_dl([(name, first_line(self.commands[name].help)) for name in names])
        formatter.write_paragraph()
        formatter.write_text(f"The steps of a run, one at a time: {', '.join(STEPS)} (`trendlake STEP --help`).")


def near_command(word: str, names: Sequence[str]) -> str | None:
    """The command that a misspelt word means: one of nearly the same letters, or of the same beginning (`tries`)."""
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.75)
    beginnings = (name for name in names if word.startswith(name[: max(2, len(name) - 1)]))
    return next(iter(close), None) or next(beginnings, None)


def first_line(text: str | None) -> str:
    """The first line of a command's help, uncut: Click cuts its own short help to the width of a terminal."""
    return (text or "").strip().splitlines()[0]


app = typer.Typer(
    name="trendlake",
    cls=Panels,
    help=f"Trends over Delta tables, from patterns written in YAML.\n{EXAMPLES}\n{EXIT_CODES}",
    no_args_is_help=True,
    suggest_commands=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"trendlake {version('trendlake')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the command itself."""


for command in (
    sources.init,
    sources.ingest,
    sources.generate,
    check.validate,
    check.explain,
    check.plan,
    check.expand,
    check.schema,
    run.run,
    run.apply,
    run.backfill,
    run.site,
    run.check_source,
    run.compute,
    run.check_results,
    run.publish,
    run.report,
    look.ls,
    look.show,
    look.runs,
    look.docs,
    versions.revise,
    versions.diff,
    versions.history,
    versions.maintain,
    versions.reset,
    setup.setup,
    shell.shell,
):
    app.command()(command)
app.command(hidden=True)(run.run_steps)
app.command("test")(check.run_pattern_tests)
app.command("try")(try_pattern.try_)
app.command(context_settings=airflow.OWN_OPTIONS_FIRST)(airflow.airflow)
app.add_typer(sources.new, name="new")
app.add_typer(sources.source_app, name="source")
app.add_typer(quarantine.quarantine, name="quarantine")

if __name__ == "__main__":
    app(prog_name="trendlake")
