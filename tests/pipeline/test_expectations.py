"""Expectations in a run and in a revision: what is told, what is refused, and what is not judged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import ChecksFailedError
from pipelines.report.read_run import read_run
from pipelines.report.verdict import verdict
from pipelines.runs import Record
from pipelines.steps.revise import revise
from pipelines.steps.run import Run
from pipelines.steps.sequence import STEPS
from pipelines.warehouse import latest_version
from tests.pipeline.flights import Lake, all_steps, snowball

pytestmark = pytest.mark.spark

EXPECT = """\
expect:
  - {measure: snowballs, between: [0.5, 2], of_last: 2 windows}
  - {measure: rows, between: [0.5, null], of_last: 3 windows}
  - {groups: none_vanish, of_last: 2 windows}
"""
NAMES = ("snowballs_between_0.5_and_2_of_last_2", "rows_at_least_0.5_of_last_3", "none_vanish_of_last_2")


def expecting(lake: Lake, since: int, until: int, run_id: str, expect: str = EXPECT) -> Run:
    """A run of days of March, of the pattern with `expect`."""
    path = Path(lake.pattern())
    path.write_text(path.read_text() + expect)
    return lake.run(path, f"2013-03-{since:02d}", f"2013-03-{until:02d}", run_id)


def told(checks: Sequence[dict[str, Any]]) -> list[tuple[bool | None, str]]:
    """The verdicts on what is expected, in order."""
    found = {check["check"]: (check["success"], check["observed"]) for check in checks}
    return [found[name] for name in NAMES]


def test_warned_failed_and_revised(lake: Lake) -> None:
    """A run that warns, one that publishes nothing, and a revision that makes a group vanish."""
    legs = {"UA": (3, 3, 3, 3), "AA": (2, 2, 2, 5), "B6": (3, 3, 3, 0)}
    lake.deliver([row for who, days in legs.items() for day, n in enumerate(days, 1) for row in snowball(day, n, who)])
    first = expecting(lake, 1, 5, "warned")
    all_steps(first)
    few = "windows not judged: not all of the {} before are published in this form of the pattern"
    fourth = "window_start 2013-03-04 00:00:00"
    checked = first.need("check_results")["checks"]
    assert told(checked) == [
        (False, f"2 of 6 groups in windows break it: carrier=AA, {fourth}: 31, usually 3; "
                f"carrier=B6, {fourth}: 0, usually 7; 2 of 4 {few.format(2)}"),
        (True, f"none of 1 windows breaks it; 3 of 4 {few.format(3)}"),
        (False, f"1 of 6 groups in windows break it: carrier=B6, {fourth}; 2 of 4 {few.format(2)}"),
    ]  # fmt: skip
    page = read_run(lake.spark, lake.warehouse, first.name, "warned")
    assert verdict(page, 0).reason == "2 checks of the results gave a warning."

    path = lake.warehouse.results(first.name)
    before = latest_version(lake.spark, path)
    lake.deliver(snowball(5, 3), feed="fifth")
    stopped = expecting(lake, 5, 6, "stopped", EXPECT.replace("none_vanish, ", "none_vanish, on_break: fail, "))
    for step in ("check_source", "compute"):
        STEPS[step](stopped)
    with pytest.raises(ChecksFailedError, match=r"none_vanish_of_last_2 .1 of 2 .*carrier=AA, window_start 2013-03-05"):
        STEPS["check_results"](stopped)
    assert latest_version(lake.spark, path) == before
    assert "none_vanish_of_last_2" in verdict(read_run(lake.spark, lake.warehouse, first.name, "stopped"), 0).reason
    all_steps(expecting(lake, 5, 6, "allowed"))
    revised(lake)


def revised(lake: Lake) -> None:
    """Of days 3 and 4: B6 is gone from the third, UA has more on the fourth. What AA and B6 broke on the fourth before
    is not told again."""
    table = f"delta.`{lake.warehouse.source('flights')}`"
    lake.spark.sql(f"DELETE FROM {table} WHERE event_id LIKE 'B6-3-%'")
    lake.deliver(snowball(4, 5)[3:], feed="more")
    record = revise(expecting(lake, 1, 5, "revised"))
    assert (record.rows_updated, record.rows_deleted) == (1, 1)
    third, fourth = (f"window_start 2013-03-{day:02d} 00:00:00" for day in (3, 4))
    assert told(record.checks) == [
        (False, f"2 of 6 groups in windows break it: carrier=B6, {third}: 0, usually 7; "
                f"carrier=UA, {fourth}: 31, usually 7"),
        (True, "none of 1 windows breaks it; 1 of 2 windows not judged: not all of the 3 before are published in this "
               "form of the pattern"),
        (False, f"1 of 5 groups in windows break it: carrier=B6, {third}"),
    ]  # fmt: skip
    assert untold(revise(expecting(lake, 1, 5, "quiet")))
    lonely = all_steps_of_another_form(lake)
    assert told(lonely)[0] == (None, "not judged; 1 of 1 windows not judged: not all of the 2 before are published in "
                                     "this form of the pattern")  # fmt: skip


def untold(record: Record) -> bool:
    return not {check["check"] for check in record.checks} & set(NAMES)


def all_steps_of_another_form(lake: Lake) -> list[dict[str, Any]]:
    """A pattern that has been edited has no windows before it yet, though the table holds some."""
    path = Path(lake.pattern(group_by="carrier, origin"))
    path.write_text(path.read_text() + EXPECT)
    run = lake.run(path, "2013-03-05", "2013-03-06", "edited")
    for step in ("check_source", "compute", "check_results"):
        STEPS[step](run)
    return list(run.need("check_results")["checks"])
