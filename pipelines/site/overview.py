"""The numbers of a chart and a heat map, of all that a pattern has published: `Counts`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql.types import NumericType

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.windows import moment
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.report.bins import MONDAY_MICROS, SECOND, unit_of
from trendlake.pipelines.report.cells import Cells
from trendlake.pipelines.report.database import HALF, Column, Database, logarithm, stretch, summed
from trendlake.pipelines.report.facts import Measure, PatternFacts
from trendlake.pipelines.report.layout import Layout, present
from trendlake.pipelines.report.read_rows import NOUN
from trendlake.pipelines.report.shape import Shape, is_count
from trendlake.pipelines.results.provenance import PLAN_HASH

HEAT_COLUMNS = 60
OTHERS_DRAWN = 5
"""Measures that are drawn after the first."""
Key = tuple[str | None, ...]
"""A group: the text of each grouping column."""
FIRST = {
    "o": "DESC NULLS LAST",
    "ws": "ASC NULLS LAST",
    "we": "ASC NULLS LAST",
    "x": "DESC NULLS LAST",
    "l": "DESC NULLS LAST",
}
"""The order of windows: the largest first, of equal ones the earliest, as everywhere."""
RANK = "coalesce(l, CASE WHEN x = 0 THEN -1.0 END)"
"""The rank of a count: the log10, zero below all others; NULL only where nothing is known."""
SUM = f"""
    CASE WHEN unknown = 0 AND abs(high + low // {HALF}) < {HALF} THEN high * {HALF} + low END AS x,
    CASE WHEN unknown > 0 THEN l WHEN high + low > 0 THEN log10({HALF}::DOUBLE * high + low) END AS l"""
"""The sum of counts, exact up to 38 digits, and its log10."""


class Peak(NamedTuple):
    """The largest window of some: its ends in microseconds, its amount `x` and, of counts, the log10 `l`."""

    ws: int
    we: int
    x: int | float | None
    l: float | None  # noqa: E741 - as the column


class Ends(NamedTuple):
    """Of all windows, microseconds: first and last start, first and last end; how many there are."""

    first: int
    last: int
    first_end: int
    until: int
    windows: int


@dataclass(frozen=True)
class Counts:
    """All rows of a results table, in tables of `database`: `amounts` names that with a row for each group (`g0` ...)
    and window, its amount `x`, of counts the log10 `l`, and the rank `o`; `totals` is of each window, `peaks` of each
    group. `known`: whether each `x` is.

    A bucket is a number of seconds whose largest window stands for all, None where each stands for itself."""

    database: Database
    amounts: str
    known: bool
    forms: Mapping[str | None, int]
    """Rows by plan hash."""
    groups: tuple[str, ...]
    """The grouping columns."""
    measure: Measure
    unit: str
    """The name of a window."""
    extent: tuple[int, int] | None = None
    """Of rows that are counted by stretches of time: the first and the last moment of one, microseconds."""
    others: tuple[Measure, ...] = ()
    """Measures that are drawn too: of each a table like `totals`, of windows where it is known, called `other` and its
    number."""

    @classmethod
    def of(cls, database: Database, table: Table, pattern: PatternFacts, plan: AnyPlan | None) -> Counts | None:
        """Those of `table`; None where there is no row, or where all are of another kind, which the pattern has been
        of: such a row has no time of this one."""
        layout = Layout.of(table.names if plan is None else plan.result_schema.names, pattern.kind)
        if not {*layout.times} <= {*table.names}:
            return None
        if layout.windows:
            return _windows(database, table, pattern, plan)
        return _stretches(database, table, pattern, layout, plan)

    def __post_init__(self) -> None:
        totals = _largest(self.amounts, "ws, we")
        if self.measure.is_count:
            sums = f"SELECT ws, we, {SUM} FROM ({summed('ws, we', self.amounts, known=self.known)})"
            totals = f"SELECT *, {RANK} AS o FROM ({sums})"
        self.database.run(f"CREATE TEMP TABLE totals AS {totals}")
        if self.groups:
            peaks = _largest(self.amounts, ", ".join(_keys(self.groups)))
            self.database.run(f"CREATE TEMP TABLE peaks AS {peaks}")

    @property
    def ends(self) -> Ends:
        return Ends(*self.database.one("SELECT min(ws), max(ws), min(we), max(we), count(*) FROM totals"))

    @property
    def group_count(self) -> int:
        (count,) = self.database.one("SELECT count(*) FROM peaks")
        return int(count)

    def totals(self, bucket: int | None) -> list[Peak]:
        """Over all groups, in order of time."""
        return self._points("totals", [], bucket).get((), [])

    def other(self, number: int, bucket: int | None) -> list[Peak]:
        """As `totals`, of one of the `others`: its sum of counts, else its largest."""
        return self._points(f"other{number}", [], bucket).get((), [])

    def peaks(self, most: int) -> list[tuple[Key, Peak]]:
        """The largest groups with their largest windows, the largest first."""
        keys = _keys(self.groups)
        rows = self.database.all(f"SELECT ws, we, x, l, {', '.join(keys)} FROM {self._largest_groups(most)}")
        return [(tuple(key), Peak(ws, we, x, l)) for ws, we, x, l, *key in rows]  # noqa: E741 - as the column

    def points(self, most: int, bucket: int | None) -> Mapping[Key, list[Peak]]:
        """Of each of the largest groups, in order of time."""
        keys = _keys(self.groups)
        same = " AND ".join(f"a.{key} IS NOT DISTINCT FROM p.{key}" for key in keys)
        chosen = f"SELECT a.* FROM {self.amounts} a JOIN {self._largest_groups(most)} p ON {same}"
        return self._points(f"({chosen})", keys, bucket)

    def _largest_groups(self, most: int) -> str:
        order = ", ".join(["o DESC NULLS LAST", *(f"{key} NULLS FIRST" for key in _keys(self.groups))])
        return f"(FROM peaks ORDER BY {order} LIMIT {most})"

    def _points(self, rows: str, keys: Sequence[str], bucket: int | None) -> Mapping[Key, list[Peak]]:
        slot = "ws" if bucket is None else stretch("ws", bucket)
        slots = ", ".join([*keys, "slot"])
        slotted = _largest_of_few(f"(SELECT *, {slot} AS slot FROM {rows})", slots)
        points: dict[Key, list[Peak]] = defaultdict(list)
        asked = ", ".join(["ws", "we", "x", "l", *keys])
        for ws, we, x, l, *key in self.database.all(f"SELECT {asked} FROM ({slotted}) ORDER BY slot"):  # noqa: E741
            points[tuple(key)].append(Peak(ws, we, x, l))
        return points


def _keys(groups: Sequence[str]) -> list[str]:
    return [f"g{i}" for i in range(len(groups))]


def _largest(rows: str, keys: str) -> str:
    """The row of the largest window of each of `keys`; these may be more than fit in memory."""
    order = ", ".join(f"{name} {way}" for name, way in FIRST.items())
    return f"FROM {rows} QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {order}) = 1"


def _largest_of_few(rows: str, keys: str) -> str:
    """The same of few `keys`: an aggregate, which holds one row of each, takes less than a window function."""
    fields = ", ".join(f"'{name}': {name}" for name in FIRST)
    order = ", ".join(f"{name}, '{way}'" for name, way in FIRST.items())
    return f"SELECT unnest(arg_min({{{fields}}}, create_sort_key({order}))), {keys} FROM {rows} GROUP BY {keys}"


def _windows(database: Database, table: Table, pattern: PatternFacts, plan: AnyPlan | None) -> Counts | None:
    """Of kind trends: a row is a window's already."""
    shape = Shape.of(table.schema, pattern.group_by, tuple(pattern.returns)).read_as(Cells.of(plan, ()))
    name, count = shape.measure.name, shape.measure.is_count
    columns = {key: Column(group, "text") for key, group in zip(_keys(shape.groups), shape.groups, strict=True)}
    columns |= {"ws": Column("window_start"), "we": Column("window_end"), "h": Column(PLAN_HASH)}
    others = _others(table, shape.measures, name, Cells.of(plan, ()), counted=True)
    columns |= _columns_of_others(others, table.names)
    x, log = "1::HUGEINT", "0.0::DOUBLE"
    if name in shape.measures:
        columns["x"] = Column(name, "count" if count else "number")
        if companion := f"{name}_log10" in shape.companions and count:
            columns["l"] = Column(f"{name}_log10", "number")
        x = "x::HUGEINT" if count else "x"
        log = logarithm("x", "l" if companion else "NULL::DOUBLE") if count else "NULL::DOUBLE"
    rank = RANK if count else "x"
    own = [key for i in range(len(others)) for key in (f"m{i}", f"n{i}") if key in columns]
    amounts = ", ".join([*_keys(shape.groups), "ws", "we", "h", f"{x} AS x", f"{log} AS l", *own])
    database.load(table, columns, select=f"SELECT *, {rank} AS o FROM (SELECT {amounts} FROM batch)")
    forms = _forms(database)
    if not _keep_timed(database, "ws"):
        return None
    _total_others(database, others, "rows", columns)
    known = _all_known(database, "x")
    return Counts(database, "rows", known, forms, shape.groups, shape.measure, "window", others=others)


def _stretches(
    database: Database, table: Table, pattern: PatternFacts, layout: Layout, plan: AnyPlan | None
) -> Counts | None:
    """Of the other kinds: rows are counted (of graphs, what they hold) by stretches of time."""
    groups = present(pattern.group_by, table.names)
    keys = _keys(groups)
    columns = {key: Column(group, "text") for key, group in zip(keys, groups, strict=True)}
    columns |= {"t": Column(plan.owned(range(1))[0] if plan else layout.owner), "h": Column(PLAN_HASH)}
    if layout.graphs:
        columns |= {"x": Column("matches", "count"), "l": Column("matches_log10", "number")}
    cells = Cells.of(plan, ())
    measures = () if cells.reading is None or layout.graphs else cells.reading.measures
    others = _others(table, [name for name in measures if name not in groups], "", cells, counted=False)
    columns |= _columns_of_others(others, table.names)
    database.load(table, columns)
    forms = _forms(database)
    if not _keep_timed(database, "t"):
        return None
    known = _all_known(database, "x" if layout.graphs else "*")
    first, last = database.one("SELECT min(t), max(t) FROM rows")
    unit = unit_of(moment(first), moment(last))
    size = unit.seconds * SECOND
    start = f"{stretch('t', unit.seconds)} * {size} + {MONDAY_MICROS}"
    place = ", ".join([*keys, "ws", "we"])
    amount = f", x, {logarithm('x', 'l')} AS l" if layout.graphs else ""
    asked = ", ".join([*keys, f"{start} AS ws", f"{start} + {size} AS we"])
    cut = f"(SELECT {asked}{amount} FROM rows)"
    if layout.graphs:
        amounts = f"SELECT {place}, {SUM} FROM ({summed(place, cut, known=known)})"
    else:
        amounts = f"SELECT {place}, count(*)::HUGEINT AS x, log10(count(*)) AS l FROM {cut} GROUP BY {place}"
    database.run(f"CREATE TEMP TABLE amounts AS SELECT *, {RANK} AS o FROM ({amounts})")
    _total_others(database, others, f"(SELECT *, {start} AS ws, {start} + {size} AS we FROM rows)", columns)
    return Counts(database, "amounts", known, forms, groups, NOUN, unit.name, (first, last), others)


def _others(table: Table, names: Sequence[str], first: str, cells: Cells, *, counted: bool) -> tuple[Measure, ...]:
    """The measures among `names` that are drawn after the one called `first`: the first numbers. `counted`: whole
    DECIMAL numbers are counts, which are added up."""
    schema = table.schema
    numbers = [
        Measure(name, counted and is_count(schema[name].dataType), cells.unit(name), own=True)
        for name in names
        if name != first and name in table.names and isinstance(schema[name].dataType, NumericType)
    ]
    return tuple(numbers[:OTHERS_DRAWN])


def _columns_of_others(others: Sequence[Measure], names: Sequence[str]) -> dict[str, Column]:
    columns = {f"m{i}": Column(one.name, "count" if one.is_count else "number") for i, one in enumerate(others)}
    logs = {f"n{i}": Column(f"{one.name}_log10", "number") for i, one in enumerate(others) if one.is_count}
    return columns | {key: column for key, column in logs.items() if column.name in names}


def _total_others(database: Database, others: Sequence[Measure], rows: str, columns: Mapping[str, Column]) -> None:
    """Makes the tables of the `others`: of each window, or stretch of time, where the measure is known."""
    for i, one in enumerate(others):
        if one.is_count:
            log = logarithm(f"m{i}", f"n{i}" if f"n{i}" in columns else "NULL::DOUBLE")
            placed = f"(SELECT ws, we, m{i}::HUGEINT AS x, {log} AS l FROM {rows})"
            totals = f"SELECT *, {RANK} AS o FROM (SELECT ws, we, {SUM} FROM ({summed('ws, we', placed)}))"
        else:
            largest = f"SELECT ws, we, max(m{i}) AS x FROM {rows} WHERE m{i} IS NOT NULL GROUP BY ws, we"
            totals = f"SELECT *, NULL::DOUBLE AS l, x AS o FROM ({largest})"
        database.run(f"CREATE TEMP TABLE other{i} AS {totals}")


def _forms(database: Database) -> Mapping[str | None, int]:
    """Rows by plan hash."""
    return dict(database.all("SELECT h, count(*) FROM rows GROUP BY h"))


def _keep_timed(database: Database, time: str) -> int:
    """Leaves the rows that have a `time`, not those of other kinds; how many there are."""
    (rows, timed) = database.one(f"SELECT count(*), count({time}) FROM rows")
    if timed < rows:
        database.run(f"DELETE FROM rows WHERE {time} IS NULL")
    return int(timed)


def _all_known(database: Database, x: str) -> bool:
    """Whether no row lacks the amount `x`."""
    (rows, known) = database.one(f"SELECT count(*), count({x}) FROM rows")
    return bool(rows == known)
