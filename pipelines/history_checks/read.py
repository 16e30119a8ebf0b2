"""Result rows as groups in windows, on Spark; a partition holds whole groups, in order, and is read as a stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import reduce
from itertools import groupby
from operator import itemgetter

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from trendlake.cep_core import AnyPlan, Pattern
from trendlake.cep_core.events.schema import COUNT_TYPE
from trendlake.cep_core.patterns.expectations import ROWS, ExpectationModel
from trendlake.pipelines.contracts.results import LOG10
from trendlake.pipelines.history_checks.evaluate import ZERO, Judged, Number, Outcome, Row, judge
from trendlake.pipelines.results.windows import row_window
from trendlake.pipelines.spark.columns import column

GROUP, WINDOW, VALUE, BEYOND = "group", "window", "value", "log10"
OUTCOMES = pa.schema(
    [
        ("group", pa.list_(pa.string())),
        ("window", pa.int64()),
        ("value", pa.string()),
        ("usual", pa.string()),
        ("kept", pa.int64()),
        ("unjudged", pa.int64()),
    ]
)
"""A row for each group in a window that breaks an expectation; and, without a window, how many others there are."""
AT_ONCE = 10_000
"""Rows of `OUTCOMES` in a batch."""

Batches = Iterator[pa.RecordBatch]


def groups_of(pattern: Pattern, expected: ExpectationModel) -> tuple[str, ...]:
    """The columns by which it is expected. Where each group has one row in a window, rows are counted over them."""
    return () if _counts_rows(pattern, expected) and pattern.measures else pattern.groups


def missing_of(pattern: Pattern, plan: AnyPlan, expected: ExpectationModel) -> Number | None:
    """The value where a group has no row: of a count 0, else none."""
    if _counts_rows(pattern, expected):
        return ZERO
    return ZERO if expected.measure and _is_count(plan, expected.measure) else None


def cells(pattern: Pattern, plan: AnyPlan, expected: ExpectationModel, parts: Sequence[DataFrame]) -> DataFrame:
    """`GROUP` (texts), `WINDOW`, `VALUE` and, of counts too large for it, its logarithm `BEYOND`: one row for each
    group in a window in which it has result rows. `parts`: result rows, each in one of them."""
    groups = [column(name).cast("string") for name in groups_of(pattern, expected)]
    group = (sf.array(*groups) if groups else sf.array().cast("array<string>")).alias(GROUP)
    window = row_window(plan).alias(WINDOW)
    if expected.measure in pattern.measures:
        beyond = column(expected.measure + LOG10) if _is_count(plan, expected.measure) else sf.lit(None).cast("double")
        wanted = [group, window, column(expected.measure).alias(VALUE), beyond.alias(BEYOND)]
        return _union([part.select(*wanted) for part in parts])
    rows = _union([part.select(group, window) for part in parts]).groupBy(GROUP, WINDOW)
    return rows.agg(sf.count(sf.lit(1)).alias(VALUE)).withColumn(BEYOND, sf.lit(None).cast("double"))


def group_outcomes(cells: DataFrame, expected: ExpectationModel, judged: Judged, missing: Number | None) -> DataFrame:
    """`OUTCOMES`, of all groups."""
    from pyspark.sql.pandas.types import from_arrow_schema

    ordered = cells.repartition(GROUP).sortWithinPartitions(GROUP, WINDOW)
    return ordered.mapInArrow(judging(expected, judged, missing), from_arrow_schema(OUTCOMES))


def judging(expected: ExpectationModel, judged: Judged, missing: Number | None) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`: takes cells by group and window, yields `OUTCOMES`."""

    def judge_partition(batches: Batches) -> Batches:
        satisfied = unjudged = 0
        broken: list[tuple[list[str | None], Outcome]] = []
        for group, rows in groupby(_rows(batches), key=itemgetter(0)):
            for outcome in judge(expected, (row for _, row in rows), judged, missing):
                satisfied += outcome.word == "kept"
                unjudged += outcome.word == "unjudged"
                if outcome.word == "broken":
                    broken.append((group, outcome))
            if len(broken) >= AT_ONCE:
                yield _outcome_batch(broken)
                broken = []
        yield _outcome_batch(broken, satisfied, unjudged)

    return judge_partition


def _rows(batches: Batches) -> Iterator[tuple[list[str | None], Row]]:
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in (GROUP, WINDOW, VALUE, BEYOND)]
        for group, window, value, beyond in zip(*columns, strict=True):
            yield group, Row(window, number(value, beyond))


def number(value: Decimal | float | int | None, beyond: float | None) -> Number | None:
    """A measure's value; of one that is NULL its logarithm, where that is stored. None for no finite number."""
    if value is None:
        return None if beyond is None else Number(True, beyond)
    if isinstance(value, float):
        return Number(False, value) if math.isfinite(value) else None
    return Number(False, int(value))


def _outcome_batch(
    broken: Iterable[tuple[list[str | None], Outcome]], satisfied: int = 0, unjudged: int = 0
) -> pa.RecordBatch:
    rows: list[dict[str, object]] = [
        {
            "group": group,
            "window": outcome.window,
            "value": None if outcome.value is None else str(outcome.value),
            "usual": None if outcome.usual is None else str(outcome.usual),
        }
        for group, outcome in broken
    ]
    rows.append({"kept": satisfied, "unjudged": unjudged})
    return pa.RecordBatch.from_pylist(rows, schema=OUTCOMES)


def _counts_rows(pattern: Pattern, expected: ExpectationModel) -> bool:
    return expected.measure == ROWS and ROWS not in pattern.measures


def _is_count(plan: AnyPlan, measure: str) -> bool:
    return bool(plan.result_schema.field(measure).type == COUNT_TYPE)


def _union(parts: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda a, b: a.unionByName(b), parts)
