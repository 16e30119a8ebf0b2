"""`trendlake docs`: lists the pages of the documentation and prints them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.markdown import Markdown
from rich.table import Table

from trendlake.cep_core.errors import TrendlakeError, did_you_mean
from trendlake.jobs.terminal.printing import console
from trendlake.pipelines.project.shipped import shipped

DOCS = shipped("docs")


def pages() -> dict[str, Path]:
    """The files of all pages by page name, which is the file's name without its suffix."""
    return {path.stem: path for path in sorted(DOCS.rglob("*.md"), key=_place)}


def titles() -> dict[str, str]:
    return {
        name: path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for name, path in pages().items()
    }


def print_pages() -> dict[str, Any]:
    """Prints the names and titles of all pages."""
    listing = titles()
    if not listing:
        raise _missing()
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, title in listing.items():
        table.add_row(name, title)
    console.print(table)
    return {"pages": [{"page": name, "title": title} for name, title in listing.items()]}


def print_page(name: str) -> dict[str, Any]:
    """Prints one page: formatted on a terminal, as Markdown elsewhere. Raises TrendlakeError for an unknown name."""
    files = pages()
    if not files:
        raise _missing()
    if name not in files:
        hint = did_you_mean(name, files) or "`trendlake docs` lists them"
        raise TrendlakeError(f"there is no page '{name}'", hint=hint)
    text = files[name].read_text(encoding="utf-8")
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
