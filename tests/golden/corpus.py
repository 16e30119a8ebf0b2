"""The golden corpus: fixed queries and events by kind, and a digest of the rows that the engine gives for them.

`{kind}.jsonl` holds queries that were drawn once (`tests.golden.draw`); the worked cases of `tests/cases` belong to the
corpus too. `digests.json` holds, by kind, the engine version and a digest of each case's rows. Only
`python -m tests.golden.write` writes that file.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support import intervals
from tests.support.cases import Case, load
from tests.support.engines import TIME, to_table
from trendlake.cep_core import PatternWarning, TrendlakeError, compile_query, run_plan
from trendlake.cep_core.errors import PatternErrors
from trendlake.cep_core.events.schema import schema_of

FOLDER = Path(__file__).parent
OF_LENGTH = re.compile(r"LENGTH|DURATION|LONGEST|FILTER|maximal")
"""A query about the length of trends."""
DIGESTS = FOLDER / "digests.json"
KINDS = ("trends", "matches", "automaton", "algebra", "match_recognize")

TYPES: Mapping[str, pa.DataType] = {
    "int": pa.int64(),
    "double": pa.float64(),
    "float": pa.float32(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": TIME,
    "date": pa.date32(),
    "decimal(20,0)": pa.decimal128(20, 0),
    "decimal(10,2)": pa.decimal128(10, 2),
}
"""The column types of the drawn corpus, by name. Cells of decimals and dates are text in the file, times are whole
microseconds."""


@dataclass(frozen=True)
class Entry:
    """One query and its events. `columns` gives attributes their types (None: as Arrow infers them)."""

    name: str
    query: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    columns: Mapping[str, pa.DataType] | None = None
    watermark: int | None = None
    sequence: str | None = None


def entries(kind: str) -> Iterator[Entry]:
    """The corpus of `kind`: the worked cases, then the drawn queries."""
    if kind == "algebra":
        yield from (_of_intervals(case) for case in intervals.load() if not case.upstream)
    else:
        more = {"trends": of_lengths, "matches": of_operators}.get(kind, list)
        cases = [*load(f"{kind}.yaml"), *more()]
        cases = [case for case in cases if not case.name.startswith("error-")]
        yield from (Entry(case.name, case.query, case.events) for case in cases)
    for line in (FOLDER / f"{kind}.jsonl").read_text().splitlines():
        one = json.loads(line)
        names = ("id", "type", "time", *one["columns"])
        types = [None, None, None, *one["columns"].values()]
        rows = [
            {name: _cell(cell, kind) for name, cell, kind in zip(names, row, types, strict=True)} for row in one["rows"]
        ]
        columns = {name: TYPES[kind] for name, kind in one["columns"].items()}
        yield Entry(one["name"], one["query"], rows, columns, one["watermark"], one["sequence"])


def of_lengths() -> list[Case]:
    """The worked cases of kind trends about lengths and chosen occurrences, in windows of UTC."""
    cases = [case for case in load("calendar_and_length.yaml") if OF_LENGTH.search(str(case.query))]
    chosen = [*(case for case in cases if "time_zone" not in case.query), *load("occurrences.yaml")]
    return [replace(case, name=f"lengths: {case.name}") for case in chosen]


def of_operators() -> list[Case]:
    """The worked cases of kind matches about operators."""
    return [replace(case, name=f"operators: {case.name}") for case in load("operators.yaml")]


def _of_intervals(case: intervals.Case) -> Entry:
    starts = any("start" in row for row in case.rows)
    rows = in_microseconds(case.rows) if starts else case.rows
    return Entry(case.name, case.query, rows, {"start": TIME} if starts else None)


def in_microseconds(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose `start`, seconds or None, is a time as the corpus has it."""
    return [{**row, "start": None if row.get("start") is None else row["start"] * 1_000_000} for row in rows]


def _cell(cell: Any, kind: str | None) -> Any:
    if isinstance(cell, str) and kind is not None:
        if kind.startswith("decimal"):
            return Decimal(cell)
        if kind == "date":
            return date.fromisoformat(cell)
    return cell


def answer(entry: Entry) -> str:
    """The engine's rows as text, one a line, sorted; for a refusal the codes of its errors.

    Doubles are cut to 12 significant digits, all else is exact; the first line holds the columns and their types.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)  # a condition without effect is no mistake here
        try:
            table = to_table(entry.rows, entry.columns)
            plan = compile_query(entry.query, schema_of(table, sequence=entry.sequence))
            result = run_plan(plan, table, None, entry.watermark)
        except PatternErrors as refusal:
            return "refused: " + ", ".join(sorted(error.code for error in refusal.errors))
        except TrendlakeError as refusal:
            return f"refused: {refusal.code}"
    lines = sorted("\t".join(_exact(cell) for cell in row.values()) for row in result.to_pylist())
    return "\n".join([str(dict(zip(result.schema.names, map(str, result.schema.types), strict=True))), *lines])


def _exact(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:.11e}"
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, list | tuple):
        return "[" + ",".join(_exact(one) for one in cell) + "]"
    if isinstance(cell, dict):
        return "{" + ",".join(f"{name}:{_exact(one)}" for name, one in cell.items()) + "}"
    return repr(cell)


@cache
def answers(kind: str) -> Mapping[str, str]:
    """By the name of a case its rows, as `answer` gives them."""
    return {entry.name: answer(entry) for entry in entries(kind)}


def digests(kind: str) -> dict[str, str]:
    """By the name of a case 12 hex digits of its rows."""
    return {name: hashlib.sha256(text.encode()).hexdigest()[:12] for name, text in answers(kind).items()}


def total(cases: Mapping[str, str]) -> str:
    """The digest of a kind: 16 hex digits of all its cases."""
    return hashlib.sha256(json.dumps(cases, sort_keys=True).encode()).hexdigest()[:16]
