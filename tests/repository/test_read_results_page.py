"""docs/how-to/read-results.md: its commands and code run as typed, and print what the page shows."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.conftest import ROOT
from tests.support.typed_pages import follow

PAGE = (ROOT / "docs" / "how-to" / "read-results.md").read_text()
PYTHON = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
(SQL,) = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def typed(section: str, names: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Runs a section: files and commands, then its Python code, held against what the page prints. Blocks of code."""
    commands = re.sub(r"^```(python|text|sql)\n.*?^```\n", "", section, flags=re.MULTILINE | re.DOTALL)
    follow(re.sub(r"^\|.*\n", "", commands, flags=re.MULTILINE), folder, monkeypatch)
    blocks = PYTHON.findall(section)
    for code, shown in blocks:
        with redirect_stdout(StringIO()) as printed:
            exec(compile(code, "read-results.md", "exec"), names)
        assert printed.getvalue() == shown
    return len(blocks)


def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "state").mkdir()
    (folder / ".trendlake").symlink_to(folder / "state")
    (folder / "conf" / "patterns").mkdir(parents=True)
    monkeypatch.chdir(folder)


@pytest.mark.long
@pytest.mark.spark
def test_as_typed(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path, monkeypatch)
    names: dict[str, Any] = {}
    assert sum(typed(section, names, tmp_path, monkeypatch) for section in PAGE.split("\n## ")[1:]) == 4
    described = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| ([^|]*) \|", PAGE, re.MULTILINE)))) - {"group_by"}
    assert {"plan_hash", "run_id"} < described
    assert described <= set(names["table"].to_pyarrow_dataset().schema.names)
    assert pq.read_table("falling.parquet")["falls"].to_pylist() == [15, 3]
    rows = spark.sql(SQL.replace("`.trendlake", f"`{tmp_path}/state")).collect()
    assert sorted((row.company, int(row.falls)) for row in rows) == [("acme", 7), ("zinc", 3)]
