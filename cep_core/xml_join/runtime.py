"""The functions that run plans of kind xml_join (see `cep_core.kind.Kind`)."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from trendlake.cep_core.events.array_types import Bools
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.xml_join.compile.plan import XmlJoinPlan
from trendlake.cep_core.xml_join.run.partners import Partners
from trendlake.cep_core.xml_join.run.run import run_xml_join


def run(plan: XmlJoinPlan, events: Columns, windows: range | None, watermark: int | None) -> pa.Table:
    """Results do not depend on the watermark."""
    return run_xml_join(plan, events, windows)


def partners(plan: XmlJoinPlan, changed: pa.Array) -> Callable[[pa.Array, Bools], Bools]:
    """Which documents may be in a row with one of those that changed."""
    return Partners(plan, changed).among
