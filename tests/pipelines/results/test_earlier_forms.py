"""Tables in which a publication before version 2 left rows of an earlier form, or published some twice: `revise` names
the windows, and `backfill --stale` heals them. Other tables that were edited are right, and nothing is said of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.pipelines.results.test_changed_keys import events
from tests.support.flights import all_steps, renamed
from tests.support.promises import agree
from tests.support.signal_patterns import KEYS
from tests.support.signals import Signals, signals
from trendlake.cep_core.trends.compile.plan import Plan
from trendlake.jobs.actions import backfill
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.lake.road import NotHereError
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.results.owned_rows import Place as RowsAt
from trendlake.pipelines.results.publication import Publication, equal, in_columns, quoted_values
from trendlake.pipelines.runs.code_versions import versions_of
from trendlake.pipelines.steps import publish as publishing
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

DAYS = ((0.0, 1.0), (1.0, 3.0))


@contextmanager
def version_1() -> Iterator[None]:
    """Publications as they were: matched by the key, of rows in the windows by the plan's time column."""

    def replace(self: Publication, rows: DataFrame, by: Any, owned: Any, *, repeats: bool = False) -> Any:
        columns = self._results().columns
        values = in_columns(columns, rows.columns, "s")
        in_windows = RowsAt(*self.run.owned).spark("t")
        merge = self._merge(rows, self.run.plan.key, in_windows)
        merge = merge.whenMatchedUpdate(condition=~equal("t", values), set=quoted_values(values))
        merge = merge.whenNotMatchedInsert(values=quoted_values(values))
        token = self._begin()
        merge.whenNotMatchedBySourceDelete(condition=in_windows).execute()
        return self._commit(token)

    def elsewhere(*_: Any) -> Any:
        raise NotHereError("not in this test")

    def owned(plan: Plan, windows: range) -> tuple[str, int, int]:
        return "window_start", plan.windows.start(windows[0]), plan.windows.start(windows[-1]) + 1

    noted, work_of_run = publishing.noted, publishing.work_of_run
    with pytest.MonkeyPatch.context() as before:
        before.setattr(publishing, "_replace_here", elsewhere)
        before.setattr(Publication, "replace", replace)
        before.setattr(Plan, "owned", owned)
        before.setattr(publishing, "noted", lambda *about: dataclasses.replace(noted(*about), grid=None))
        before.setattr(
            publishing,
            "work_of_run",
            lambda plan, *about, **more: dataclasses.replace(
                work_of_run(plan, *about, **more), versions=versions_of(plan)
            ),
        )
        yield


def publish(lake: Signals, form: str, days: tuple[tuple[float, float], ...] = DAYS) -> None:
    lake.edit(KEYS[form])
    for first, last in days:
        all_steps(lake.run(first, last, f"{form} {first}"))


def stale_windows(lake: Signals) -> list[str]:
    record = revise(renamed(lake.run(0.0, 3.0, "first"), f"look {lake.version()}"))
    return [check.observed for check in record.checks if check.name == "stale_versions"]


def healed(lake: Signals) -> int:
    """The windows that `trendlake backfill --stale` computes."""
    place = Place(lake.project, Profile(master="local[2]"))
    documents = backfill.run_stale(place, lake.lake, [lake.pattern], None, False, False)
    return sum(item["windows"] for item in documents if "stretches" in item)


@pytest.mark.long
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("two groups", "one group", marks=pytest.mark.repeats),
        ("hours", "days"),
        pytest.param("two groups", "matches", marks=pytest.mark.repeats),
        pytest.param("a family", "one group", marks=pytest.mark.chaos),
    ],
)
def test_faulty_windows_are_named_and_healed(spark: SparkSession, tmp_path: Path, before: str, after: str) -> None:
    """The first day was published again in the second form: its windows are named, the others are of the first form."""
    lake = signals(spark, tmp_path / "project", KEYS[before])
    lake.insert(events())
    with version_1():
        publish(lake, before)
        publish(lake, after)
    run = lake.run(0.0, 3.0, "all")
    with pytest.raises(AssertionError):
        agree(lake, run)
    (sentence,) = stale_windows(lake)
    assert "before publication 2: rows of a form with another key" in sentence
    assert healed(lake) > 0
    agree(lake, run)
    assert stale_windows(lake) == []


@pytest.mark.long
@pytest.mark.parametrize(
    "after", [pytest.param("two groups of other sums", marks=pytest.mark.repeats), "two columns of groups"]
)
def test_edited_tables_that_are_right(spark: SparkSession, tmp_path: Path, after: str) -> None:
    """Another condition, or a longer key, by the old code: no row was published twice, and none is named."""
    lake = signals(spark, tmp_path / "project", KEYS["two groups"])
    lake.insert(events())
    with version_1():
        publish(lake, "two groups")
        publish(lake, after)
    agree(lake, lake.run(0.0, 3.0, "all"))
    assert stale_windows(lake) == []
