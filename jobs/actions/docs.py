"""The documentation, read where the command is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.markdown import Markdown
from rich.table import Table

from cep_core.errors import TrendlakeError, did_you_mean
from jobs.terminal.printing import console
from pipelines.project.shipped import shipped

DOCS = shipped("docs")


def pages() -> dict[str, Path]:
    """The files by the names that people type: those of the files, of how-tos and decisions too."""
    return {path.stem: path for path in sorted(DOCS.rglob("*.md"), key=_place)}


def titles() -> dict[str, str]:
    return {
        name: path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for name, path in pages().items()
    }


def print_pages() -> dict[str, Any]:
    """What there is to read."""
    found = titles()
    if not found:
        raise _missing()
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, title in found.items():
        table.add_row(name, title)
    console.print(table)
    return {"pages": [{"page": name, "title": title} for name, title in found.items()]}


def print_page(name: str) -> dict[str, Any]:
    """One page: set on a terminal, as it is elsewhere. Raises TrendlakeError for a name there is not."""
    found = pages()
    if not found:
        raise _missing()
    if name not in found:
        hint = did_you_mean(name, found) or "`trendlake docs` lists them"
        raise TrendlakeError(f"there is no page '{name}'", hint=hint)
    text = found[name].read_text(encoding="utf-8")
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        print(text, end="")
    return {"page": name, "title": titles()[name], "text": text}


def _missing() -> TrendlakeError:
    return TrendlakeError(f"there are no pages in {DOCS}", hint="install the package again: they come with it")


def _place(path: Path) -> tuple[bool, int, str]:
    """The tutorial first, decisions last."""
    folder = path.relative_to(DOCS).parent.name
    return path.stem != "tutorial", ("", "how-to", "adr").index(folder), path.stem
