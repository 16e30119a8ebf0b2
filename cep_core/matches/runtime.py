"""The functions that run plans of kind matches (see `cep_core.kind.Kind`)."""

from __future__ import annotations

import pyarrow as pa

from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.matches.compile.plan import MatchesPlan
from trendlake.cep_core.matches.run.members import run_members
from trendlake.cep_core.matches.run.run import run_matches

__all__ = ["run", "run_members"]


def run(plan: MatchesPlan, events: Columns, windows: range | None, watermark: int | None) -> pa.Table:
    """Without windows, matches that end with a NOT that has a limit wait for the watermark."""
    return run_matches(plan, events, windows, watermark if windows is None else None)
