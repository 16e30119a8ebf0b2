"""The results of kinds whose rows are found patterns, not counts of a window: how many there were over time, and the
longest of them. The database counts; `summary` ranks and draws the counts as it does a window's trends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql.types import ArrayType, StructType, TimestampNTZType, TimestampType

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.windows import moment
from trendlake.pipelines.report.amounts import Amount
from trendlake.pipelines.report.bins import Unit, number_of, unit_of
from trendlake.pipelines.report.cells import Cells
from trendlake.pipelines.report.database import HALF, Column, Database, logarithm, stretch, summed
from trendlake.pipelines.report.facts import Measure, PatternFacts, Point, ResultFacts, RowResult, Window
from trendlake.pipelines.report.layout import Layout, present
from trendlake.pipelines.report.on_clock import local
from trendlake.pipelines.report.summary import ROWS_RANKED, Columns, ResultRow, summarise
from trendlake.pipelines.report.tally import Tally

NOUN = Measure("matches", True)


@dataclass(frozen=True)
class Span:
    """The range that a picture shows: the run's rows from `since` to `until` (not included), and what came before from
    `begin` on. It is widened to whole stretches of `unit`, from `low` to `high`, so that each has all of its rows: as
    many as on the pattern's page."""

    begin: datetime
    since: datetime
    until: datetime

    @property
    def unit(self) -> Unit:
        return unit_of(self.begin, self.until)

    @property
    def low(self) -> datetime:
        return self.unit.ends(number_of(self.begin, self.unit.seconds))[0]

    @property
    def high(self) -> datetime:
        return self.unit.ends(number_of(self.until - timedelta(microseconds=1), self.unit.seconds))[1]


@dataclass(frozen=True)
class Matches:
    """The columns of found patterns, as `rows` of a database. Groups are text (g0 ...) and as stored (r0 ...). `t`
    says which stretch a row is of; `first` and `last` are its times. Graphs have the count `x` and its log10 `l`. The
    columns shown, `names`, are v0 ...; `ids` (i0 ...) tell rows apart."""

    groups: tuple[str, ...]
    names: tuple[str, ...]
    ids: tuple[str, ...]
    times: frozenset[str]
    layout: Layout
    columns: Mapping[str, Column]
    zone: str | None
    cells: Cells

    @classmethod
    def of(cls, schema: StructType, pattern: PatternFacts, layout: Layout, owner: str, plan: AnyPlan | None) -> Matches:
        """`plan`: that of the run, where it is known. The table may have columns of other forms."""
        own, cells = None if plan is None else plan.result_schema.names, Cells.of(plan, lists_of(schema))
        there = [name for name in schema.fieldNames() if own is None or name in own]
        groups = present(pattern.group_by, there)
        names = cells.in_order([name for name in there if name not in layout.hidden | set(groups)])
        ids = () if layout.named else tuple(name for name in ("match_id", "end_event") if name in there)
        columns = {f"g{i}": Column(name, "text") for i, name in enumerate(groups)}
        for letter, of in (("r", groups), ("v", names), ("i", ids)):
            columns |= {f"{letter}{i}": Column(name) for i, name in enumerate(of)}
        columns |= {"t": Column(owner), "first": Column(layout.times[0]), "last": Column(layout.times[1])}
        if layout.graphs:
            columns |= {"x": Column("matches", "count"), "l": Column("matches_log10", "number")}
        return cls(groups, names, ids, times_of(schema), layout, columns, pattern.time_zone, cells)

    def aliases(self, letter: str, of: Sequence[str]) -> list[str]:
        return [f"{letter}{i}" for i in range(len(of))]


def times_of(schema: StructType) -> frozenset[str]:
    """The columns that are loaded as microseconds."""
    return frozenset(
        field.name for field in schema.fields if isinstance(field.dataType, TimestampType | TimestampNTZType)
    )


def lists_of(schema: StructType) -> list[str]:
    """The columns of lists."""
    return [field.name for field in schema.fields if isinstance(field.dataType, ArrayType)]


def as_text(value: Any, is_time: bool, zone: str | None) -> Any:
    """A loaded value as it is shown: a time in UTC, or on the clock of `zone`, with its offset."""
    if not is_time or value is None:
        return value
    return str(local(moment(value), zone) if zone else moment(value).replace(tzinfo=None))


def read_counted(database: Database, loaded: Matches, span: Span, within: int | None) -> ResultFacts:
    """The `rows` of `database`, those of the widened span. `within`: of an automaton, where it is known, microseconds:
    its rows do not hold the time of their first event."""
    own = f"t >= {micros(span.since)} AND t < {micros(span.until)}"
    keys = loaded.aliases("g", loaded.groups)
    counted = _counted(database, loaded, keys, f"{stretch('t', span.unit.seconds)}", own)
    (rows,) = database.one(f"SELECT count(*) FROM rows WHERE {own}")
    facts = facts_of(loaded.groups, span, counted, loaded.names, _longest(database, loaded, own, within), rows)
    return replace(facts, ids=loaded.cells.ids(loaded.names))


def facts_of(
    groups: tuple[str, ...],
    span: Span,
    amounts: Iterable[tuple[tuple[Any, ...], Amount]],
    names: tuple[str, ...],
    longest: Sequence[RowResult],
    rows: int,
) -> ResultFacts:
    """`amounts`: by (group ..., stretch, whether it is the run's), where a key may be repeated; `names`, `longest`: as
    of `_longest`."""
    tallies: dict[tuple[Any, ...], Tally] = {}
    own: dict[tuple[Any, ...], Tally] = {}
    for (*place, is_own), amount in amounts:
        key = tuple(place)
        tallies.setdefault(key, Tally()).add(amount, ())
        if is_own:
            own.setdefault(key, Tally()).add(amount, ())
    unit = span.unit
    counted = [
        ResultRow(key[:-1], Window(*unit.ends(key[-1])), tally.total(), (), own[key].total() if key in own else None)
        for key, tally in tallies.items()
    ]
    facts = summarise(counted, Columns(groups, (NOUN.name,), NOUN))
    first, last = (number_of(at, unit.seconds) for at in (span.since, span.until - timedelta(microseconds=1)))
    fill = _filler(facts, unit, first, last)
    return replace(
        facts,
        series={key: fill(points) for key, points in facts.series.items()},
        others_series=fill(facts.others_series) if facts.others_series else (),
        rows=rows,
        measures=names,
        largest=tuple(longest),
        unit=unit.name,
        units=last - first + 1,
        since=span.since,
        step_seconds=float(unit.seconds),
    )


def _filler(facts: ResultFacts, unit: Unit, first: int, last: int) -> Callable[[tuple[Point, ...]], tuple[Point, ...]]:
    """Puts a zero where a series has no point, from the first stretch with any match on: no match is a count too.
    `first`, `last`: the run's stretches."""
    if facts.span_from is not None:
        first = min(first, number_of(facts.span_from, unit.seconds))
    windows = [Window(*unit.ends(number)) for number in range(first, last + 1)]

    def filled(points: tuple[Point, ...]) -> tuple[Point, ...]:
        known = {point.window: point for point in points}
        return tuple(known.get(window, Point(window, Amount(0))) for window in windows)

    # stretches by the hundred are thinned, and a lone one is drawn as bars: both stay as they are
    return filled if facts.bucket_seconds is None and facts.span_windows > 1 else lambda points: points


def _counted(
    database: Database, loaded: Matches, groups: Sequence[str], stretch_of_row: str, own: str
) -> list[tuple[tuple[Any, ...], Amount]]:
    """By group, stretch and whether it is the run's: how many matches; of graphs, how many they hold together."""
    keys = [*groups, "stretch", "own"]
    asked = [*groups, f"{stretch_of_row} AS stretch", f"{own} AS own"]
    if not loaded.layout.graphs:
        rows = database.all(f"SELECT {', '.join(asked)}, count(*) FROM rows GROUP BY ALL")
        return [(tuple(key), Amount.of_count(count)) for *key, count in rows]
    placed = f"(SELECT {', '.join(asked)}, x, {logarithm('x', 'l')} AS l FROM rows)"
    return [
        (tuple(key), Amount.of_count(None if unknown else high * HALF + low, log))
        for _, unknown, high, low, log, *key in database.all(summed(", ".join(keys), placed))
    ]


def _longest(database: Database, loaded: Matches, own: str, within: int | None) -> list[RowResult]:
    """The rows from whose first event to the last most time passes; of graphs, those with most matches."""
    start, end, rank = "first", "last", "last - first"
    if loaded.layout.lifetimes:  # a run's lifetime ends a fixed time after its first event
        start, end, rank = "first" if within is None else f"last - {within}", "first", "first - last"
    if loaded.layout.graphs:
        rank = "l"
    groups, values = loaded.aliases("g", loaded.groups), loaded.aliases("v", loaded.names)
    apart = [*loaded.aliases("i", loaded.ids), *values, *loaded.aliases("r", loaded.groups)]
    order = [f"{rank} DESC NULLS LAST", f"{end} DESC", *(f"{name} ASC NULLS FIRST" for name in apart), "rowid"]
    asked = ", ".join([f"{start} AS s", f"{end} AS e", "l" if loaded.layout.graphs else "NULL", *groups, *values])
    rows = []
    for s, e, log, *rest in database.all(
        f"SELECT {asked} FROM rows WHERE {own} ORDER BY {', '.join(order)} LIMIT {ROWS_RANKED}"
    ):
        shown = zip(loaded.names, rest[len(groups) :], strict=True)
        cells = tuple(
            (
                name,
                loaded.cells.amount(
                    name, as_text(value, name in loaded.times, loaded.zone), log if name == "matches" else None
                ),
            )
            for name, value in shown
        )
        rows.append(RowResult(tuple(rest[: len(groups)]), Window(moment(s), moment(e)), cells))
    return rows


def micros(at: datetime) -> int:
    """Since the epoch."""
    return (at - moment(0)) // timedelta(microseconds=1)
