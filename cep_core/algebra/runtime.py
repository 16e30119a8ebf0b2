"""The functions that run plans of kind algebra (see `cep_core.kind.Kind`)."""

from __future__ import annotations

import pyarrow as pa

from trendlake.cep_core.algebra.compile.plan import AlgebraPlan
from trendlake.cep_core.algebra.run.members import run_members as run_template
from trendlake.cep_core.algebra.run.run import run_algebra
from trendlake.cep_core.events.columns import Columns

__all__ = ["run", "run_template"]


def run(plan: AlgebraPlan, events: Columns, windows: range | None, watermark: int | None) -> pa.Table:
    """Results do not depend on the watermark."""
    return run_algebra(plan, events, windows)
