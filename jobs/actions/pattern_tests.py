"""`trendlake test`: runs the tests of patterns, with a line for each."""

from __future__ import annotations

from pathlib import Path

from trendlake.jobs.terminal.printing import console
from trendlake.jobs.terminal.verdict import Verdict
from trendlake.pipelines.authoring.pattern_tests import files_of_tests, folder_of_tests, run_tests
from trendlake.pipelines.project.paths import Project, odd_entries


def print_tests(project: Project, patterns: list[str], *, require: bool = False) -> Verdict:
    """Runs the tests of the named patterns (default: all, and prints the entries of the folder that are no tests, and
    the patterns without a test, which are a fault if tests are required). Raises ProjectError for a named pattern
    without tests, PatternErrors for errors of a file."""
    verdicts = []
    odd = [] if patterns else odd_entries(folder_of_tests(project), project.root)
    for _, error in odd:
        console.print(str(error), soft_wrap=True)
    for file in _files(project, patterns):
        for verdict in run_tests(project, file):
            console.print(f"{'ok    ' if not verdict.differences else 'failed'} {verdict.pattern}: {verdict.test}")
            for line in verdict.differences:
                console.print(f"         {line}", soft_wrap=True)
            verdicts.append(verdict)
    failed = sum(bool(verdict.differences) for verdict in verdicts)
    untested = [] if patterns else _untested(project, {verdict.pattern for verdict in verdicts})
    if untested:
        console.print(f"without a test: {', '.join(untested)}", soft_wrap=True)
    console.print(f"{len(verdicts) - failed} passed, {failed} failed")
    document = {"passed": len(verdicts) - failed, "failed": failed, "tests": verdicts, "untested": untested}
    return Verdict(document, good=failed == 0 and not odd and not (require and untested))


def _untested(project: Project, tested: set[str]) -> list[str]:
    """The patterns of the project that no test runs."""
    return [file.stem for file in project.pattern_files() if file.stem not in tested]


def _files(project: Project, patterns: list[str]) -> list[Path]:
    from trendlake.pipelines.errors import ProjectError

    files = {file.stem: file for file in files_of_tests(project)}
    for name in patterns:
        project.pattern_path(name)
        if name not in files:
            where = folder_of_tests(project) / f"{name}.yaml"
            raise ProjectError(f"{name} has no tests: {where} does not exist", hint="a list of {name, events, expect}")
    return [files[name] for name in patterns] if patterns else list(files.values())
