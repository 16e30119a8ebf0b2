"""Files as a stranger, a slip or an attacker may leave them, and what must come of each: a good plan, contract or
profile, or errors that a person can act on. Anything else is raised: another exception, time, memory.

A drawn file is a shipped one with mistakes (of its text, of its tree, of its expressions); `checked` reads it as
`trendlake validate`, `explain` and `test` do.
"""

from __future__ import annotations

import faulthandler
import resource
import shutil
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from tests.conftest import ROOT
from trendlake.cep_core import PatternWarning, explain, load_pattern
from trendlake.cep_core.errors import PatternErrors, TrendlakeError
from trendlake.pipelines.authoring.pattern_tests import TablesOfTests, load_tests, table_of
from trendlake.pipelines.authoring.validate import compiled
from trendlake.pipelines.contracts.contract import contract_of
from trendlake.pipelines.contracts.document import load_document
from trendlake.pipelines.contracts.pattern_source import sources_of
from trendlake.pipelines.contracts.results import check_templates
from trendlake.pipelines.contracts.rule_text import expected_of, reason_of
from trendlake.pipelines.project.paths import Project, find_project
from trendlake.pipelines.project.profile import read_profile
from trendlake.pipelines.spark.session import settings_of

Kind = Literal["pattern", "contract", "results", "profile", "tests"]

PATIENCE = 10.0
"""Seconds of processor time that any file may take: other work on the machine is no fault of the file's."""
ROOM = 700_000_000
"""Bytes by which reading any file may raise what this process holds at most."""
LONGEST = 20_000
"""Characters of one error, as it is printed."""


class TooSlow(BaseException):
    """A file that takes longer than PATIENCE."""


@dataclass(frozen=True)
class BadFile:
    """A file of a kind; `stem` is its name, `content` its bytes."""

    kind: Kind
    stem: str
    content: bytes


def project_in(folder: Path) -> Project:
    """A copy of this project's files, the examples and the lists they read among the patterns, to be spoilt."""
    shutil.copytree(ROOT / "conf", folder / "conf")
    shutil.copytree(ROOT / "data_contracts", folder / "data_contracts")
    for path in [*(ROOT / "examples").glob("*/*.yaml"), *(ROOT / "examples").glob("*/*.csv")]:
        shutil.copy(path, folder / "conf" / "patterns" / path.name)
    return find_project(folder)


FOLDERS: Mapping[Kind, str] = {
    "pattern": "conf/patterns",
    "contract": "data_contracts",
    "results": "data_contracts",
    "profile": "conf/profiles",
    "tests": "conf/patterns/tests",
}


def _shipped() -> list[tuple[Kind, Path]]:
    files: list[tuple[Kind, Path]] = [("profile", ROOT / "conf" / "profiles" / "local.yaml")]
    files += [("tests", path) for path in sorted((ROOT / "conf" / "patterns" / "tests").glob("*.yaml"))]
    for path in [*sorted((ROOT / "conf" / "patterns").glob("*.yaml")), *sorted((ROOT / "examples").glob("*/*.yaml"))]:
        files.append(("pattern", path))
    for path in sorted((ROOT / "data_contracts").glob("*.yaml")):
        files.append(("results" if path.stem.startswith("results_") else "contract", path))
    return files


SHIPPED = _shipped()


# --- what must come of a file ---------------------------------------------------------------------------------


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raises TooSlow after `seconds` of processor time; where even that cannot be raised (one call of C, or nothing is
    done), the process ends, with the stack on standard error, after twelve times as long on the clock."""

    def late(signum: int, frame: FrameType | None) -> None:
        raise TooSlow(f"longer than {seconds} s")

    before = signal.signal(signal.SIGPROF, late)
    faulthandler.dump_traceback_later(12 * seconds, exit=True)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGPROF, before)


def checked(project: Project, file: BadFile) -> list[TrendlakeError]:
    """Read the file as the command does; its errors, none for a good one. Raises AssertionError for an error that does
    not help, TooSlow, and whatever else than a TrendlakeError was raised."""
    path = project.root / FOLDERS[file.kind] / f"{file.stem}.yaml"
    before = path.read_bytes() if path.is_file() else None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    path.write_bytes(file.content)
    try:
        with deadline(PATIENCE), warnings.catch_warnings():
            warnings.simplefilter("ignore", PatternWarning)
            READERS[file.kind](project, path)
        errors: list[TrendlakeError] = []
    except PatternErrors as several:
        errors = list(several.errors) or [TrendlakeError("errors without any")]  # which has no code: no help
    except TrendlakeError as error:
        errors = [error]
    finally:
        if before is None:
            path.unlink()
        else:
            path.write_bytes(before)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most) * 1024
    assert grown < ROOM, f"{grown / 1e6:.0f} MB more"
    assert len(errors) <= 101, f"{len(errors)} errors"
    for error in errors:
        helps(error)
    return errors


def helps(error: TrendlakeError) -> None:
    """Asserts that an error has a code of its own, a place and words, and can be printed to any terminal."""
    assert error.code != "TRENDLAKE", "an error without a code of its own"
    assert error.place is not None, f"no place: {error}"
    assert error.place.file
    assert error.place.line >= 1
    assert error.place.column >= 1
    assert error.message.strip()
    message = str(error)
    assert len(message) <= LONGEST, f"{len(message)} characters"
    for line in message.split("\n"):
        assert line.isprintable(), f"not printable: {line!r}"


def _read_pattern(project: Project, path: Path) -> None:
    pattern, plan = compiled(project, path)
    assert pattern.name == path.stem
    assert explain(plan)
    assert len(plan.hash) == 16


def _read_contract(project: Project, path: Path) -> None:
    contract = contract_of(*load_document(path), events=True)
    assert contract.name == path.stem
    assert contract.is_reference or contract.event_schema().families
    assert contract.named_by in contract.columns_with_derived or contract.made_id
    assert len(contract.fingerprint) == 16
    for rule in contract.rules:
        assert reason_of(rule)
        assert expected_of(rule)


def _read_results(project: Project, path: Path) -> None:
    check_templates(*load_document(path))


def _read_profile(project: Project, path: Path) -> None:
    profile = read_profile(path)
    assert all(isinstance(value, str) for value in settings_of(profile).values())
    assert profile.warehouse_of(project)


def _read_tests(project: Project, path: Path) -> None:
    pattern, plan = compiled(project, project.pattern_path(path.stem))
    tables = TablesOfTests.of(sources_of(project, pattern), plan)
    for _, test in load_tests(path, tables):
        for name, rows in tables.rows(test).items():
            table_of(rows, tables.events[name])


READERS: Mapping[Kind, Callable[[Project, Path], None]] = {
    "pattern": _read_pattern,
    "contract": _read_contract,
    "results": _read_results,
    "profile": _read_profile,
    "tests": _read_tests,
}


def checked_mapping(query: Mapping[str, Any]) -> list[TrendlakeError]:
    """As `checked`, for a query given as data, as in a notebook."""
    try:
        with deadline(PATIENCE):
            load_pattern(query)
    except PatternErrors as several:
        for error in several.errors:
            helps(error)
        return list(several.errors)
    return []
