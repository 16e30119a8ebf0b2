"""How tests are shared out with `-n`: a file goes to one process, as its tests share what they have made; all files
with Airflow go to one, as they share a home. The longest are begun first.

The mark `xdist_group` cannot do it: pytest 9.2 no longer takes the name that pytest-xdist 3.8 gives a test, and the
tests of a group then run anywhere, without a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

AIRFLOW = "tests/dags/"
FIRST = ("airflow", "spark", "slow", "random")
"""Marks, by how long the files take that have them."""


def share(name: str) -> str:
    """What of a test's name says with which others it runs in one process."""
    file = name.partition("::")[0]
    return AIRFLOW if file.startswith(AIRFLOW) else file


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out files in the order in which the processes have collected them."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return share(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


def longest_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests, in files: those with Airflow, those with Spark, other slow ones, then the rest."""
    ranks: dict[str, int] = {}
    for item in items:
        rank = next((rank for rank, mark in enumerate(FIRST) if item.get_closest_marker(mark)), len(FIRST))
        file = share(item.nodeid)
        ranks[file] = min(ranks.get(file, rank), rank)
    return sorted(items, key=lambda item: ranks[share(item.nodeid)])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items[:] = longest_first(items)
