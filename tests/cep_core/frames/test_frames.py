"""Frames of other libraries: the same rows as of the same events in an Arrow table, as a frame of the same library."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import trendlake
from tests.support import cases, intervals, row_patterns
from tests.support.engines import to_table
from trendlake.cep_core import PatternErrors, TrendlakeError, evaluate
from trendlake.cep_core.errors import BadEventsError
from trendlake.cep_core.frames import library_of


class Capsule:
    """A frame of a library that nobody knows: it has Arrow's protocol and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def with_arrow_types(table: pa.Table) -> pd.DataFrame:
    return table.to_pandas(types_mapper=pd.ArrowDtype)


FORMS: Mapping[str, tuple[Callable[[pa.Table], Any], type]] = {
    "pandas": (lambda table: table.to_pandas(), pd.DataFrame),
    "pandas of Arrow's types": (with_arrow_types, pd.DataFrame),
    "polars": (lambda table: pl.DataFrame(table), pl.DataFrame),
    "lazy": (lambda table: pl.DataFrame(table).lazy(), pl.LazyFrame),
    "table": (lambda table: table, pa.Table),
    "batch": (lambda table: table.combine_chunks().to_batches()[0], pa.Table),
    "reader": (lambda table: table.to_reader(max_chunksize=1), pa.RecordBatchReader),
    "dataset": (lambda table: ds.dataset(table), pa.Table),
    "scanner": (lambda table: ds.dataset(table).scanner(), pa.Table),
    "duckdb": (lambda table: duckdb.from_arrow(table), pa.Table),
    "capsule": (Capsule, pa.Table),
}


def read(frame: Any) -> pa.Table:
    """A frame as a table, by its own library."""
    if isinstance(frame, pd.DataFrame):
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame.to_arrow()
    if isinstance(frame, duckdb.DuckDBPyRelation):
        return frame.to_arrow_table()
    if isinstance(frame, pa.RecordBatchReader):
        return frame.read_all()
    return frame.to_table() if isinstance(frame, ds.Dataset | ds.Scanner) else pa.table(frame)


def shown(rows: pa.Table) -> list[str]:
    """Rows in an order of their own."""
    return sorted(repr(row) for row in rows.to_pylist())


def worked() -> Iterator[tuple[str, Mapping[str, Any], pa.Table]]:
    """The worked cases of kinds whose events have a type; those whose query or events are a mistake too."""
    for file in ("trends.yaml", "matches.yaml", "automaton.yaml", "having.yaml", "derive.yaml", "operators.yaml"):
        for case in cases.load(file):
            yield f"{file}: {case.name}", case.query, to_table(case.events)
    for one in intervals.load():
        if not one.upstream:
            yield f"algebra: {one.name}", one.query, intervals.table_of(one.rows)
    for row_case in row_patterns.load():
        if row_case.events:
            yield f"row patterns: {row_case.name}", row_case.query, row_patterns.table_of(row_case.events)


def outcome(run: Callable[[], pa.Table]) -> Any:
    """The rows, or the error's text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return shown(run())
        except TrendlakeError as error:
            return f"{type(error).__name__}: {error.message}"


@pytest.mark.random
@pytest.mark.parametrize("form", FORMS)
def test_worked_cases(form: str) -> None:
    """Each form has its share of the cases, another one each: all of them come to all cases in time."""
    make, kind = FORMS[form]
    at = list(FORMS).index(form)
    cases_with_events = [one for one in worked() if one[2].num_rows]
    for name, query, table in cases_with_events[at :: len(FORMS)]:
        expected = outcome(lambda query=query, table=table: evaluate(query, read(make(table))))  # type: ignore[misc]
        frames: list[Any] = []

        def run(query: Any = query, table: pa.Table = table, frames: list[Any] = frames) -> pa.Table:
            frames.append(trendlake.evaluate(query, make(table)))
            return read(frames[0])

        assert outcome(run) == expected, name
        assert all(isinstance(frame, kind) for frame in frames)


FALLING = """
kind: trends
pattern: Tick S+
where: [S.price > NEXT(S).price]
group_by: [symbol]
return: {trends: COUNT(*), longest: MAX(LENGTH(*)), least: MIN(S.n)}
within: 1 hour
"""


def ticks(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "event_time": pd.to_datetime([f"2026-01-05 09:0{i}" for i in range(6)], utc=True),
            "price": [3.0, 2.0, 1.0, 5.0, 4.0, 3.0],
            "n": [1, 2, 3, 4, 5, 6],
            "open": [True, False, True, True, False, True],
            "symbol": list("aabbab"),
            **columns,
        }
    )


def test_types_follow_from_the_pattern() -> None:
    """Of rows and of no rows the same types; with Arrow's types in, Arrow's types out."""
    for events in (ticks(), ticks(symbol=[None] * 6).astype({"symbol": object}), ticks().iloc[:0]):
        rows = trendlake.evaluate(FALLING, events)
        assert [str(kind) for kind in rows.dtypes] == [
            "object",
            "datetime64[us, UTC]",
            "datetime64[us, UTC]",
            "decimal128(38, 0)[pyarrow]",
            "float64",
            "int64[pyarrow]",
            "int64[pyarrow]",
        ]
    arrow = trendlake.evaluate(FALLING, with_arrow_types(pa.Table.from_pandas(ticks())))
    assert all(isinstance(kind, pd.ArrowDtype) for kind in arrow.dtypes)


def test_rows_are_in_order() -> None:
    events = ticks(event_time=pd.to_datetime([f"2026-01-05 {9 - i}:00" for i in range(6)], utc=True))
    rows = trendlake.evaluate(FALLING, events)
    assert list(rows["window_start"]) == sorted(rows["window_start"])
    assert len(rows) == 6


def test_an_event_without_id_and_type() -> None:
    """A row is of the pattern's only type, and its number is its id."""
    query = {"kind": "matches", "pattern": "SEQ(Tick a, Tick b)", "where": ["a.n = 2", "b.n = 5"], "within": "1 hour"}
    rows = trendlake.evaluate(query, ticks())
    assert [list(map(int, ids)) for ids in (*rows["a"], *rows["b"])] == [[1], [4]]
    for table in (ticks(event_id=list("uvwxyz")), ticks(own=list("uvwxyz"))):
        named = trendlake.evaluate(query, table, event_id="event_id" if "event_id" in table else "own")
        assert [list(ids) for ids in (*named["a"], *named["b"])] == [["v"], ["y"]]


def test_columns_that_are_not_read_are_not_converted() -> None:
    """Objects that Arrow has no type for, and columns without a name that a pattern could have."""
    odd = ticks(mixed=[1, "x", None, 2.5, {}, []]).assign(**{"": 1}).rename(columns={"": 7})
    pd.testing.assert_frame_equal(trendlake.evaluate(FALLING, odd), trendlake.evaluate(FALLING, ticks()))


def test_objects_whose_type_shows_late() -> None:
    """Whole numbers, and a double after those by which the type was known."""
    prices = np.array([*range(2_000), 0.5], object)
    events = pd.DataFrame({"event_time": pd.date_range("2026-01-05", periods=2_001, freq="s"), "price": prices})
    query = {"kind": "trends", "pattern": "Tick S", "return": {"least": "MIN(S.price)", "most": "MAX(S.price)"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = trendlake.evaluate({**query, "within": "1 day"}, events)
        assert (rows["least"][0], rows["most"][0]) == (0.0, 1999.0)
        events["price"] = np.array([*[None] * 1_999, 2, 0.5], object)
        rows = trendlake.evaluate({**query, "within": "1 day"}, events)
        assert (rows["least"][0], rows["most"][0]) == (0.5, 2.0)


@pytest.mark.parametrize(
    ("events", "options", "message"),
    [
        (
            ticks(price=[1.0, 2.0, "n/a", 3.0, 4.0, 5.0]),
            {},
            "is of objects: pandas holds numbers and texts (row 3: 'n/a') in it",
        ),
        (ticks().rename(columns={"event_time": "at"}), {}, "no column 'event_time' (event_time) in the frame. Its col"),
        (ticks().rename(columns={"event_time": "at"}), {}, 'pass event_time="at"'),
        (ticks().set_index("event_time"), {}, "reset_index()"),
        (ticks(event_time=["2026-01-05"] * 6), {}, "column 'event_time' is not a timestamp but string"),
        (ticks(), {"event_time": "n"}, "column 'n' is not a timestamp but int64"),
        (ticks(), {"event_type": "kind"}, "no column 'kind' (event_type)"),
        (ticks(), {"sequence": "prise"}, "did you mean 'price'?"),
        (ticks(), {"event_id": "ident"}, "no column 'ident' (event_id)"),
        (pd.concat([ticks(), ticks()[["n"]]], axis=1), {}, "the frame has two columns 'n'"),
    ],
)
def test_mistakes_of_a_frame(events: pd.DataFrame, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadEventsError) as failure:
        trendlake.evaluate(FALLING, events, **options)
    assert message in str(failure.value)


def test_a_pattern_of_several_types_needs_them() -> None:
    query = {"kind": "matches", "pattern": "SEQ(Tick a, Tock b)", "within": "1 hour"}
    with pytest.raises(BadEventsError) as failure:
        trendlake.evaluate(query, ticks())
    assert "reads 2 event types and the frame has no column 'event_type'" in str(failure.value)


@pytest.mark.parametrize("frame", [[1], {"price": [1]}, None, "trades.csv", 3])
def test_what_is_no_frame(frame: object) -> None:
    with pytest.raises(TypeError, match="evaluate takes a frame of pandas, polars, pyarrow or DuckDB"):
        trendlake.evaluate(FALLING, frame)


def test_text_of_a_pattern_has_places() -> None:
    with pytest.raises(PatternErrors) as failure:
        trendlake.evaluate(FALLING.replace("S.price >", "S.prize >"), ticks())
    assert str(failure.value.errors[0].place) == "<pattern>:4:9"
    loaded = trendlake.load_pattern(FALLING)
    pd.testing.assert_frame_equal(trendlake.evaluate(loaded, ticks()), trendlake.evaluate(FALLING, ticks()))


FAMILY = FALLING.replace("where: [", "where: [S.price > $low, S.n < $cap, ")


def test_a_family_of_a_frame() -> None:
    """Its rows are those of the same rows as lists, a member each; times and dates are moments."""
    frame = pd.DataFrame({"low": [1.5, 2.0, None], "cap": [6, 7, 8]})
    rows = trendlake.evaluate(FAMILY, ticks(), for_each=frame)
    alone = [
        trendlake.evaluate(FAMILY, ticks(), for_each={"low": [low], "cap": [cap]}) for low, cap in ((1.5, 6), (2.0, 7))
    ]
    by_row = ["low", "cap", "symbol"]
    expected = pd.concat(alone).sort_values(by_row, ignore_index=True)
    pd.testing.assert_frame_equal(rows.sort_values(by_row, ignore_index=True), expected)
    query = FALLING.replace("where: [", "where: [S.event_time >= $since, ")
    since = pl.DataFrame({"since": [datetime(2026, 1, 5, 9, 3, tzinfo=UTC)]})
    assert set(trendlake.evaluate(query, ticks(), for_each=since)["least"]) == {4, 5}
    assert set(trendlake.evaluate(query, ticks(), for_each={"since": list(since["since"])})["least"]) == {4, 5}


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"low": [1.0, 1.0], "cap": [2, 2]}), "row 2 of the frame is equal to row 1"),
        (pd.DataFrame({"low": [], "cap": []}), "the frame has no rows"),
        (pd.DataFrame({"low ": [1.0]}), "'low ' is no name"),
        (pd.DataFrame({"low": [float("inf")], "cap": [1]}), "low: row 1: expected a finite number"),
        ({"low": [1.0, 1.0], "cap": [1]}, "this value is in the list already"),
    ],
)
def test_mistakes_of_a_family(frame: Any, message: str) -> None:
    with pytest.raises(PatternErrors) as failure:
        trendlake.evaluate(FAMILY, ticks(), for_each=frame)
    assert message in str(failure.value)


def test_a_watermark() -> None:
    """A row of a NOT with a limit waits until time has come so far."""
    query = {"kind": "matches", "pattern": "SEQ(Tick a, NOT Stop s within 10 minutes)", "within": "1 hour"}
    events = ticks(event_type="Tick")
    assert len(trendlake.evaluate(query, events)) == 0
    for until in (datetime(2026, 1, 5, 9, 13, tzinfo=UTC), datetime(2026, 1, 5, 9, 13)):
        assert len(trendlake.evaluate(query, events, watermark=until)) == 4


def test_odd_values() -> None:
    """NaN, -0.0, categories, dictionaries, long texts, views, zones, one row, chunks of one row, slices."""
    plain = pa.Table.from_pandas(ticks(price=[3.0, float("nan"), -0.0, 0.0, 4.0, 3.0]), preserve_index=False)
    expected = shown(trendlake.evaluate(FALLING, plain))
    symbol, time = plain["symbol"], plain["event_time"]
    forms = {
        "symbol": (symbol.dictionary_encode(), symbol.cast(pa.large_string()), symbol.cast(pa.string_view())),
        "event_time": (time.cast(pa.timestamp("ns", "Asia/Tokyo")), time.cast(pa.timestamp("s", "UTC"))),
    }
    for name, columns in forms.items():
        for column in columns:
            table = plain.set_column(plain.column_names.index(name), name, column)
            for frame in (table, pl.DataFrame(table), with_arrow_types(table), duckdb.from_arrow(table)):
                assert shown(read(trendlake.evaluate(FALLING, frame))) == expected
    in_categories = plain.to_pandas().astype({"symbol": "category"})
    assert shown(read(trendlake.evaluate(FALLING, in_categories))) == expected
    ones = pa.concat_tables([plain.slice(i, 1) for i in range(6)])
    assert shown(trendlake.evaluate(FALLING, ones)) == expected
    doubled = pa.concat_tables([plain, plain])
    for frame in (doubled.slice(6), doubled.to_pandas().iloc[6:], pl.DataFrame(doubled)[6:]):
        assert shown(read(trendlake.evaluate(FALLING, frame))) == expected


def test_no_library_is_imported_that_the_caller_has_not() -> None:
    """By the names of classes alone: a table asks for neither pandas nor Polars nor DuckDB."""
    import subprocess
    import sys

    code = (
        "import sys, pyarrow as pa, trendlake; from datetime import datetime, UTC\n"
        "events = pa.table({'event_time': pa.array([datetime(2026, 1, 5, tzinfo=UTC)])})\n"
        "before = set(sys.modules)\n"  # Arrow itself imports pandas where it finds it
        "query = {'kind': 'trends', 'pattern': 'T s', 'return': {'n': 'COUNT(*)'}, 'within': '1 day'}\n"
        "trendlake.evaluate(query, events)\n"
        "print(sorted({'pandas', 'polars', 'duckdb', 'pyspark'} & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_spark_is_refused_before_its_rows_come_here() -> None:
    """By its class alone: it has Arrow's protocol too."""

    class DataFrame(Capsule):
        __module__ = "pyspark.sql.connect.dataframe"

    with pytest.raises(TrendlakeError, match="one frame of Spark"):
        library_of(DataFrame(pa.table({"x": [1]})))
