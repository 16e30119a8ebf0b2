"""Runs the notebooks of docs/notebooks and stores their outputs: `python -m tests.support.notebooks`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NAMES = ("first_trend", "sweep", "published_results")
OTHERS = ("TRENDLAKE_STATE", "TRENDLAKE_PROJECT", "TRENDLAKE_PROFILE")
"""Variables that speak of another project than that of a notebook."""
SECONDS = 300
"""For one cell: the first one compiles kernels."""


def stored(name: str) -> Any:
    """A notebook with the outputs that it was stored with."""
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)  # type: ignore[no-untyped-call]


def executed(name: str, folder: Path) -> Any:
    """A notebook with the outputs that its cells have in `folder`, by a kernel of its own. Raises CellExecutionError,
    except for cells with the tag `raises-exception`."""
    notebook = stored(name)
    client = NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", record_timing=False, coalesce_streams=True
    )
    client.resources = {"metadata": {"path": str(folder)}}
    client.execute(env={name: value for name, value in os.environ.items() if name not in OTHERS})
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"], "language_info": {"name": "python"}}
    return notebook


def main() -> None:
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            notebook = executed(name, Path(folder))
            nbformat.write(notebook, FOLDER / f"{name}.ipynb")  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
