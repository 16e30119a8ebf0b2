"""What is said of Spark without Spark's packages is what Spark says."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_type

from trendlake.pipelines.contracts.column_types import spark_name

PLAIN = [
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.decimal128(38, 0),
    pa.decimal128(20, 2),
]
NESTED = [pa.list_(pa.string()), pa.list_(pa.struct([("a", pa.int64()), ("b", pa.list_(pa.float64()))]))]


@pytest.mark.parametrize("kind", [*PLAIN, *NESTED], ids=str)
def test_names_of_types(kind: pa.DataType) -> None:
    assert spark_name(kind) == from_arrow_type(kind).simpleString()


def test_a_type_of_no_results() -> None:
    with pytest.raises(ValueError, match="duration"):
        spark_name(pa.duration("us"))
