"""The paths of the reports' pages, and how they are written: completely, or not at all."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trendlake.pipelines.lake.warehouse import folder_name


@dataclass(frozen=True)
class Places:
    """The site under `root`: a page of all patterns, a folder for each with its page, its runs' and its checks'; the
    graph, and a page for each source. Links between them are relative, so that the folder can be moved, sent, or opened
    from a disk."""

    root: Path

    @property
    def index(self) -> Path:
        return self.root / "index.html"

    @property
    def graph(self) -> Path:
        return self.root / "graph.html"

    def source(self, name: str) -> Path:
        """The page of a source or reference table. No pattern's name has a hyphen: the folder is not a pattern's."""
        return self.root / "source-pages" / f"{folder_name(name)}.html"

    def sources(self) -> list[Path]:
        return sorted(self.root.glob("source-pages/*.html"))

    def pattern(self, name: str) -> Path:
        return self.root / name / "index.html"

    def rows(self, name: str) -> tuple[Path, Path]:
        """The files of the newest rows of a pattern, CSV and Parquet."""
        return self.root / name / "rows.csv", self.root / name / "rows.parquet"

    def card(self, name: str) -> Path:
        """The file with a pattern's row on the page of all patterns."""
        return self.root / name / "card.json"

    def cards(self) -> list[Path]:
        return sorted(self.root.glob("*/card.json"))

    def run(self, name: str, run_id: str) -> Path:
        return self.root / name / "runs" / f"{folder_name(run_id)}.html"

    def picture(self, name: str, run_id: str) -> Path:
        return self.run(name, run_id).with_suffix(".png")

    def checks(self, name: str, run_id: str) -> Path:
        """Great Expectations' page of what it found in a run's results."""
        return self.root / name / "checks" / f"{folder_name(run_id)}.html"

    def suite(self, name: str) -> Path:
        """Its page of what it looked for."""
        return self.root / name / "checks" / "expectations.html"


def write_whole(path: Path, content: bytes) -> None:
    """Readers see the file as it was or as it is now, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """One writer at a time of what is made of all patterns' facts: the last one has seen those of all before it."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
