"""The results of a pattern counted in this process, for its page, with Spark's answers (`overview_by_spark`)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.windows import moment
from trendlake.pipelines.delta import limits
from trendlake.pipelines.delta.local_log import local_errors
from trendlake.pipelines.delta.local_reader import TableHere, table_here
from trendlake.pipelines.report.amounts import Amount
from trendlake.pipelines.report.bins import MONDAY_MICROS, SECOND, number_of_micros, unit_of
from trendlake.pipelines.report.facts import Measure, PatternFacts
from trendlake.pipelines.report.layout import Layout
from trendlake.pipelines.report.read_rows import NOUN
from trendlake.pipelines.report.shape import Shape
from trendlake.pipelines.report.tally import Tally
from trendlake.pipelines.results.spark_order import comparable, spark_texts
from trendlake.pipelines.site.overview import Counts, Ends, Key, Peak

LARGEST = 10**38
"""Counts of more digits have their magnitude only, as in a column of Spark."""


class Row(NamedTuple):
    """A result row: its group, its window in microseconds, its amount and, of counts, the log10."""

    key: Key
    ws: int
    we: int
    x: int | float | None
    l: float | None  # noqa: E741 - as the column


def counts_here(spark: SparkSession, path: str, pattern: PatternFacts, plan: AnyPlan | None) -> Counts | None:
    """Those of the results at `path` as they are now; None where there is no row. Raises LocalUnsupportedError: more
    than `limits.PAGE_ROWS` rows, a table that only Spark reads, or a group whose text only Spark knows."""
    table = table_here(spark, path)
    if not table.files:
        return None
    with local_errors():
        windows = Layout.of(table.schema.names, pattern.kind).windows
        counts = _windows(table, pattern) if windows else _stretches(table, pattern, plan)
    return counts if counts.rows else None


class CountsHere:
    """Counts of rows that are here, as Spark's."""

    def __init__(
        self,
        rows: Sequence[Row],
        forms: Mapping[str | None, int],
        groups: tuple[str, ...],
        measure: Measure,
        unit: str,
        extent: tuple[int, int] | None = None,
    ) -> None:
        self.rows, self.forms, self.groups, self.measure = rows, forms, groups, measure
        self.unit, self.extent = unit, extent

    @property
    def ends(self) -> Ends:
        starts, ends = [peak.ws for peak in self._by_window], [peak.we for peak in self._by_window]
        return Ends(min(starts), max(starts), min(ends), max(ends), len(starts))

    @property
    def group_count(self) -> int:
        return len(self._by_group)

    def totals(self, bucket: int | None) -> list[Peak]:
        return self._points(self._by_window, bucket)

    def peaks(self, most: int) -> list[tuple[Key, Peak]]:
        peaks = [(key, self._largest(rows)) for key, rows in self._by_group.items()]
        peaks.sort(key=lambda item: [comparable(text) for text in item[0]])
        peaks.sort(key=lambda item: comparable(self._rank(item[1])), reverse=True)
        return peaks[:most]

    def points(self, most: int, bucket: int | None) -> Mapping[Key, list[Peak]]:
        return {key: self._points(self._by_group[key], bucket) for key, _ in self.peaks(most)}

    def close(self) -> None:
        """Nothing is held that Python does not free."""

    @cached_property
    def _by_group(self) -> Mapping[Key, list[Peak]]:
        rows: dict[Key, list[Peak]] = defaultdict(list)
        for row in self.rows:
            rows[row.key].append(Peak(*row[1:]))
        return rows

    @cached_property
    def _by_window(self) -> list[Peak]:
        if self.measure.is_count:
            return [Peak(*row[1:]) for row in summed(row._replace(key=()) for row in self.rows)]
        windows: dict[tuple[int, int], list[Peak]] = defaultdict(list)
        for row in self.rows:
            windows[row.ws, row.we].append(Peak(*row[1:]))
        return [self._largest(peaks) for peaks in windows.values()]

    def _points(self, peaks: Iterable[Peak], bucket: int | None) -> list[Peak]:
        slots: dict[int, list[Peak]] = defaultdict(list)
        for peak in peaks:
            slots[peak.ws if bucket is None else number_of_micros(peak.ws, bucket)].append(peak)
        return [self._largest(slots[slot]) for slot in sorted(slots)]

    def _largest(self, peaks: Iterable[Peak]) -> Peak:
        """Of equal ones the earliest, as everywhere."""
        return max(
            peaks, key=lambda peak: (comparable(self._rank(peak)), -peak.ws, -peak.we, *map(comparable, peak[2:]))
        )

    def _rank(self, peak: Peak) -> float | None:
        """As `totals.order` for counts, the amount for others; NULL is the least."""
        if not self.measure.is_count:
            return None if peak.x is None else float(peak.x)
        return peak.l if peak.l is not None else -1.0 if peak.x == 0 else None


def summed(rows: Iterable[Row]) -> list[Row]:
    """The counts of the rows of each group and window, as `totals.totals`."""
    tallies: dict[tuple[Key, int, int], Tally] = defaultdict(Tally)
    for row in rows:
        tallies[row.key, row.ws, row.we].add(Amount(row.x, row.l), row.key)
    together = []
    for (key, ws, we), tally in tallies.items():
        total = tally.total()
        exact = total.exact if isinstance(total.exact, int) and total.exact < LARGEST else None
        together.append(Row(key, ws, we, exact, total.log10))
    return together


def _windows(table: TableHere, pattern: PatternFacts) -> CountsHere:
    """Of kind trends: a row is a window's already."""
    shape = Shape.of(table.schema, pattern.group_by, tuple(pattern.returns))
    name = shape.measure.name if shape.measure.name in shape.measures else None
    companion = f"{name}_log10" if name is not None and f"{name}_log10" in shape.companions else None
    values = [column for column in (name, companion) if column is not None]
    rows = table.every(
        [*dict.fromkeys((*shape.groups, "window_start", "window_end", *values, "plan_hash"))], limits.PAGE_ROWS
    )
    count = shape.measure.is_count
    amounts = [1] * rows.num_rows if name is None else _numbers(rows[name], count=count)
    logs = (
        [0.0] * rows.num_rows if name is None else _logs(rows, companion, amounts) if count else [None] * rows.num_rows
    )
    starts, ends = (rows[column].cast(pa.int64()).to_pylist() for column in ("window_start", "window_end"))
    keys = _keys(rows, shape.groups)
    return CountsHere(
        [*map(Row, keys, starts, ends, amounts, logs)], _forms(rows), shape.groups, shape.measure, "window"
    )


def _stretches(table: TableHere, pattern: PatternFacts, plan: AnyPlan | None) -> CountsHere:
    """Of the other kinds: rows are counted (of graphs, what they hold) by stretches of time."""
    names = table.schema.names
    groups = tuple(name for name in pattern.group_by if name in names)
    layout = Layout.of(names, pattern.kind)
    owner = plan.owned(range(1))[0] if plan else layout.owner
    graphs = ["matches", "matches_log10"] if layout.graphs else []
    rows = table.every([*dict.fromkeys((*groups, owner, *graphs, "plan_hash"))], limits.PAGE_ROWS)
    times = rows[owner].cast(pa.int64()).to_pylist()
    if not times:
        return CountsHere([], {}, groups, NOUN, "")
    amounts = _numbers(rows["matches"], count=True) if graphs else [1] * rows.num_rows
    logs = rows["matches_log10"].to_pylist() if graphs else [0.0] * rows.num_rows
    first, last = min(times), max(times)
    unit = unit_of(moment(first), moment(last))
    size = unit.seconds * SECOND
    starts = [number_of_micros(time, unit.seconds) * size + MONDAY_MICROS for time in times]
    cut = map(Row, _keys(rows, groups), starts, [start + size for start in starts], amounts, logs)
    return CountsHere(summed(cut), _forms(rows), groups, NOUN, unit.name, (first, last))


def _forms(rows: pa.Table) -> Mapping[str | None, int]:
    return Counter(rows["plan_hash"].to_pylist())


def _numbers(values: pa.ChunkedArray, *, count: bool) -> list[Any]:
    """Counts as integers, other numbers as doubles."""
    kind = int if count else float
    return [None if value is None else kind(value) for value in values.to_pylist()]


def _logs(rows: pa.Table, companion: str | None, counts: Sequence[int | None]) -> list[float | None]:
    known = [None] * rows.num_rows if companion is None else rows[companion].to_pylist()
    return [
        log if log is not None else math.log10(count) if count is not None and count > 0 else None
        for log, count in zip(known, counts, strict=True)
    ]


def _keys(rows: pa.Table, groups: Sequence[str]) -> Iterable[Key]:
    if not groups:
        return [()] * rows.num_rows
    return zip(*[spark_texts(rows[name]) for name in groups], strict=True)
