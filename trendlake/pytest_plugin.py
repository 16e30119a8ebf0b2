"""A pytest plugin: the tests next to a project's patterns, each as a test of pytest.

pytest loads it wherever this package is installed: `pytest conf/patterns/tests`. As every run of pytest in that
environment imports this module, it imports the engine only for such a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from trendlake.pipelines.authoring.pattern_tests import Verdict


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> pytest.Collector | None:
    """Files in a folder `conf/patterns/tests`."""
    hidden = file_path.name.startswith((".", "#"))  # as editors make next to a file
    if file_path.suffix == ".yaml" and not hidden and file_path.parts[-4:-1] == ("conf", "patterns", "tests"):
        return PatternTestFile.from_parent(parent, path=file_path)
    return None


class PatternTestFile(pytest.File):
    """The tests of one pattern."""

    def collect(self) -> Iterator[pytest.Item]:
        from trendlake.cep_core.errors import TrendlakeError
        from trendlake.pipelines.authoring.pattern_tests import run_tests
        from trendlake.pipelines.project.paths import find_project

        try:
            verdicts = list(run_tests(find_project(self.path.parents[3]), self.path))
        except TrendlakeError as error:
            raise self.CollectError(str(error)) from None
        for verdict in verdicts:
            yield PatternTestItem.from_parent(self, name=verdict.test, verdict=verdict)


class PatternTestItem(pytest.Item):
    """One test of one pattern."""

    def __init__(self, *, verdict: Verdict, **rest: object) -> None:
        super().__init__(**rest)  # type: ignore[arg-type]
        self.verdict = verdict

    def runtest(self) -> None:
        if self.verdict.differences:
            pytest.fail("\n".join(self.verdict.differences), pytrace=False)
