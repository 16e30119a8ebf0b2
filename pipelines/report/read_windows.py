"""The results of a run, and of the time before it, from Delta. Spark prunes and selects; `summary` does the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.windows import moment, shifted
from trendlake.cep_core.sharing.family import row_hash
from trendlake.pipelines.delta import limits
from trendlake.pipelines.delta.local_log import local_errors
from trendlake.pipelines.delta.local_reader import TableHere, table_here
from trendlake.pipelines.errors import LocalUnsupportedError
from trendlake.pipelines.report.amounts import Amount, amount_of
from trendlake.pipelines.report.facts import PatternFacts, ResultFacts, RowResult, RunFacts, Window
from trendlake.pipelines.report.layout import Layout
from trendlake.pipelines.report.read_rows import Span, micros, read_counted, read_counted_here
from trendlake.pipelines.report.shape import Shape, between
from trendlake.pipelines.report.summary import Columns, ResultRow, result_row, summarise
from trendlake.pipelines.report.words import length
from trendlake.pipelines.results.reuse import row_hashes
from trendlake.pipelines.results.spark_order import spark_texts
from trendlake.pipelines.spark.columns import column

ENOUGH_WINDOWS = 24
"""An interval with as many windows makes a picture by itself; a shorter one is shown with what came before it."""
SPAN_WINDOWS = 60
"""About how many windows of history put a short interval in context."""
_BEFORE, _AFTER = -(2**63), 2**63 - 2
"""Microseconds that no window's end comes before, or after."""


def read_results(
    spark: SparkSession, path: str, pattern: PatternFacts, run: RunFacts, plan: AnyPlan | None = None
) -> ResultFacts:
    """The results of the run's interval, as of the version it published (the newest, where it has published none).

    `plan`: the run's, where it is known: says which rows are the interval's. Rows of another state of the pattern
    (another plan hash) are not compared with these: they are counted only.
    """
    version = run.results_version
    with suppress(LocalUnsupportedError):
        return _results_here(table_here(spark, path, version), pattern, run, plan)
    reader = spark.read.format("delta")
    table = (reader if version is None else reader.option("versionAsOf", version)).load(path)
    if not Layout.of(table.columns, pattern.kind).windows:
        return _counted(table, pattern, run, plan, version)
    shape = Shape.of(table.schema, pattern.group_by, tuple(pattern.returns))
    spanned = between(table, _span_from(run), run.interval_to)
    current = _is_current(table, run, plan)
    older = 0 if current is None else spanned.where(~current).count()
    frame = (spanned if current is None else spanned.where(current)).select(*shape.columns())
    columns = Columns(shape.groups, shape.measures, shape.measure)
    return summarise(_Rows(frame, shape, run.interval_from), columns, older_rows=older, version=version)


def _results_here(table: TableHere, pattern: PatternFacts, run: RunFacts, plan: AnyPlan | None) -> ResultFacts:
    """As Spark reads them, of at most `limits.PAGE_ROWS` rows. Raises LocalUnsupportedError."""
    if not Layout.of(table.schema.names, pattern.kind).windows:
        return _counted_here(table, pattern, run, plan)
    shape = Shape.of(table.schema, pattern.group_by, tuple(pattern.returns))
    logs = [f"{name}_log10" for name in shape.measures if f"{name}_log10" in shape.companions]
    named = dict.fromkeys((*shape.groups, "window_start", "window_end", *shape.measures, *logs, "plan_hash"))
    since = _span_from(run)
    ends = _BEFORE if since is None else micros(since), _AFTER if run.interval_to is None else micros(run.interval_to)
    rows = table.rows([*named], "window_end", [(ends[0] + 1, ends[1] + 1)], limits.PAGE_ROWS)
    with local_errors():
        older = 0
        if run.plan_hash is not None:
            current = pc.fill_null(pc.equal(rows["plan_hash"], _row_hash(run, plan)), False)
            older = rows.num_rows - (pc.sum(current).as_py() or 0)
            rows = rows.filter(current)
        results = [_result(row, shape, run.interval_from) for row in _shaped(rows, shape).to_pylist()]
    columns = Columns(shape.groups, shape.measures, shape.measure)
    return summarise(results, columns, older_rows=older, version=run.results_version)


def _shaped(rows: pa.Table, shape: Shape) -> pa.Table:
    """The columns of `Shape.columns`. Raises LocalUnsupportedError for values whose text is not certain."""
    columns: dict[str, Any] = {f"g{i}": spark_texts(rows[name]) for i, name in enumerate(shape.groups)}
    columns |= {"ws": rows["window_start"].cast(pa.int64()), "we": rows["window_end"].cast(pa.int64())}
    for i, name in enumerate(shape.measures):
        kind = rows[name].type
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if not (number or pa.types.is_string(kind) or pa.types.is_boolean(kind)):
            raise LocalUnsupportedError(f"values of {kind}")
        log = f"{name}_log10"
        columns[f"v{i}"] = rows[name]
        columns[f"l{i}"] = rows[log] if log in shape.companions else pa.nulls(rows.num_rows, pa.float64())
    return pa.table(columns)


def _counted_here(table: TableHere, pattern: PatternFacts, run: RunFacts, plan: AnyPlan | None) -> ResultFacts:
    """As `_counted`. Raises LocalUnsupportedError."""
    layout = Layout.of(table.schema.names, pattern.kind)
    owner, span = _span(layout, run, plan)
    names = [name for name in table.schema.names if name != "graph" or layout.named]
    rows = table.rows(names, owner, [(micros(span.low), micros(span.high))], limits.PAGE_ROWS)
    with local_errors():
        older, current = 0, _current_forms(run, plan, span)
        if current is not None:
            current_rows = pc.is_in(rows["plan_hash"], pa.array(current, pa.string()))
            older = rows.num_rows - (pc.sum(current_rows).as_py() or 0)
            rows = rows.filter(current_rows)
        lifetime = None if plan is None else plan.result_shape.lifetime
        facts = read_counted_here(rows, pattern, span, owner, lifetime)
    return replace(facts, older_rows=older, version=run.results_version, largest=with_lengths(facts.largest, plan))


def _counted(
    table: DataFrame, pattern: PatternFacts, run: RunFacts, plan: AnyPlan | None, version: int | None
) -> ResultFacts:
    """Of a kind without windows in its rows."""
    owner, span = _span(Layout.of(table.columns, pattern.kind), run, plan)
    older = 0
    current = _current_forms(run, plan, span) if "plan_hash" in table.columns else None
    if current is not None:
        is_current = sf.col("plan_hash").isin(current)
        inside = (column(owner) >= sf.lit(span.low)) & (column(owner) < sf.lit(span.high))
        older = table.where(inside & ~is_current).count()
        table = table.where(is_current)
    lifetime = None if plan is None else plan.result_shape.lifetime
    facts = read_counted(table, pattern, span, owner, lifetime)
    return replace(facts, older_rows=older, version=version, largest=with_lengths(facts.largest, plan))


def with_lengths(rows: tuple[RowResult, ...], plan: AnyPlan | None) -> tuple[RowResult, ...]:
    """The rows, their durations as people read them."""
    durations = () if plan is None else plan.result_shape.durations

    def shown(name: str, value: Amount | str) -> Amount | str:
        exact = value.exact if name in durations and isinstance(value, Amount) else None
        return length(exact) if isinstance(exact, int) else value

    return tuple(replace(row, values=tuple((name, shown(name, value)) for name, value in row.values)) for row in rows)


def _span(layout: Layout, run: RunFacts, plan: AnyPlan | None) -> tuple[str, Span]:
    """The column that says which interval a row is of, and what the picture shows."""
    owner, since, until = _owned(layout, run, plan)
    span = _span_from(run)
    begin = since if span is None or run.interval_from is None else shifted(since, span - run.interval_from)
    return owner, Span(begin, since, until)


def _current_forms(run: RunFacts, plan: AnyPlan | None, span: Span) -> list[str] | None:
    """The plan hashes of the rows that are compared; None where that is not known."""
    if run.plan_hash is None:
        return None
    low, high = micros(span.low), micros(span.high)
    windows = None if plan is None else plan.windows.ending_in(low, high + plan.windows.within)
    if plan is None or not windows:
        return [_row_hash(run, plan)]
    return sorted(row_hashes(plan, windows))


def _row_hash(run: RunFacts, plan: AnyPlan | None) -> str:
    """The hash of the rows of the run; `plan`: the one that it has used, if the file still has it."""
    return str(run.plan_hash) if plan is None else row_hash(plan)


def _owned(layout: Layout, run: RunFacts, plan: AnyPlan | None) -> tuple[str, datetime, datetime]:
    """The column that says which interval a row is of, and the run's range of it."""
    since, until = run.interval_from or moment(0), run.interval_to or moment(0)
    if plan is not None:
        windows = plan.windows.ending_in(micros(since), micros(until))
        if windows:
            owner, low, high = plan.owned(windows)
            return owner, moment(low), moment(high)
        return plan.owned(range(1))[0], since, until
    return layout.owner, since, until


class _Rows:
    """The rows of a frame, as often as they are asked for: kept when they are few."""

    def __init__(self, frame: DataFrame, shape: Shape, since: datetime | None) -> None:
        self._frame, self._shape, self._since = frame, shape, since
        few = frame.limit(limits.PAGE_ROWS + 1).collect()
        self._in_memory = [_result(row, shape, since) for row in few] if len(few) <= limits.PAGE_ROWS else None

    def __iter__(self) -> Iterator[ResultRow]:
        if self._in_memory is not None:
            return iter(self._in_memory)
        rows = self._frame.toLocalIterator(prefetchPartitions=True)
        return (_result(row, self._shape, self._since) for row in rows)


def _is_current(table: DataFrame, run: RunFacts, plan: AnyPlan | None) -> Column | None:
    if run.plan_hash is None or "plan_hash" not in table.columns:
        return None
    return sf.col("plan_hash").eqNullSafe(sf.lit(_row_hash(run, plan)))


def _span_from(run: RunFacts) -> datetime | None:
    """Where the picture starts: so many intervals back that about SPAN_WINDOWS windows are seen."""
    if run.interval_from is None or run.interval_to is None:
        return run.interval_from
    windows = run.windows or 1
    intervals = 1 if windows >= ENOUGH_WINDOWS else SPAN_WINDOWS // windows
    return shifted(run.interval_to, intervals * (run.interval_from - run.interval_to))


def _result(row: Row | Mapping[str, Any], shape: Shape, since: datetime | None) -> ResultRow:
    values = tuple((name, amount_of(row[f"v{i}"], row[f"l{i}"])) for i, name in enumerate(shape.measures))
    amount = dict(values).get(shape.measure.name, Amount(1, 0.0))
    if not isinstance(amount, Amount):
        raise TypeError(f"{shape.measure.name} is no number")
    return result_row(
        tuple(row[f"g{i}"] for i in range(len(shape.groups))),
        Window(moment(row["ws"]), moment(row["we"])),
        amount if shape.measure.is_count else Amount(amount.exact),
        values,
        since,
    )
