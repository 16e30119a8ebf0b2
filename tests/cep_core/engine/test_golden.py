"""Results change only with an engine version: the golden corpus gives the rows whose digests are checked in."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from tests.conftest import ROOT
from tests.golden.corpus import DIGESTS, KINDS, answer, answers, digests, entries, total
from tests.golden.write import changed
from trendlake.cep_core.kinds import KINDS as BUILT
from trendlake.pipelines.runs.code_versions import current_versions

CHANGELOG = ROOT / "CHANGELOG.md"
STORED = json.loads(DIGESTS.read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_results_are_those_of_the_version(kind: str) -> None:
    """Bit by bit where a column is exact, to 12 digits where it is a double."""
    version, stored = BUILT[kind].version, STORED[kind]
    now = digests(kind)
    write = "run `python -m tests.golden.write`"
    if names := changed(stored["cases"], now):
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        raised = version > stored["version"]
        pytest.fail(
            f"{len(names)} of {len(now)} cases of kind {kind} have other rows than engine version {stored['version']} "
            f"gave: {shown}. If that is meant: "
            + ("" if raised else f"raise ENGINE_VERSION beside the plan of kind {kind} to {stored['version'] + 1}, ")
            + f"{write}, and add a line '- {kind} {version if raised else version + 1}: ...' to CHANGELOG.md under "
            "'Engine versions'. A warehouse names its older rows by the table CORRECTIONS of "
            "pipelines/runs/code_versions.py: add a row. If it is not meant: `python -m tests.golden.show` prints it.",
            pytrace=False,
        )
    assert version == stored["version"], f"engine version {version} of kind {kind} has no digest: {write}"
    assert list(stored["cases"]) == list(now), f"cases came or went: {write}"
    assert stored["digest"] == total(now)


@pytest.mark.parametrize(("component", "version"), current_versions().items())
def test_changelog_explains_versions(component: str, version: int) -> None:
    """Each version after the first has a line that says what changed."""
    lines = re.findall(rf"^- {component} (\d+): \S.*$", CHANGELOG.read_text(), re.MULTILINE)
    assert {int(number) for number in lines} >= set(range(2, version + 1))


@pytest.mark.parametrize("kind", KINDS)
def test_corpus_has_rows(kind: str) -> None:
    """Most cases give rows, few are refused: a corpus of empty answers would see no change."""
    texts = list(answers(kind).values())
    assert len(texts) >= 400
    assert sum("\n" in text for text in texts) >= 0.75 * len(texts)
    assert sum(text.startswith("refused") for text in texts) <= 0.05 * len(texts)


@pytest.mark.parametrize("kind", KINDS)
def test_other_events_give_another_digest(kind: str) -> None:
    """What is compared depends on the rows: the same query over twice the events is another answer."""
    for entry in list(entries(kind))[-40:]:
        if "\n" in answers(kind)[entry.name]:
            doubled = [*entry.rows, *({**row, "id": f"x{number}"} for number, row in enumerate(entry.rows))]
            assert answer(replace(entry, rows=doubled)) != answers(kind)[entry.name], entry.name
