"""The worked cases of length, duration, longest and maximal trends, over both engines, and of what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.golden.corpus import OF_LENGTH
from tests.support.cases import Case, load, unexpected
from tests.support.engines import ENGINES, Engine
from trendlake.cep_core.trends.compile.model import TrendsPattern

CALENDAR = "time_zone" in TrendsPattern.model_fields


def cases() -> list[Case]:
    """Those about the length of trends. Window ends are in seconds, as window starts are."""
    chosen = [case for case in load("calendar_and_length.yaml") if OF_LENGTH.search(str(case.query))]
    return [replace(case, expect=[_in_microseconds(row) for row in case.expect]) for case in chosen]


def _in_microseconds(row: dict[str, object]) -> dict[str, object]:
    end = row["window_end"]
    assert isinstance(end, int)
    return row | {"window_end": end * 1_000_000}


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_worked_case(engine: Engine, case: Case) -> None:
    if "time_zone" in case.query and (engine is ENGINES["reference"] or not CALENDAR):
        pytest.skip("windows of a local calendar")
    assert unexpected(case, engine(case.query, case.events)) == []
