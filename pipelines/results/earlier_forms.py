"""Publications before version 2 (`PUBLICATION_VERSION`) that may have left rows of an earlier form among their own.

They matched rows by the present key alone, so that one new row took the place of every old row that agreed on it. And
they looked for old rows by the present time column, between the first and the last start of a window: rows of another
kind, or of windows with another slide, stayed. Tables whose forms had the same key and windows are right.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cache

from trendlake.cep_core import AnyPlan
from trendlake.pipelines.results.coverage import Claim, numbered_alike, slice_of, windows_of
from trendlake.pipelines.results.notes import Note
from trendlake.pipelines.results.owned_rows import other_intervals
from trendlake.pipelines.runs.code_versions import PUBLICATION


def with_faults(
    plan: AnyPlan, noted: Sequence[tuple[Claim, Note]], doubled: Collection[int], columns: Callable[[], Sequence[str]]
) -> list[Claim]:
    """The claims, `faulty` ones marked. `noted`: each with its note; `doubled`: versions of the results whose commit
    brought more rows than were computed; `columns`: of the table."""

    @cache
    def other_kind() -> bool:
        return bool(other_intervals(plan, columns()))

    claims: list[Claim] = []
    forms: set[str] = set()
    others: dict[str, bool] = {}
    for claim, note in sorted(noted, key=lambda item: item[0].results_version):
        if note.of_run and not _knows(claim):
            before = forms - {claim.plan_hash}
            left = bool(before) and (other_kind() or (_narrow(plan, claim) and any(others[form] for form in before)))
            claim = replace(claim, faulty=left or claim.results_version in doubled)
        forms.add(claim.plan_hash)
        others[claim.plan_hash] = others.get(claim.plan_hash, False) or not numbered_alike(plan, note)
        claims.append(claim)
    return claims


def _knows(claim: Claim) -> bool:
    return any(component == PUBLICATION for component, _ in claim.versions or ())


def _narrow(plan: AnyPlan, claim: Claim) -> bool:
    """Whether the time between the last window's start and the next is not claimed."""
    return any(slice_of(plan, *windows_of(plan, *span)) != span for span in claim.owned)
