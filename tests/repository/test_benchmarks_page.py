"""The page that `make bench` writes: its tables, its bars, its machine; and no date."""

from __future__ import annotations

import os
import re

from bench.measured import Measured
from bench.page import benchmarks_page, machine
from scripts.prose import check_page

RATE = Measured("falling prices", 4.256, "million events/s", 4.0, "a|b")
TIME = Measured("revision", 1.5, "s", 1.0, "small", at_most=True)
PLAIN = Measured("start", 1234.5, "s", None, "")


def test_sections_have_tables() -> None:
    page = benchmarks_page({"Kind trends": [RATE, PLAIN], "Flink CEP": [], "Revisions": [TIME]}, "On two cores.")
    lines = page.splitlines()
    assert [line for line in lines if line.startswith("## ")] == ["## Kind trends", "## Revisions"]
    assert "On two cores." in lines
    assert r"| falling prices | 4.26 | million events/s | >= 4 met | a\|b |" in lines
    assert "| revision | 1.50 | s | <= 1 MISSED | small |" in lines
    assert "| start | 1,234.50 | s |  |  |" in lines
    assert page.endswith("|\n")


def test_sections_that_are_not_measured_stay_on_the_page() -> None:
    page = benchmarks_page({"Kind trends": [RATE, PLAIN], "Revisions": [TIME], "Airflow": [RATE]}, "On two cores.")
    rows = {"Kind trends": [], "Revisions": [RATE], "Airflow": []}
    assert benchmarks_page(rows, "On two cores.", page) == benchmarks_page(
        {"Kind trends": [RATE, PLAIN], "Revisions": [RATE], "Airflow": [RATE]}, "On two cores."
    )


def test_the_machine_is_described_without_a_date() -> None:
    text = machine()
    assert f"{os.cpu_count()} cores" in text
    assert "pyspark 4." in text
    assert re.search(r"\b20\d\d-\d\d", text) is None
    assert machine() == text


def test_the_page_is_plain_english() -> None:
    assert list(check_page(benchmarks_page({"Revisions": [TIME]}, machine()), "page")) == []
