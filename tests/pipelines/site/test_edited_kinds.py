"""Pages of a pattern that has been of other kinds: its table has their columns for ever, and their rows until their
windows are computed again. Its own rows are counted as in a table that it alone has written to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.pipelines.results.test_changed_keys import DAYS, events
from tests.random.profile import ALL
from tests.support.flights import all_steps
from tests.support.signal_patterns import KEYS
from tests.support.signals import Signals, signals
from trendlake.pipelines.report.build import build_report, read_facts
from trendlake.pipelines.report.facts import ResultFacts
from trendlake.pipelines.report.places import Places
from trendlake.pipelines.site.build import Site, Together, read_page_facts, refresh_pattern
from trendlake.pipelines.site.facts import OverviewFacts, ShownFacts

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FORMS = (
    ("two groups", "graphs of matches", "runs", "matches", "hours", "rises", "two groups")
    if ALL
    else ("two groups", "matches")
)
"""One after the other; no two neighbours say by the same columns of what time a row is."""


def shown(lake: Signals, folder: Path) -> tuple[OverviewFacts | None, ShownFacts | None]:
    """What the page of the pattern counts, and its rows; the page is made too."""
    site = Site(lake.lake, lake.project, Places(folder))
    file = Path(lake.pattern)
    assert refresh_pattern(site, file).exists()
    facts = read_page_facts(site, file, docs=False, together=Together(site, [file]))
    return facts.overview, facts.shown


def published(lake: Signals, days: tuple[float, float], run_id: str, folder: Path) -> ResultFacts:
    """What the page of a run counts, which is made too."""
    run = lake.run(*days, run_id)
    all_steps(run)
    assert build_report(lake.lake, Path(lake.pattern), run_id, folder, run.plan).html.exists()
    results = read_facts(lake.lake, Path(lake.pattern), run_id, run.plan).results
    assert results is not None
    return replace(results, version=0, older_rows=0)


@pytest.mark.long
def test_as_in_a_table_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    lake = signals(spark, tmp_path / "edited", KEYS[FORMS[0]])
    lake.insert(events())
    published(lake, DAYS, "first", tmp_path / "pages")  # as every test of pages has it: nothing to compare with
    for number, form in enumerate(FORMS[1:], 1):
        alone = signals(spark, tmp_path / f"alone {number}", KEYS[form])
        alone.insert(events())
        lake.edit(KEYS[form])
        assert shown(lake, tmp_path / "pages") == (None, None)  # all rows are of another kind
        for at, days in enumerate([(1.0, 2.0), DAYS]):
            run_id = f"form {number} {at}"
            assert published(lake, days, run_id, tmp_path / "pages") == published(alone, days, run_id, tmp_path / "own")
            ours, own = (shown(item, tmp_path / name) for item, name in ((lake, "pages"), (alone, "own")))
            assert as_alone(ours) == as_alone(own)
            if days == DAYS:
                assert ours == own


def as_alone(facts: tuple[OverviewFacts | None, ShownFacts | None]) -> tuple[OverviewFacts, ShownFacts]:
    """Without the numbers of rows of other kinds."""
    counts, rows = facts
    assert counts is not None
    assert rows is not None
    return replace(counts, rows=0, earlier_rows=0), replace(rows, total=0, stale=0)
