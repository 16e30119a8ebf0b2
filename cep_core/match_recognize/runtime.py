"""The functions that run plans of kind match_recognize (see `cep_core.kind.Kind`)."""

from __future__ import annotations

import pyarrow as pa

from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.match_recognize.run.chain import can_renew, renewed
from trendlake.cep_core.match_recognize.run.run import run_match_recognize, run_over_same_rows

__all__ = ["can_renew", "renewed", "run", "run_over_same_rows"]


def run(plan: RowPatternPlan, events: Columns, windows: range | None, watermark: int | None) -> pa.Table:
    """Results do not depend on the watermark."""
    return run_match_recognize(plan, events, windows)
