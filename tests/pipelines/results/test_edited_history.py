"""`diff` and `history` of results whose key has been edited: rows of a form with a longer key agree on the present one,
and none of them is lost or taken for another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.pipelines.results.test_changed_keys import DAYS, events
from tests.support.flights import all_steps, renamed
from tests.support.signal_patterns import KEYS
from tests.support.signals import DAY_US, START_US, Signals, signals
from trendlake.jobs.actions.history import print_diff
from trendlake.pipelines.json_text import json_text
from trendlake.pipelines.lake.lake import read_at
from trendlake.pipelines.results import history
from trendlake.pipelines.results.history import ADDED, RETRACTED
from trendlake.pipelines.results.provenance import PROVENANCE
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.site import read_changes
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

FORMS = ("two groups", "two columns of groups", "one group")


@pytest.fixture(scope="module")
def edited(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Signals, list[Run], list[int]]:
    """A pattern of three forms, each published, the second one revised after that; their runs, and the four versions of
    the results."""
    lake = signals(spark, tmp_path_factory.mktemp("edited") / "project", KEYS[FORMS[0]])
    lake.insert([*events(), *(events()[n] | {"event_id": f"more {n}", "price": 7} for n in (0, 24, 25, 27))])
    runs, versions = [], []
    for number, form in enumerate(FORMS):
        lake.edit(KEYS[form])
        runs.append(lake.run(*DAYS, f"form {number}"))
        versions.append(all_steps(runs[-1]).results_version or 0)
        if number == 1:
            lake.insert([events()[n] | {"event_id": f"late {n}"} for n in (24, 25)])
            lake.delete(event_id="more 24")
            versions.append(revise(renamed(runs[-1], "late")).results_version or 0)
    assert len(set(versions)) == 4
    return lake, runs, versions


def texts_of(rows: Iterable[Mapping[str, Any] | None], names: Sequence[str]) -> Counter[str]:
    return Counter(json_text([row.get(name) for name in names], None) for row in rows if row is not None)


@pytest.mark.long
@pytest.mark.parametrize("form", [1, pytest.param(2, marks=pytest.mark.repeats)])
def test_differences_lead_from_one_version_to_the_other(
    edited: tuple[Signals, list[Run], list[int]], form: int
) -> None:
    """By the plan of two forms: of a revision of the form with the longest key, and of edits. Spark says the same as
    this process."""
    lake, runs, versions = edited
    run, kinds = runs[form], Counter[str]()
    path = lake.warehouse.results(run.name)
    for at, later in ((1, 2), (0, 1) if form == 1 else (2, 3)):
        first, last = versions[at], versions[later]
        counts, rows = history.between(lake.lake, path, run.plan, first, last)
        by_spark = history._between_by_spark(lake.lake, path, run.plan, first, last, None)
        assert json_text([counts, rows], None) == json_text(list(by_spark), None)
        assert sum(counts.values()) == len(rows)
        tables = [read_at(lake.lake, path, version) for version in (first, last)]
        names = [name for name in tables[1].columns if name not in PROVENANCE]
        before, after = (texts_of([row.asDict() for row in table.collect()], names) for table in tables)
        gone, came = (texts_of(side, names) for side in zip(*((item.before, item.after) for item in rows), strict=True))
        assert gone <= before
        assert before - gone + came == after
        kinds += Counter(counts)
    assert kinds[ADDED]
    assert kinds[RETRACTED]


@pytest.mark.long
def test_diff_prints_rows_without_a_column_of_the_key(
    edited: tuple[Signals, list[Run], list[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that were published before the key had it."""
    lake, runs, versions = edited
    path = lake.warehouse.results(runs[1].name)
    print_diff(lake.lake, path, runs[1].plan, (str(versions[0]), str(versions[1])), 100)
    assert "retracted" in capsys.readouterr().out


def test_history_tells_each_row_that_went(edited: tuple[Signals, list[Run], list[int]]) -> None:
    """Of an edit to a longer key none: other rows took its place. Of a revision each, though a row that agrees with it
    on the present key changed in the same version; and of an edit that gives up the group."""
    lake, runs, versions = edited
    path, plan = lake.warehouse.results(runs[0].name), runs[0].plan
    values = history.values(lake.lake, path, plan, {"place": "n"}, START_US + 2 * DAY_US)
    assert Counter(value.commit.version for value in values if value.row is None) == {versions[2]: 1, versions[3]: 1}
    shown = Counter(value.commit.version for value in values if value.row is not None)
    assert shown == {versions[0]: 1, versions[1]: 2, versions[2]: 1}


def test_a_page_takes_no_row_for_another(edited: tuple[Signals, list[Run], list[int]]) -> None:
    """What a pattern's page shows of a revision of the form with the longer key: rows that share the present key went
    and came each for itself; another row has a new value."""
    lake, runs, versions = edited
    path, plan = lake.warehouse.results(runs[0].name), runs[0].plan
    samples = read_changes._samples_here(lake.lake, path, plan, None, [versions[2]])
    assert samples == read_changes._samples_by_spark(lake.lake, path, plan, None, [versions[2]])
    assert [change.kind for change in samples[versions[2]]] == ["retracted", "retracted", "added", "changed"]
