"""One value, one identity: NaN equals NaN whatever its bits, -0.0 equals 0.0, on every road and as Spark has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from tests.random.floats import float_arrays
from tests.random.profile import examples
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.cep_core.events.normalise import canonical
from trendlake.pipelines.ingest.compare import compare, without_repeats
from trendlake.pipelines.ingest.row_ids import row_id_column, row_ids
from trendlake.pipelines.quality.verdict import hashes_of
from trendlake.pipelines.results.spark_order import comparable
from trendlake.pipelines.revision.matching import summed
from trendlake.pipelines.revision.row_diff import differing
from trendlake.pipelines.revision.source_changes import NET
from trendlake.pipelines.rules.unique import exact_codes, sequence_ranks
from trendlake.pipelines.spark.frames import frame_of

pytestmark = pytest.mark.random


def classes(values: Sequence[Any]) -> list[int]:
    """The first place of an equal value, one after the other in plain Python."""
    forms = [comparable(value) for value in values]
    return [forms.index(form) for form in forms]


def firsts(codes: Sequence[Any]) -> list[int]:
    """`classes` of codes or hashes."""
    return [list(codes).index(code) for code in codes]


@given(float_arrays())
@examples(400)
def test_equal_floats_have_one_form(values: pa.Array) -> None:
    """Codes, hashes and identities agree exactly where the values are equal; no other bit changes."""
    expected, rows = classes(values.to_pylist()), pa.table({"v": values})
    assert firsts(exact_codes(rows, ["v"]).tolist()) == expected
    assert firsts(row_ids(rows, ["v"]).to_pylist()) == expected
    assert all(a == b for a, b in zip(hashes_of(rows, ["v"]), hashes_of(rows, ["v"])[expected], strict=True))
    formed = canonical(values)
    bits = np.uint64 if values.type == pa.float64() else np.uint32
    numbered = np.where(valid(values), numbers(values, 0), 0)
    plain = valid(values) & ~np.isnan(numbered) & (numbered != 0)
    assert formed.type == values.type
    assert valid(formed).tolist() == valid(values).tolist()
    assert (numbers(formed, 0).view(bits) == numbers(values, 0).view(bits))[plain].all()


@given(float_arrays(), st.randoms())
@examples(200)
def test_equal_rows_are_there(values: pa.Array, rng: Any) -> None:
    """A delivery of equal rows adds and corrects nothing, changes nothing, and cancels out, whatever the bits."""
    places = [
        rng.choice([at for at, first in enumerate(classes(values.to_pylist())) if first == one])
        for one in classes(values.to_pylist())
    ]
    keys = arrow(np.arange(len(values)))
    table = pa.table({"id": keys, "v": values})
    again = pa.table({"id": keys, "v": values.take(pa.array(places, pa.int64()))})
    result = compare(again, table, ["id"], None, lambda rows: np.ones(rows.num_rows, np.bool_))
    assert (result.new.num_rows, result.corrections.num_rows, result.there) == (0, 0, len(values))
    doubled = pa.concat_tables([table, again])
    rest, equal, _ = without_repeats(doubled, ["id"], None, lambda rows: np.ones(rows.num_rows, np.bool_))
    assert (rest.num_rows, equal) == (len(values), len(values))
    assert set(differing(table, again, ["id"]).counts.values()) == {0}
    signed = [rows.append_column(NET, arrow(np.full(len(values), sign))) for rows, sign in ((table, 1), (again, -1))]
    assert summed(pa.concat_tables(signed), ("id", "v")).num_rows == 0


@given(float_arrays())
@examples(200)
def test_floats_as_keys(values: pa.Array) -> None:
    """Rows of one key are one, and two tables of equal keys agree; `sequence` has one zero."""
    present = values.drop_null()
    expected = classes(present.to_pylist())
    rows = pa.table({"v": present})
    rest, _, _ = without_repeats(rows, ["v"], None, lambda rows: np.ones(rows.num_rows, np.bool_))
    assert rest.num_rows == len(set(expected))
    result = differing(rest, rows.take(pa.array(sorted(set(expected)), pa.int64())), ["v"])
    assert set(result.counts.values()) == {0}
    ranks = sequence_ranks(rows, "v")
    assert (ranks == ranks[expected]).all()


def test_floats_in_lists_and_structs() -> None:
    """A result row whose list or struct holds an equal value is the same row."""
    pairs = [(0.0, -0.0), (float("nan"), -float("nan"))]
    for one, other in pairs:
        for kind, wrapped in (
            (pa.list_(pa.float64()), lambda x: [1.0, x]),
            (pa.struct([("x", pa.float32())]), lambda x: {"x": x}),
        ):
            old, new = (pa.table({"id": [1], "v": pa.array([wrapped(x)], kind)}) for x in (one, other))
            assert set(differing(old, new, ["id"]).counts.values()) == {0}


@pytest.mark.spark
@given(st.data())
@examples(3)
def test_as_spark_compares(spark: SparkSession, data: st.DataObject) -> None:
    """Spark's GROUP BY, its `<=>` in a join and our codes put the same values together."""
    values = data.draw(float_arrays(size=60).filter(len))
    rows = pa.table({"id": arrow(np.arange(len(values))), "v": values})
    frame = frame_of(spark, rows)
    least = frame.groupBy("v").agg(sf.min("id").alias("least"))
    joined = frame.alias("a").join(least.alias("b"), sf.col("a.v").eqNullSafe(sf.col("b.v")))
    ids = row_id_column(["v"])
    result = sorted(joined.select("id", "least").collect())
    assert [row["least"] for row in result] == firsts(exact_codes(rows, ["v"]).tolist())
    assert [row[0] for row in frame.orderBy("id").select(ids).collect()] == row_ids(rows, ["v"]).to_pylist()
