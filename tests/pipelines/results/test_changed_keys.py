"""Results whose key a new form of the pattern changes: rows of another form in windows that are published go, whatever
their key was, and whoever writes: this process or Spark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.conftest import CHAOS
from tests.random.profile import ALL
from tests.support.bare_lake import bare_lake
from tests.support.flights import all_steps, renamed
from tests.support.promises import agree, replayed
from tests.support.signal_patterns import KEYS
from tests.support.signals import DAY_US, START_US, Signals, signals
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.lake import latest_version, read_at
from trendlake.pipelines.results.coverage import spans
from trendlake.pipelines.results.ledger import read_ledger
from trendlake.pipelines.steps.revise import revise

pytestmark = pytest.mark.spark

FIRST = 4 if ALL else 2
"""Forms of a chain that are tried, where not all are."""
AT_LEAST = {"slides": 3, "kinds": 3}
"""Back to the first form; and to a third kind."""
DAYS = (0.0, 3.0)
CHAINS = {
    "groups": ("two columns of groups", "two groups", "one group", "two groups", "groups that are NULL", "one group"),
    "families": ("a family of two columns", "a family", "one group", "a family"),
    "attributes": ("rises by place", "rises", "rises without an attribute", "rises"),
    "runs": ("runs by place", "runs", "runs by place"),
    "slides": ("hours", "days", "hours"),
    "kinds": ("two groups", "matches", "runs", "rises", "two groups", "runs", "matches", "graphs of matches", "hours"),
    "documents": (
        "two queries of documents",
        "one query of documents",
        "each of some keys",
        "two queries of documents",
    ),
}
"""Forms of one pattern, one after the other."""


def events(count: int = 34) -> list[dict[str, object]]:
    """Two places, a type and a price that go round; what some patterns group by is NULL."""
    document = "<item><key>k{}</key><note>{}</note></item>"
    return [
        {
            "event_id": f"e{n}",
            "event_time": START_US + n * DAY_US // 12,
            "event_type": "AAB"[n % 3],
            "place": "ns"[n % 2],
            "price": n % 5,
            "remark": None,
            "document": document.format(n % 2, n % 3 + 1),
        }
        for n in range(count)
    ]


@pytest.mark.long
@pytest.mark.more_in_chaos
@pytest.mark.parametrize(
    ("forms", "road"),
    [
        *((forms, "here") for forms in CHAINS),
        pytest.param("groups", "by Spark", marks=pytest.mark.repeats),
        pytest.param("kinds", "by Spark", marks=pytest.mark.repeats),
        pytest.param("slides", "by Spark", marks=pytest.mark.chaos),
    ],
)
def test_rows_of_another_form_go(
    spark: SparkSession, tmp_path: Path, forms: str, road: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Edited and run again, time after time: the table has the rows of the present form only, each once; and so it has
    after a late event. Where Spark computes, which takes seconds, the first forms only; `make chaos` tries all."""
    chain = CHAINS[forms]
    if road == "by Spark" or not ALL:
        chain = chain if CHAOS else chain[: max(FIRST, AT_LEAST.get(forms, 0))]
    if road == "by Spark":
        for name in ("PUBLISHED", "REVISED"):
            monkeypatch.setattr(limits, name, -1)
    lake = signals(spark, tmp_path / "project", KEYS[chain[0]])
    lake.insert(events())
    for number, form in enumerate(chain):
        lake.edit(KEYS[form])
        run = lake.run(*DAYS, f"form {number}")
        all_steps(run)
        agree(lake, run)
    lake.insert([events()[25] | {"event_id": "late"}])
    record = revise(renamed(run, "late"))
    assert [check.name for check in record.checks if check.success is False] == []
    agree(lake, run)
    replayed(lake, run)


@pytest.mark.long
def test_two_kinds_of_one_time(spark: SparkSession, tmp_path: Path) -> None:
    """The second day in another kind: the rows of the first day stay, and `revise` names them; back in the first kind,
    the second day is no longer taken for published."""
    lake = signals(spark, tmp_path / "project", KEYS["two groups"])
    lake.insert(events())
    all_steps(lake.run(*DAYS, "first"))
    lake.edit(KEYS["matches"])
    run = lake.run(1.0, 2.0, "second day")
    all_steps(run)
    table = DeltaTable(lake.warehouse.results(run.name)).to_pyarrow_table().to_pylist()
    days = Counter((row["match_id"] is None, (row["window_start"] or row["end"]).day) for row in table)
    assert set(days) == {(True, 1), (False, 2), (True, 3)}
    assert stale(lake, "matches") == [(0.0, 1.0), (2.0, 3.0)]
    lake.edit(KEYS["two groups"])
    assert stale(lake, "two groups") == [(1.0, 2.0)]


def stale(lake: Signals, run_id: str) -> list[tuple[float, float]]:
    """The days in which `revise` names windows of another form."""
    run = lake.run(*DAYS, run_id)
    ledger, windows = read_ledger(run.lake, run.name, run.plan, run.contract.name), run.plan.windows
    stretches = spans([segment for segment in ledger.segments if segment.plan_hash != run.plan.hash])
    ends = [(windows.end(first) - windows.slide, windows.end(last)) for first, last in stretches]
    return [((start - START_US) / DAY_US, (end - START_US) / DAY_US) for start, end in ends]


@pytest.mark.long
@pytest.mark.parametrize("road", ["run here", pytest.param("run by Spark", marks=pytest.mark.repeats), "revised"])
def test_repeated_rows_of_other_programs(
    spark: SparkSession, tmp_path: Path, road: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that another program has written a second time: a run, and a revision, leave one of each."""
    lake = signals(spark, tmp_path / road, KEYS["two groups"])
    lake.insert(events())
    run = lake.run(*DAYS, "first")
    all_steps(run)
    path = lake.warehouse.results(run.name)
    read_at(bare_lake(spark), path, latest_version(bare_lake(spark), path)).coalesce(1).write.format("delta").mode(
        "append"
    ).save(path)
    lake.insert([events()[25] | {"event_id": "late"}])
    if road == "revised":
        revise(renamed(run, "late"))
    else:
        monkeypatch.setattr(limits, "PUBLISHED", limits.PUBLISHED if road == "run here" else -1)
        all_steps(lake.run(*DAYS, "again"))
    agree(lake, run)
