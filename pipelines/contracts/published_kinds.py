"""Kinds whose results no run publishes yet."""

from __future__ import annotations

from trendlake.cep_core import Pattern
from trendlake.cep_core.errors import NotSupportedError
from trendlake.cep_core.kinds import KINDS


def refuse_unpublished(pattern: Pattern) -> None:
    """Raises NotSupportedError for a pattern of such a kind."""
    if not KINDS[pattern.kind].published:
        raise NotSupportedError(
            f"'{pattern.name}' is of kind {pattern.kind}, whose results no run publishes yet",
            place=pattern.document.place(("kind",)),
            hint="validate, explain, try and test take it, and trendlake.evaluate computes its rows in Python",
        )


def refuse_interval(pattern: Pattern) -> None:
    """Raises NotSupportedError for an interval of time of such a kind: its rows depend on all events."""
    if not KINDS[pattern.kind].published:
        raise NotSupportedError(
            f"an interval of '{pattern.name}', of kind {pattern.kind}: its rows depend on all events",
            place=pattern.document.place(("kind",)),
            hint="leave --from and --to out",
        )
