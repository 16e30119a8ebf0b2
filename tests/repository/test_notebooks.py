"""docs/notebooks: each prints what it was stored with, and shows nothing that a page of ours would not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.html_tags import Tags
from tests.support.notebooks import FOLDER, NAMES, executed, stored

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def texts(notebook: Any) -> list[tuple[int, str]]:
    """The text of each output, with the number of its cell."""
    return [
        (number, "\n".join(output.get("traceback") or [output.get("text") or output["data"]["text/plain"]]))
        for number, cell in enumerate(notebook.cells)
        for output in cell.get("outputs", [])
    ]


def test_all_notebooks_are_run() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook(name: str, tmp_path: Path) -> None:
    before, now = stored(name), executed(name, tmp_path)
    assert texts(now) == texts(before)
    assert texts(now)
    for notebook in (before, now):
        data = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
        pages = [one[kind] for one in data for kind in ("text/html", "image/svg+xml") if kind in one]
        assert pages
        for page in pages:
            Tags(page).refuse_more_than_a_picture()
