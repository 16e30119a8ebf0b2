"""docs/how-to/from-sql.md: each text gives, of its rows, the result that the page shows; and one of them as a pattern
of a project, with the commands of the page."""

from __future__ import annotations

import io
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv

from tests.conftest import ROOT
from tests.support.typed_pages import follow, output_of
from trendlake.cep_core import evaluate

PAGE = (ROOT / "docs" / "how-to" / "from-sql.md").read_text()
QUESTIONS = re.findall(
    r"^## (.+?)\n(.*?)^```sql\n(.*?)^```\n\n```csv\n(.*?)^```\n\n(\|.*?\n)\n", PAGE, re.MULTILINE | re.DOTALL
)


def events(text: str) -> pa.Table:
    """The rows, with an id and a type; `at` is the time."""
    table = csv.read_csv(io.BytesIO(text.encode()))
    columns = {
        name: table[name].cast(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(table[name].type) else table[name]
        for name in table.column_names
    }
    ids = [f"e{number:02}" for number in range(table.num_rows)]
    own = {"event_id": ids, "event_time": columns.pop("at"), "event_type": ["Row"] * len(ids)}
    return pa.table({**own, **columns})


def shown(cell: Any) -> str:
    return f"{cell:%Y-%m-%d %H:%M:%S}" if isinstance(cell, datetime) else str(cell)


def test_the_page_has_eight_questions() -> None:
    assert len(QUESTIONS) == 8


@pytest.mark.filterwarnings("ignore::trendlake.cep_core.errors.PatternWarning")
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: str(question[0]))
def test_question(question: tuple[str, ...]) -> None:
    _, words, text, data, table = question
    query = {"kind": "match_recognize", "pattern": text}
    query |= dict(re.findall(r"`(within): ([^`]+)`", words))
    names, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()]
    answer = [[shown(row[name]) for name in names] for row in evaluate(query, events(data)).to_pylist()]
    assert sorted(answer) == sorted(rows)


@pytest.mark.filterwarnings("ignore::trendlake.cep_core.errors.PatternWarning")
def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = PAGE.split("## From the text to published rows\n")[1].split("\n## ")[0]
    assert follow(section, tmp_path, monkeypatch) == 2
    assert all(name in output_of(["diff", "sessions", "--from", "1", "--to", "2"]) for name in ("v1", "v4"))
