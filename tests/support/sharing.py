"""How tests are shared out with `-n`: a file goes to one process, as its tests share what they have made; all files
with Airflow go to one, as they share a home, and so do those that look at this repository's files, which are parsed
once. The longest are begun first. Before those with Spark come those that compile the engine's kernels: while one
process has Airflow, which uses few, the other compiles nearly all. Side by side both would compile each of them, and
Spark's workers too: minutes in a new clone.

The mark `xdist_group` cannot do it: pytest 9.2 no longer takes the name that pytest-xdist 3.8 gives a test, and the
tests of a group then run anywhere, without a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("tests/dags/", "tests/repository/")
ENGINE = "tests/cep_core/"
FIRST = ("airflow", ENGINE, "spark", "slow", "random")
"""Marks, by how long the files take that have them; and the random tests of the engine."""


def share(name: str) -> str:
    """What of a test's name says with which others it runs in one process."""
    file = name.partition("::")[0]
    return next((folder for folder in TOGETHER if file.startswith(folder)), file)


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


def rank_of(item: pytest.Item) -> int:
    """The place in `FIRST` that a test gives its file."""
    if item.nodeid.startswith(ENGINE) and item.get_closest_marker("random"):
        return FIRST.index(ENGINE)
    return next((rank for rank, mark in enumerate(FIRST) if item.get_closest_marker(mark)), len(FIRST))


def longest_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests, in files: those with Airflow, random ones of the engine, those with Spark, other slow ones, then the
    rest."""
    ranks: dict[str, int] = {}
    for item in items:
        file = share(item.nodeid)
        ranks[file] = min(ranks.get(file, len(FIRST)), rank_of(item))
    return sorted(items, key=lambda item: ranks[share(item.nodeid)])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items[:] = longest_first(items)
