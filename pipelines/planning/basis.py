"""The basis of a plan: what it compared. A plan file names it, and is applied only where that is still the case."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trendlake.pipelines.errors import ProjectError, StalePlanError
from trendlake.pipelines.lake.commit import Commit
from trendlake.pipelines.results.notes import Note

PLAN_AGAIN = "plan again: `trendlake plan --out {file}`"


@dataclass(frozen=True)
class PlanBasis:
    """`plan_hash`: of the pattern's file; `contract`: the fingerprint of its contracts; `results_version`: of its
    results table, None where there is none; `sources`: the newest version of each of its tables by its name, None where
    there is none."""

    plan_hash: str
    contract: str
    results_version: int | None
    sources: Mapping[str, int | None]

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "sources": dict(self.sources)}


def refuse_other_basis(
    pattern: str, planned: PlanBasis | None, now: PlanBasis | None, file: Path, commits: Sequence[Commit]
) -> None:
    """Raises StalePlanError where a pattern, its contracts or its results are other ones than those of the plan in
    `file`; None: the pattern had, or has, errors. `commits`: the newest of its results; those of the plan's own form
    are what an earlier, interrupted `apply` has done. Newer versions of sources are no reason: see `newer_sources`."""
    if (planned is None) != (now is None):
        what = "its file has an error now" if now is None else "its file had an error when the plan was made"
    elif planned is None or now is None:
        return
    elif planned.plan_hash != now.plan_hash:
        what = "the pattern was edited after the plan was made"
    elif planned.contract != now.contract:
        what = "a contract of its tables was edited after the plan was made"
    elif planned.results_version != now.results_version and not _goes_on(planned, commits):
        what = f"results are at {_at(now.results_version)}, the plan was made at {_at(planned.results_version)}"
    else:
        return
    raise StalePlanError(f"{pattern}: {what}", hint=PLAN_AGAIN.format(file=file))


def _goes_on(planned: PlanBasis, commits: Sequence[Commit]) -> bool:
    """Whether all commits since the plan was made publish the form that it has."""
    since = [commit for commit in commits if commit.version > (planned.results_version or 0)]
    forms = {None if note is None else note.plan_hash for note in (Note.of_commit(commit.note) for commit in since)}
    return forms <= {planned.plan_hash} and len(since) < len(commits)


def newer_sources(planned: PlanBasis | None, now: PlanBasis | None) -> list[str]:
    """The tables with other versions than when the plan was made, each in words."""
    if planned is None or now is None:
        return []
    then = planned.sources
    return [
        f"{name} is at {_at(version)}, the plan was made at {_at(then.get(name))}"
        for name, version in now.sources.items()
        if version != then.get(name)
    ]


def _at(version: int | None) -> str:
    return "no version" if version is None else f"version {version}"


def read_plan(file: Path) -> dict[str, PlanBasis | None]:
    """The basis of each pattern of a plan file, by name. Raises ProjectError for a file that no plan has written."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        bases = {one["pattern"]: one["basis"] for one in document["patterns"] if one["state"] != "removed"}
        return {
            str(name): None
            if stored is None
            else PlanBasis(
                str(stored["plan_hash"]),
                str(stored["contract"]),
                None if stored["results_version"] is None else int(stored["results_version"]),
                {str(key): None if at is None else int(at) for key, at in stored["sources"].items()},
            )
            for name, stored in bases.items()
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ProjectError(f"{file} cannot be read as a plan: {error!r}", hint=PLAN_AGAIN.format(file=file)) from None
