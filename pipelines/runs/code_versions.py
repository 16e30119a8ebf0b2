"""Versions of the code that decides what results are.

Each commit to a results table records them (`versions` in its note), so that a fix can name the rows that an older
version has published: `CORRECTIONS` is the table of versions that are known to be wrong. None of them is part of a
plan's hash. See docs/adr/0012-versions-of-results.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.kinds import KINDS

CONTRACT_VERSION = 4
"""Evaluation of contract rules: which rows count."""
LOCAL_VERSION = 2
"""Revisions computed in this process (`pipelines.revision.here`): they read, judge and compute without Spark."""
REVISION_VERSION = 2
"""Which windows and groups a revision computes again, and which it leaves as they are."""

PUBLICATION_VERSION = 2
"""Which rows of earlier forms of a pattern a publication removes. Commits before version 2 do not record it."""

ENGINE, CONTRACT, LOCAL, REVISION, PUBLICATION = "engine", "contract", "local", "revision", "publication"
"""Components, as notes name them; the engine is that of the pattern's kind."""

Version = tuple[str, int]
"""A component and its version."""
UNKNOWN: Version = ("unknown", 0)
"""Of rows whose commit records no versions: those of Trendlake 0.1."""


@dataclass(frozen=True)
class Correction:
    """A fix that changed results. `component`: the kind of an engine, or `contract`, `local`, `revision`,
    `publication`; `version`: the first one that is right; `wrong`: what versions before it did, for people to read."""

    component: str
    version: int
    wrong: str


CORRECTIONS: tuple[Correction, ...] = (
    Correction("contract", 2, "what rows that share a key hold decided which of them counted"),
    Correction("trends", 2, "skip_till_next_match confused positions that share a variable"),
    Correction("automaton", 2, "a NaN as a partition was published as NaN, not as NULL"),
    Correction("trends", 3, "last digits depended on the order of rows, and long decimal keys could be one"),
    Correction("matches", 2, "decimal keys and ids of more than 15 digits could be one"),
    Correction("automaton", 3, "decimal keys and ids of more than 15 digits could be one"),
    Correction("contract", 3, "rules took days from 5 to 14 October 1582 for others"),
    Correction("local", 2, "small revisions judged some rules otherwise than Spark: decimals, floats, upper and lower"),
    Correction("revision", 2, "revisions by Spark left stale rows of groups and partitions that were NaN or decimals"),
    Correction("contract", 4, "overflow, decimals, NaN and some texts in rules were Spark's, as its version had them"),
    Correction("matches", 3, "of events at one time, ids decided which followed which, and which a NOT saw"),
    Correction("publication", 2, "rows of a form with another key, kind or slide stayed, or made new rows come twice"),
    Correction("matches", 4, "patterns that ran together lost matches; large whole numbers were compared as doubles"),
    Correction("automaton", 4, "a whole number beyond 2^53 was compared with a double as the nearest double"),
    Correction("algebra", 2, "a whole number beyond 2^53 was compared with a double as the nearest double"),
)


def current_versions() -> dict[str, int]:
    """The version of each component of `CORRECTIONS`; imports every kind."""
    return {
        **{name: kind.version for name, kind in KINDS.items()},
        CONTRACT: CONTRACT_VERSION,
        LOCAL: LOCAL_VERSION,
        REVISION: REVISION_VERSION,
        PUBLICATION: PUBLICATION_VERSION,
    }


def versions_of(plan: AnyPlan) -> dict[str, int]:
    """The versions by which a run computes the results of `plan`."""
    return {ENGINE: plan.engine_version, CONTRACT: CONTRACT_VERSION}


def versions_of_revision(plan: AnyPlan, *, local: bool) -> dict[str, int]:
    """The versions by which a revision computes them, `local`: in this process."""
    return {**versions_of(plan), REVISION: REVISION_VERSION, **({LOCAL: LOCAL_VERSION} if local else {})}


def corrections_of(kind: str, versions: Iterable[Version]) -> tuple[Correction, ...]:
    """The corrections that rows of a pattern of `kind` lack, which these versions have made; none for `UNKNOWN`."""
    names: Mapping[str, str] = {kind: ENGINE}
    by_component = tuple(versions)
    return tuple(
        item
        for item in CORRECTIONS
        if any(
            names.get(item.component, item.component) == name and number < item.version for name, number in by_component
        )
    )
