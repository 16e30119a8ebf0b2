"""Rows of a pattern's results at a version, all that are selected: in this process, or as a frame of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import DataFrame

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.frames.evaluate import in_order
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.road import NotHere, answer_of, tried
from trendlake.pipelines.lake.table import During, Table
from trendlake.pipelines.results.columns import time_of
from trendlake.pipelines.results.read import Selection, conditions, mask, refuse_other_form
from trendlake.pipelines.spark.columns import column


def rows_here(table: Table, plan: AnyPlan, selection: Selection, names: Sequence[str]) -> pa.Table | NotHere:
    """Columns `names` of the rows, in the order and the types in which `evaluate` gives them. Raises OtherFormError."""
    refuse_other_form(plan, table.names)

    def here() -> pa.Table:
        during = During(time_of(plan), selection.start, selection.end)
        read = list(dict.fromkeys((*names, *_of_order(plan), *selection.groups)))
        rows = answer_of(table.here).rows(read, during.time, [during.slice], limits.RESULTS_READ, also=[during.time])
        return rows

    rows = tried(here)
    if isinstance(rows, NotHere):
        return rows
    return as_evaluated(rows.filter(mask(rows, plan, selection)), plan, names)


def frame_by_spark(frame: DataFrame, plan: AnyPlan, selection: Selection, names: Sequence[str]) -> DataFrame:
    """Columns `names` of the rows of the table `frame`, in no order. Raises OtherFormError."""
    refuse_other_form(plan, frame.columns)
    return frame.where(reduce(and_, conditions(plan, selection))).select(*map(column, names))


def as_evaluated(rows: pa.Table, plan: AnyPlan, names: Sequence[str]) -> pa.Table:
    """Rows with the columns by which they are ordered, as `evaluate` gives them."""
    schema = pa.schema([plan.result_schema.field(name) for name in names])
    return in_order(rows, plan).select(list(names)).cast(schema)


def _of_order(plan: AnyPlan) -> tuple[str, ...]:
    return (plan.owned(range(1))[0], *plan.key)
