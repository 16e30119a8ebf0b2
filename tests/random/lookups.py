"""Random reference tables, and random patterns that look their columns up; does the engine give what loops give?"""

from __future__ import annotations

import random
import time
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.random import algebra, automata, matches, row_patterns, strategies
from tests.reference.lookup import RepeatedError, looked_up
from tests.support.engines import TIME, to_table
from tests.support.intervals import table_of
from tests.support.row_patterns import table_of as row_table_of
from trendlake.cep_core import TrendlakeError, compile_query, run_plan
from trendlake.cep_core.events import lookup as engine
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.lookup import References, look_up
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.load import load_pattern
from trendlake.cep_core.lookups import tables_of, with_lookups

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONE = "America/Sao_Paulo"
"""Its clocks were set forward at midnight: 2018-11-04 has none."""
TABLE = "customers"

KEYS: Mapping[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "int": (pa.int64(), (0, 1, 2, -1, 2**53, None)),
    "small": (pa.int16(), (0, 1, 2, -1, None)),
    "double": (pa.float64(), (0.0, -0.0, 1.0, 1.5, float("nan"), None)),
    "float": (pa.float32(), (0.0, -0.0, 1.0, 1.5, float("nan"), None)),
    "decimal": (pa.decimal128(6, 2), (Decimal("0.00"), Decimal("1.00"), Decimal("1.50"), Decimal("0.10"), None)),
    "long": (pa.decimal128(30, 3), (Decimal("1.000"), Decimal("1.500"), Decimal("9007199254740993.000"), None)),
    "text": (pa.string(), ("", "a", "A", "ä", None)),
    "large": (pa.large_string(), ("", "a", "A", "ä", None)),
    "coded": (pa.dictionary(pa.int32(), pa.string()), ("", "a", "A", "ä", None)),
    "flag": (pa.bool_(), (True, False, None)),
    "date": (pa.date32(), (date(2018, 11, 4), date(2018, 11, 5), None)),
    "time": (TIME, (EPOCH, EPOCH + timedelta(seconds=1), None)),
}
COMPARED = (
    *(("int", other) for other in ("int", "small", "double", "decimal", "long")),
    *(("small", other) for other in ("float", "long")),
    *(("double", other) for other in ("double", "decimal", "int", "float")),
    *(("decimal", other) for other in ("decimal", "long", "int")),
    *(("text", other) for other in ("text", "large", "coded")),
    *(("coded", other) for other in ("text", "coded", "large")),
    ("long", "long"),
    ("long", "decimal"),
    ("flag", "flag"),
    ("date", "date"),
    ("time", "time"),
)
DATES = tuple(date(2018, 11, day) for day in range(2, 8))
MOMENTS = tuple(
    datetime(2018, 11, day, hour, 30 * (hour % 2), tzinfo=UTC) for day in range(2, 8) for hour in (0, 2, 3, 23)
)


@dataclass(frozen=True)
class Question:
    """Events and rows with their types, and a lookup as a pattern writes it."""

    events: list[dict[str, Any]]
    rows: list[dict[str, Any]]
    types: dict[str, pa.DataType]
    row_types: dict[str, pa.DataType]
    lookup: dict[str, Any]
    zone: str | None
    in_doubles: bool


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """A reference table and the events that read it."""
    numbers = random.Random(draw(st.integers(0, 2**32)))
    pick = numbers.choice
    parts = [pick(COMPARED) for _ in range(pick((1, 1, 1, 2)))]
    types = {f"k{i}": KEYS[left][0] for i, (left, _) in enumerate(parts)}
    row_types = {f"r{i}": KEYS[right][0] for i, (_, right) in enumerate(parts)}
    types |= {"event_type": pa.string(), "event_time": TIME, "day": pa.date32(), "moment": TIME}
    row_types |= {"a": pa.string(), "b": pa.float64()}
    lookup: dict[str, Any] = {"table": TABLE, "columns": ["a", {"other": "b"}]}
    lookup["key"] = {f"k{i}": f"r{i}" for i in range(len(parts))}
    valid = numbers.randrange(4)
    since, until = pick((pa.date32(), TIME)), pick((pa.date32(), TIME))
    if valid:
        row_types |= {"since": since, "until": until}
        lookup |= {"valid_from": "since"} | ({"valid_to": "until"} if valid > 1 else {})
        lookup |= pick(({}, {"as_of": "day"}, {"as_of": "moment"}, {}))
    if numbers.randrange(5) == 0:
        lookup["of"] = ["A"]

    def value(kind: pa.DataType) -> Any:
        return pick((*(DATES if pa.types.is_date(kind) else MOMENTS), None))

    def row() -> dict[str, Any]:
        cells = {f"r{i}": pick(KEYS[right][1]) for i, (_, right) in enumerate(parts)}
        cells |= {"a": pick(("x", "y", None)), "b": pick((1.0, float("nan"), None))}
        return cells | ({"since": value(since), "until": value(until)} if valid else {})

    rows = [row() for _ in range(numbers.randrange(5))]
    rows += [dict(pick(rows)) for _ in range(numbers.randrange(2)) if rows]
    numbers.shuffle(rows)
    events = [
        {f"k{i}": pick(KEYS[left][1]) for i, (left, _) in enumerate(parts)}
        | {"event_type": pick("AB"), "event_time": pick(MOMENTS), "day": pick((*DATES, None))}
        | {"moment": pick((*MOMENTS, None))}
        for _ in range(numbers.randrange(8))
    ]
    of_keys = [*list(types.values())[: len(parts)], *list(row_types.values())[: len(parts)]]
    in_doubles = any(map(pa.types.is_floating, of_keys))
    return Question(events, rows, types, row_types, lookup, pick((None, ZONE)), in_doubles)


def table(rows: list[dict[str, Any]], types: Mapping[str, pa.DataType]) -> pa.Table:
    """Rows as Arrow, in two pieces."""
    arrays = {}
    for name, kind in types.items():
        half = len(rows) // 2
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        pieces = [pa.array([row[name] for row in part], plain) for part in (rows[:half], rows[half:])]
        arrays[name] = pa.chunked_array([one.cast(kind) for one in pieces], kind)
    return pa.table(arrays)


def disagreement(question: Question, tally: Counter[str]) -> list[str]:
    """How the engine's columns and counts differ from those of the loops."""
    query = {"kind": "trends", "pattern": "A", "return": {"n": "COUNT(*)"}, "within": "1 day"}
    query |= {"lookup": {"c": question.lookup}} | ({"time_zone": question.zone} if question.zone else {})
    events, rows = table(question.events, question.types), table(question.rows, question.row_types)
    schema = with_lookups(schema_of(events), load_pattern(query), tables_of({TABLE: rows}))
    (lookup,) = schema.lookups
    dates = any(pa.types.is_date(question.row_types.get(name, TIME)) for name in ("since", "until"))
    dates = dates or question.lookup.get("as_of") == "day"
    wanted: Any
    try:
        zone = question.zone if dates else None
        wanted = looked_up(question.events, question.rows, question.lookup, zone, in_doubles=question.in_doubles)
    except RepeatedError:
        wanted = "LOOKUP_REPEATED"
    try:
        enriched, reference, matching = look_up(events, lookup, {TABLE: rows})
    except TrendlakeError as error:
        tally["refused"] += 1
        return [] if error.code == wanted else [f"{error}, expected {wanted}"]
    if isinstance(wanted, str):
        return [f"expected {wanted}"]
    tally["looked up"] += 1
    report = reference.report(Columns(events), matching)
    actual = [str((row["a"], row["other"])) for row in enriched.to_pylist()]
    expected = [str((row["a"], row["other"])) for row in wanted.events]
    lines = [f"event {i}: {a}, expected {e}" for i, (a, e) in enumerate(zip(actual, expected, strict=True)) if a != e]
    few = References({TABLE: rows}).with_keys_of(events, schema)
    by_few = look_up(events, lookup, few)[0]
    if by_few.schema != enriched.schema or str(by_few.to_pylist()) != str(enriched.to_pylist()):
        lines.append(f"other columns by the {few[TABLE].num_rows} rows with the events' keys")
    if few[TABLE].num_rows < rows.num_rows:
        tally["fewer rows"] += 1
    counts = (report.missing, report.unused, sorted(count for _, count in report.examples))
    expected_counts = (wanted.missing, wanted.unused, sorted(wanted.by_key.values()))
    return [*lines, *([] if counts == expected_counts else [f"counts {counts}, expected {expected_counts}"])]


# --- patterns


@st.composite
def patterns(draw: st.DrawFn) -> tuple[dict[str, Any], pa.Table, int, int | None]:
    """A query of one of five kinds, its events, a seed for the table, and the watermark."""
    kind = draw(st.integers(0, 4))
    number, watermark = draw(st.integers(0, 2**32)), None
    if kind == 0:
        query, rows = draw(strategies.questions())
        events = to_table(rows, strategies.COLUMNS)
    elif kind == 1:
        query, rows = draw(matches.any_questions())
        events = to_table(rows, strategies.COLUMNS)
    elif kind == 2:
        one = draw(automata.cases())
        query, watermark = one.query, one.watermark
        timed = [{**row, "t": _time(row.get("t"))} for row in one.rows]
        events = to_table(timed, {**automata.COLUMNS})
    elif kind == 3:
        of_algebra = draw(algebra.cases())
        query, events = of_algebra.query, table_of(of_algebra.rows, algebra.COLUMNS)
    else:
        case = draw(row_patterns.cases())
        query = case.query
        rows = [{key: cell for key, cell in row.items() if key != "event_id"} for row in case.rows]
        events = row_table_of(rows or [row_patterns._NONE], row_patterns.TYPES).slice(0, None if rows else 0)
    return query, events, number, watermark


def _time(seconds: Any) -> Any:
    return seconds if seconds is None or isinstance(seconds, datetime) else EPOCH + timedelta(seconds=float(seconds))


def with_lookup(query: Mapping[str, Any], events: pa.Table, number: int) -> tuple[Any, pa.Table, pa.Table, pa.Table]:
    """The query with a lookup of some attributes of its events; the events without them; the reference table; and the
    events as loops enrich them."""
    numbers = random.Random(number)
    roles = {"event_id", "event_time", "event_type", query.get("interval_start"), "sequence"}
    names = [name for name in events.column_names if name not in roles]
    taken = sorted(numbers.sample(names, numbers.randint(1, min(3, len(names)))))
    rows = events.to_pylist()
    times = [row["event_time"] for row in rows] or [EPOCH]
    valid = numbers.randrange(3)
    table_rows: list[dict[str, Any]] = []
    spans: dict[int, datetime] = {}
    for _ in range(numbers.randrange(7)):
        key = numbers.randrange(3)
        if key in spans and not valid:
            continue
        since = numbers.choice(times) if valid else EPOCH
        if key in spans:
            since = max(since, spans[key])
        until = since + timedelta(seconds=numbers.randint(1, 6))
        spans[key] = until
        of = numbers.choice(rows) if rows else dict.fromkeys(taken)
        table_rows.append({"id": key, **{name: of[name] for name in taken}, "since": since, "until": until})
    numbers.shuffle(table_rows)
    for row in rows:
        row["key"] = numbers.choice((0, 1, 2, 3, None))
    lookup: dict[str, Any] = {"table": TABLE, "key": {"key": "id"}, "columns": [{name: f"{name}_"} for name in taken]}
    if valid:
        lookup |= {"valid_from": "since"} | ({"valid_to": "until"} if valid == 2 else {})
    types = {field.name: field.type for field in events.schema}
    renamed = [{f"{name}_" if name in taken else name: cell for name, cell in row.items()} for row in table_rows]
    enriched = looked_up(rows, renamed, lookup).events
    reference = pa.table(
        {"id": pa.array([row["id"] for row in renamed], pa.int64())}
        | {f"{name}_": pa.array([row[f"{name}_"] for row in renamed], types[name]) for name in taken}
        | {name: pa.array([row[name] for row in renamed], TIME) for name in ("since", "until")}
    )
    keys = pa.array([row["key"] for row in rows], pa.int64())
    whole = pa.table(
        {name: pa.array([row[name] for row in enriched], kind) for name, kind in types.items()} | {"key": keys}
    )
    stripped = whole.drop_columns(taken)
    return {**query, "lookup": {"customer": lookup}}, stripped, reference, whole


def pattern_disagreement(question: tuple[Any, pa.Table, int, int | None], tally: Counter[str]) -> list[str]:
    """How the rows of a pattern with a lookup differ from its rows over enriched events."""
    query, events, number, watermark = question
    sequence = "sequence" if "sequence" in events.column_names else None
    looking, stripped, reference, whole = with_lookup(query, events, number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = _answer(lambda: compile_query(query, schema_of(whole, sequence=sequence)), whole, watermark, {})
        tables = {TABLE: reference}

        def compiled() -> Any:
            return compile_query(looking, schema_of(stripped, sequence=sequence), tables_of(tables))

        actual = _answer(compiled, stripped, watermark, tables)
    tally[
        f"{query.get('kind', 'trends')}, {'an error' if isinstance(wanted, str) else 'rows' if wanted else 'no rows'}"
    ] += 1
    return [] if wanted == actual else [f"expected {wanted}", f"found {actual}", f"table {reference.to_pylist()}"]


def _answer(plan: Any, events: pa.Table, watermark: int | None, tables: Mapping[str, pa.Table]) -> Any:
    """Sorted rows, or the code of an error."""
    try:
        compiled = plan()
        table = run_plan(compiled, events, None, watermark, tables)
    except TrendlakeError as error:
        return error.code
    return sorted(str(sorted(row.items())) for row in table.to_pylist())


CHUNK = 200


def search(seconds: float, first: int) -> int:
    """Tables and patterns from the seed `first` on, until the time is over or one differs; the exit status. Every other
    seed uses compiled code for few events, too."""
    until, number, tally = time.monotonic() + seconds, first, Counter[str]()
    while time.monotonic() < until:
        number += 1
        engine.FEW = -1 if number % 2 else 10_000
        for drawn, compare in ((questions(), disagreement), (patterns(), pattern_disagreement)):
            failure = _chunk(number, drawn, compare, tally, until)
            if failure is not None:
                print(f"# seed {number}\n{failure}")
                return 1
    counts = ", ".join(f"{name}: {count:,}" for name, count in sorted(tally.items()))
    print(f"# lookups from seed {first + 1} to {number} as loops give them; {counts}")
    return 0


def _chunk(number: int, drawn: Any, compare: Any, tally: Counter[str], until: float) -> str | None:
    failures: list[str] = []

    @seed(number)
    @settings(
        max_examples=CHUNK,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(drawn)
    def run(one: Any) -> None:
        if time.monotonic() < until and not failures and (lines := compare(one, tally)):
            failures.append("\n".join([str(one), *lines]))

    run()
    return failures[0] if failures else None
