"""HTML for notebooks, in the colours of the page around it, light or dark. No script, and nothing is fetched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from html import escape
from typing import Any

import pyarrow as pa

from trendlake.cep_core import AnyPlan, draw, explain
from trendlake.cep_core.drawing import INHERITED_STYLE
from trendlake.jobs.terminal.printing import cell, precision_of
from trendlake.jobs.terminal.rows import Texts
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.report.amounts import Amount
from trendlake.pipelines.report.facts import Point, Window
from trendlake.pipelines.report.sparkline import sparkline
from trendlake.pipelines.results.columns import Reading, time_of

STYLE = """\
.trendlake{color:inherit;overflow-x:auto;font-family:system-ui,sans-serif;font-size:13px;line-height:1.5}
.trendlake table{border-collapse:collapse;margin:.4em 0;color:inherit;font:inherit}
.trendlake th,.trendlake td{padding:.1em .7em;text-align:left;white-space:nowrap}
.trendlake thead th{border-bottom:1px solid currentColor}
.trendlake .number{text-align:right;font-variant-numeric:tabular-nums}
.trendlake pre{margin:.4em 0;background:none;color:inherit}
.trendlake svg{max-width:100%;height:auto}
.trendlake .spark{height:26px;vertical-align:middle}
.trendlake .spark path{fill:none;stroke:currentColor;stroke-width:1.5;stroke-linejoin:round}
.trendlake .spark circle{fill:currentColor}"""
SHOWN = 10
"""Rows of a table that are shown."""
WIDTH = 60
"""Characters of a value that are shown."""


def pattern(name: str, description: str, plan: AnyPlan) -> str:
    """Its name and description, the automaton, and the plan in words, with its cost."""
    about = f"<p>{escape(description)}</p>" if description else ""
    picture = f"<style>{INHERITED_STYLE}</style>{draw(plan, name, style=False)}"
    return page(f"<b>{escape(name)}</b>, kind {plan.kind}{about}{picture}<pre>{escape(explain(plan))}</pre>")


def rows(title: str, table: pa.Table, plan: AnyPlan | None, zone: str | None = None) -> str:
    """How many rows there are, the first of them as `trendlake show` prints them, and the first count by window as a
    line."""
    head = f"<b>{escape(title)}</b>: {plural(table.num_rows, 'row')}"
    reading = None if plan is None else Reading.of(plan)
    names = [*table.column_names] if reading is None else [*reading.chosen(table.column_names)]
    shown = table.slice(0, SHOWN).to_pylist()
    precision = precision_of(row[name] for row in shown for name in names)
    body = ([_cell(reading, row, name, zone, precision) for name in names] for row in shown)
    more = f"<p>and {table.num_rows - SHOWN:,} more</p>" if table.num_rows > SHOWN else ""
    line = "" if plan is None else _count_by_window(table, plan)
    numbers = [_is_number(table.schema.field(name).type) for name in names]
    return page(f"{head}{line}{table_of(names, body, numbers)}{more}")


def _count_by_window(table: pa.Table, plan: AnyPlan) -> str:
    """The line of the first count; nothing where there is none, or it is too large to be added up."""
    time = time_of(plan)
    counts = [name for name in table.column_names if f"{name}_log10" in plan.result_schema.names]
    if not counts or time not in table.column_names or table[counts[0]].null_count or table.num_rows == 0:
        return ""
    sums: dict[datetime, Decimal] = defaultdict(Decimal)
    for start, count in zip(table[time].to_pylist(), table[counts[0]].to_pylist(), strict=True):
        sums[start] += count
    points = [Point(Window(start, start), Amount.of_count(sums[start])) for start in sorted(sums)]
    line = sparkline(points, False, points[0].window.start, points[-1].window.start, lambda before, after: False)
    return f"<div>{escape(counts[0])} by {escape(time)}: {line}</div>"


def table_of(names: Sequence[str], body: Iterable[Sequence[str]], numbers: Sequence[bool]) -> str:
    classes = [' class="number"' if number else "" for number in numbers]
    head = "".join(f"<th{kind}>{escape(name)}</th>" for name, kind in zip(names, classes, strict=True))
    rows = ("".join(f"<td{kind}>{escape(text)}</td>" for text, kind in zip(row, classes, strict=True)) for row in body)
    lines = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _cell(reading: Reading | None, row: Mapping[str, Any], name: str, zone: str | None, precision: str) -> str:
    text = cell(row[name], None, zone, precision) if reading is None else Texts(reading, zone, precision).of(row, name)
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"


def page(body: str) -> str:
    return f'<div class="trendlake"><style>{STYLE}</style>{body}</div>'
