"""Open-ended search for a file that is neither read nor refused with words: `make fuzz KIND=files SECONDS=600`.
Patterns, contracts, profiles, tests, and files of events."""

from __future__ import annotations

import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import given, seed, settings

from tests.random.bad_files import BadFile, TooSlow, checked, checked_mapping, project_in
from tests.random.profile import OPEN_ENDED
from tests.random.spoilt_events import EVENT_FILES, EventsFile, checked_events, contract_in
from tests.random.spoilt_files import FILES, spoilt_mappings
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.project.paths import Project

CHUNK = 200
"""Files between two looks at the clock."""
MEMORY = 6_000_000_000
"""Bytes of addresses this process may take: beyond it, MemoryError."""


class Unhandled(AssertionError):  # noqa: N818 - it is one
    """What came of a file was no plan and no error with words."""


@dataclass
class Seen:
    """How many files were read, and how many of them refused."""

    files: int = 0
    refused: int = 0


def chunk(number: int, project: Project, until: float, seen: Seen) -> tuple[Any, BaseException] | None:
    """One run of Hypothesis from the seed `number`, until the time `until`; the smallest file it finds, and what was
    raised."""
    findings: list[tuple[Any, BaseException]] = []
    events = contract_in(project.root)

    @seed(number)
    @settings(OPEN_ENDED, max_examples=CHUNK)
    @given(FILES | spoilt_mappings() | EVENT_FILES)
    def read(bad: Any) -> None:
        if time.monotonic() > until and not findings:
            return
        seen.files += 1
        try:
            seen.refused += bool(_refused(project, events, bad))
        except (Exception, TooSlow) as error:
            findings.append((bad, error))
            raise Unhandled(repr(error)) from None

    try:
        read()
    except Unhandled:
        return findings[-1]  # the shrinker replays the smallest one last
    return None


def _refused(project: Project, events: Contract, bad: Any) -> Any:
    if isinstance(bad, EventsFile):
        return checked_events(events, project.root, bad)
    return checked(project, bad) if isinstance(bad, BadFile) else checked_mapping(bad)


def main(seconds: float, first: int) -> int:
    """Search from the seed `first` on; print the smallest file found, and the tally. 1 when there was one."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
    until, seen, number = time.monotonic() + seconds, Seen(), first
    with tempfile.TemporaryDirectory() as folder:
        project = project_in(Path(folder) / "project")
        while True:
            findings = chunk(number, project, until, seen)
            if findings is not None or time.monotonic() > until:
                break
            number += 1
    if findings is not None:
        bad, error = findings
        print(f"# seed {number}: {type(error).__name__}: {error}")
        text = bad.content.decode(errors="replace") if isinstance(bad, BadFile | EventsFile) else repr(bad)
        print(text[:5000])
    print(f"# {seen.files} files, {seen.refused} refused with words, seeds {first} to {number}")
    return int(findings is not None)
