"""A pytest plugin: the tests beside a project's patterns, each as a test of pytest.

Name it where pytest looks: `pytest -p jobs.pytest_plugin conf/patterns/tests`, or `pytest_plugins =
["jobs.pytest_plugin"]` in the outermost conftest.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cep_core.errors import TrendlakeError
from pipelines.authoring.pattern_tests import Verdict, run_tests
from pipelines.project.paths import find_project


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> pytest.Collector | None:
    """Files in a folder `conf/patterns/tests`."""
    if file_path.suffix == ".yaml" and file_path.parts[-4:-1] == ("conf", "patterns", "tests"):
        return PatternTestFile.from_parent(parent, path=file_path)
    return None


class PatternTestFile(pytest.File):
    """The tests of one pattern."""

    def collect(self) -> Iterator[pytest.Item]:
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
