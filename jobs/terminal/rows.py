"""Rows on a terminal: a table where it fits the width, else records with a line for each field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from trendlake.cep_core import AnyPlan
from trendlake.jobs.terminal.printing import NARROW, PLAIN_FRAME, cell, frame, listed, precision_of, shortened
from trendlake.pipelines.report.amounts import folded, time_text
from trendlake.pipelines.results.columns import IDS_OF_ROWS, Reading

PLAIN = 80
"""Characters of a line of rows where stdout is no terminal."""
FEWEST = 20
"""Characters that the values of a record have at least: a longer name has a line of its own."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column as it is printed. `ids`: empty, or what it names: the `row`, `one` event of each row or `several`."""

    name: str
    right: bool
    ids: str = ""


@dataclass(frozen=True)
class Rows:
    """Printed rows: `texts` has the cells of each. Columns that are `spare` may be left out where the others fill the
    width, which is said."""

    title: str | None
    columns: tuple[Column, ...]
    texts: tuple[tuple[str, ...], ...]
    spare: bool = False
    folds: bool = False
    """Whether some cell is the number of events of a list."""
    plain: int = PLAIN
    """Characters of a line where stdout is no terminal."""

    @classmethod
    def of_a_list(
        cls, names: Sequence[str], texts: Sequence[Sequence[str]], right: Sequence[str] = (), title: str | None = None
    ) -> Rows:
        """The list of a command, a line each where stdout is no terminal; `right`: columns of numbers."""
        columns = tuple(Column(name, right=name in right) for name in names)
        return cls(title, columns, tuple(map(tuple, texts)), plain=NARROW)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width if console.is_terminal else min(options.max_width, self.plain)
        options = options.update(max_width=width, width=width)
        if self.title is not None:
            yield from console.render(Text(self.title, style="italic" if console.is_terminal else ""), options)
        shown, missing = self._fitting(console, options)
        if shown is None:
            yield from console.render(self._records(width), options)
        else:
            yield from console.render(shown, options)
        if missing:
            note = f"left out: {', '.join(missing)}; `--ids` prints them"
        else:
            note = "`--ids` prints the ids of events" if self.folds else ""
        if note:
            note = note if shown else f"\n{note}"
            yield from console.render(Text(note), options)

    def _fitting(self, console: Console, options: ConsoleOptions) -> tuple[Table | None, list[str]]:
        """The table with the most columns that fits, and the columns that it leaves out; None where none fits, also
        without lines around its cells."""
        leaving = self._order_of_leaving() if self.spare else []
        forms = [(self, 0), *((self._shortest(), count) for count in range(len(leaving) + 1) if self.spare)]
        for lines in (frame(), PLAIN_FRAME):
            for rows, count in forms:
                table = rows._table(leaving[:count], lines)
                if _fits(table, console, options):
                    return table, [one.name for one in self.columns if one.name in leaving[:count]]
        return None, []

    def _order_of_leaving(self) -> list[str]:
        """Ids of rows, then those of one event, and last numbers of events; of each the last ones first."""
        sorts = "row", "one", "several"
        return [column.name for ids in sorts for column in reversed(self.columns) if column.ids == ids]

    def _shortest(self) -> Rows:
        ids = [bool(column.ids) for column in self.columns]
        texts = tuple(
            tuple(shortened(text) if is_id else text for text, is_id in zip(row, ids, strict=True))
            for row in self.texts
        )
        return replace(self, texts=texts)

    def _table(self, missing: Sequence[str], lines: Mapping[str, Any]) -> Table:
        there = [at for at, column in enumerate(self.columns) if column.name not in missing]
        table = Table(**lines)
        for at in there:
            column = self.columns[at]
            table.add_column(column.name, justify="right" if column.right else "left", overflow="fold")
        for row in self.texts:
            table.add_row(*[Text(row[at]) for at in there])
        return table

    def _records(self, width: int) -> Text:
        """Each row as lines `name  value`, an empty line between rows; a long value goes on below its beginning."""
        names = max((len(column.name) for column in self.columns), default=0)
        room = width - names - 2
        lines = []
        for at, row in enumerate(self.texts):
            lines += [""] if at else []
            for column, text in zip(self.columns, row, strict=True):
                if room >= FEWEST:
                    first, *rest = _wrapped(text, room, ", " if column.ids else "")
                    lines.append(f"{column.name:<{names}}  {first}".rstrip())
                    lines += [" " * (names + 2) + line for line in rest]
                else:
                    lines += _wrapped(column.name, width)
                    lines += [f"  {line}" for line in _wrapped(text, width - 2, ", " if column.ids else "")]
        return Text("\n".join(lines), no_wrap=True, overflow="ignore")


def _fits(table: Table, console: Console, options: ConsoleOptions) -> bool:
    wide = options.update(max_width=10_000, width=10_000)
    return Measurement.get(console, wide, table).maximum <= options.max_width


def _wrapped(text: str, width: int, between: str = "") -> list[str]:
    """`text` in lines of `width` cells at most, cut between words where that is possible; a long list of items with
    `between` among them, one a line."""
    if between and cell_len(text) > width:
        *others, last = text.split(between)
        return [line for item in (*(f"{one}{between.rstrip()}" for one in others), last) for line in _cut(item, width)]
    return _cut(text, width)


def _cut(text: str, width: int) -> list[str]:
    lines = Text(text).wrap(Console(width=width), width, overflow="fold")
    return [line.plain.rstrip() for line in lines] or [""]


def table_of(
    plan: AnyPlan,
    title: str,
    rows: Sequence[Row],
    columns: Sequence[str] | None = None,
    *,
    zone: str | None = None,
    ids: bool = False,
) -> Rows:
    """Result rows (all columns of `plan.result_schema`), of all `columns` or of those that people read, in the order in
    which they read them. Times are those of the clock of `zone`, with its offset; UTC without one. They have seconds
    where one of them is not a whole minute. `ids`: lists of event ids in full."""
    reading = Reading.of(plan)
    names = tuple(columns or reading.shown)
    texts = Texts(reading, zone, precision_of(row[name] for row in rows for name in names), ids)
    schema = plan.result_schema
    cells = tuple(tuple(texts.of(row, name) for name in names) for row in rows)
    folds = not ids and any(len(row[name] or ()) > 1 for row in rows for name in names if name in reading.listed_ids)
    described = tuple(_column(reading, name, schema.field(name).type, rows) for name in names)
    return Rows(title, described, cells, spare=columns is None and not ids, folds=folds)


def _column(reading: Reading, name: str, kind: pa.DataType, rows: Sequence[Row]) -> Column:
    ids = ""
    if name in reading.ids:
        several = pa.types.is_list(kind) and any(len(row[name] or ()) > 1 for row in rows)
        ids = "row" if name in IDS_OF_ROWS else "several" if several else "one"
    return Column(name, not (ids or pa.types.is_string(kind) or pa.types.is_list(kind)), ids)


def unknown_rows(title: str, rows: Sequence[Row], names: Sequence[str], *, ids: bool = False) -> Rows:
    """Rows whose columns may mean anything. `ids`: lists in full."""
    cells = (
        tuple(listed(value, None) if ids and isinstance(value, list) else cell(value) for value in row.values())
        for row in rows
    )
    return Rows(title, tuple(Column(name, right=False) for name in names), tuple(cells))


@dataclass(frozen=True)
class Texts:
    """Cells as people read them: durations as clocks, lists of event ids as their number, unless `ids`."""

    reading: Reading
    zone: str | None = None
    precision: str = "minutes"
    ids: bool = False

    def of(self, row: Row, name: str) -> str:
        value = row[name]
        if name in self.reading.listed_ids and value is not None:
            return listed(value, None) if self.ids else folded(value)
        if (unit := self.reading.unit(name)) and value is not None:
            return time_text(value, unit)
        return cell(value, row.get(f"{name}_log10"), self.zone, self.precision)
