"""docs/how-to/frames.md: its Python prints what it shows, in one session from top to bottom."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from tests.conftest import ROOT
from trendlake.cep_core import TrendlakeError

PAGE = (ROOT / "docs" / "how-to" / "frames.md").read_text()
STEPS, ON_SPARK = (
    re.findall(r"^```python\n(.*?)^```\n+```text\n(.*?)^```", part, re.MULTILINE | re.DOTALL)
    for part in PAGE.split("## Frames of Spark")
)


def test_the_page_prints_what_it_shows() -> None:
    assert len(STEPS) + len(ON_SPARK) == PAGE.count("```python") == 5
    shows(STEPS, {})


@pytest.mark.spark
def test_spark_prints_what_the_page_shows(spark: SparkSession) -> None:
    names: dict[str, Any] = {"spark": spark}
    shows(STEPS[:1], names)
    shows(ON_SPARK, names)


def shows(steps: list[tuple[str, str]], names: dict[str, Any]) -> None:
    for code, printed in steps:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), pd.option_context("display.width", 80):
            try:
                exec(compile(code, "frames.md", "exec"), names)
            except TrendlakeError as error:
                out.write("\n".join(error._render_traceback_()))
        assert out.getvalue().strip("\n") == printed.strip("\n")
