"""Which types of a results column are the same: each type beside each other one."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from trendlake.cep_core.events.schema import COUNT_TYPE, TIME_TYPE
from trendlake.pipelines.results.types import other_types

TYPES = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "decimal(38,0)": COUNT_TYPE,
    "decimal(20,2)": pa.decimal128(20, 2),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": TIME_TYPE,
    "date": pa.date32(),
    "array<string>": pa.list_(pa.string()),
    "array<bigint>": pa.list_(pa.int64()),
}


@pytest.mark.parametrize(("there", "wanted"), list(product(TYPES, TYPES)))
def test_pairs(there: str, wanted: str) -> None:
    """Only the same type is: none is cast, not even to a wider one; NULLs are no part of it, nor is the name's case."""
    published = from_arrow_schema(pa.schema([pa.field("M", TYPES[there], nullable=False), pa.field("old", pa.int8())]))
    schema = pa.schema([pa.field("m", TYPES[wanted]), pa.field("new", pa.string())])
    expected = [] if there == wanted else [f"'m' is {there}, and the pattern gives {wanted}"]
    assert other_types(published, schema) == expected
