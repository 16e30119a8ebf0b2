"""What `trendlake ingest` says of a delivery: rows that are new, replaced, there already, and those that are broken."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from trendlake.jobs.actions.ingest import describe, stopped_in_words
from trendlake.jobs.actions.revise import patterns_of
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.ingest.deliver import Taken
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.quality.quarantine_counts import Broken

CASES = [
    (Taken(5, new=5), "5 rows: 5 new"),
    (Taken(5, new=4, there=1, in_place_of=3), "5 rows: 4 in place of 3, 1 there already"),
    (Taken(1, there=1), "1 row: 1 there already"),
    (Taken(6, new=1, replaced=4, older=1), "6 rows: 1 new, 4 replaced, 1 older than the existing row"),
    (Taken(5, new=5, broken=Broken(Counter(price_range=5))), "5 rows: 5 new; 5 quarantined (price_range)"),
    (
        Taken(3_049, new=50, there=2_999, broken=Broken(Counter(price_range=2, id_required=1))),
        "3,049 rows: 50 new, 2,999 there already; 3 quarantined (price_range 2, id_required 1)",
    ),
]


@pytest.mark.parametrize(("taken", "said"), CASES)
def test_each_row_of_a_delivery_is_accounted_for(taken: Taken, said: str) -> None:
    assert describe(taken) == said


def test_a_delivery_that_was_ingested_before_is_named() -> None:
    assert describe(Taken(5, there=5, again=True)).startswith("5 rows  (there already")


@pytest.mark.parametrize(
    ("readers", "lost", "tolerance", "said"),
    [
        (["a"], 1, 0, "runs and revisions of 1 pattern will stop where they read this row, until it is repaired"),
        (["a", "b"], 3, 0, "of 2 patterns will stop where they read these rows, until they are repaired (tolerance 0)"),
        (["a"], 3, 0.01, "of 1 pattern will stop where more than 1.00% of the rows that they read break the contract"),
    ],
)
def test_what_a_broken_row_stops(readers: list[str], lost: int, tolerance: float, said: str) -> None:
    assert said in stopped_in_words(readers, lost, tolerance)


def test_which_patterns_read_a_source(tmp_path: Path) -> None:
    """Those of the project that name it; not their readers, and not files that cannot be read."""
    project = Project(tmp_path, tmp_path / "state")
    project.patterns.mkdir(parents=True)
    pattern = "name: {0}\nkind: trends\nsource: {1}\npattern: R x\nreturn: {{n: COUNT(*)}}\nwithin: 1 day\n"
    for name, source in (("b", "ev"), ("a", "ev"), ("other", "more"), ("reader", "results/a")):
        (project.patterns / f"{name}.yaml").write_text(pattern.format(name, source))
    (project.patterns / "wrong.yaml").write_text("source: [ev")
    assert patterns_of(Place(project, Profile()), "ev") == ["a", "b"]
