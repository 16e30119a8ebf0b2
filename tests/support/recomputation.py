"""What the results over the source of `tests/support/signals.py` are, computed from the whole table at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaProtocolError

from tests.support.signal_documents import contract_of_documents, rows_of_documents
from tests.support.signal_rules import keeping, without_repeats
from tests.support.signals import CONTRACT
from trendlake.cep_core import run_plan
from trendlake.cep_core.events.windows import BEGINNING
from trendlake.pipelines.lake.lake import read_at
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.runs.consistency import limit_of, watermark_of
from trendlake.pipelines.runs.run import Run

HIGHEST = re.compile(r"maximum: \d+")


def recomputed(run: Run, version: int, windows: range) -> list[dict[str, Any]]:
    """What the windows' rows are at a version of the source: the whole table split at once, one call of the kernels."""
    events, reached = _good(run, version)
    low, high = run.plan.windows.start(windows[0]), run.plan.windows.end(windows[-1])
    if run.plan.kind == "xml_join":
        return in_order(rows_of_documents(run, events, windows), run)
    times = pc.cast(events[run.plan.schema.event_time], pa.int64())
    inside = pc.and_(pc.greater_equal(times, low), pc.less(times, high))
    time = min(high, reached) if run.plan.waits else None
    asked = events.filter(inside) if run.plan.interval_start is None else events
    return in_order(run_plan(run.plan, asked, windows, time).to_pylist(), run)


def _good(run: Run, version: int) -> tuple[pa.Table, int]:
    """The columns that the plan reads of the good rows, and the watermark where it waits for one: by Spark, where the
    contract is not the one that Python says too."""
    written = run.project.contract_path(run.contract.name).read_text()
    contract_texts = (CONTRACT, contract_of_documents(CONTRACT))
    if HIGHEST.sub("", written) not in [HIGHEST.sub("", text) for text in contract_texts]:
        source = read_at(run.lake, run.warehouse.source(run.contract.name), version)
        good = q.good_rows(q.annotate(source, run.contract.rules)).select(*run.plan.columns)
        return good.toArrow(), watermark_of(run, version) if run.plan.waits else 0
    (most,) = {rule.high for rule in run.contract.rules if rule.columns == ("price",)}
    assert isinstance(most, int)
    stored = _stored(run, version)
    keeps = keeping(stored.to_pylist(), most, documents="document" in run.contract.roles)
    good_rows = pa.Table.from_pylist(
        without_repeats(keeps, [item.name for item in run.contract.columns]), stored.schema
    )
    return good_rows.select(list(run.plan.columns)), _watermark(run, version, keeps) if run.plan.waits else 0


def _watermark(run: Run, version: int, rows: Sequence[Mapping[str, Any]]) -> int:
    """The latest time up to which an event may move it, less the lateness."""
    limit = limit_of(run, version)
    times = [round(row["event_time"].timestamp() * 1_000_000) for row in rows]
    return max((time for time in times if time <= limit), default=BEGINNING + run.lateness) - run.lateness


def _stored(run: Run, version: int) -> pa.Table:
    """All rows of a version of the source; Spark reads forms of tables that delta-rs does not."""
    path = run.warehouse.source(run.contract.name)
    try:
        return DeltaTable(path, version=version).to_pyarrow_table()
    except DeltaProtocolError:
        return read_at(run.lake, path, version).toArrow()


def in_order(rows: list[dict[str, Any]], run: Run) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: [str(row[name]) for name in run.plan.key])
