"""Tables that every worker needs whole: sent to each machine once, as Arrow streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from trendlake.cep_core.events.lookup import References


@dataclass(frozen=True)
class SentTables:
    """`streams`: by the name of the table a Broadcast of its Arrow stream."""

    streams: Mapping[str, Any]

    @classmethod
    def of(cls, spark: SparkSession, tables: Mapping[str, pa.Table] | None) -> SentTables | None:
        """None where there are no tables."""
        if not tables:
            return None
        return cls({name: spark.sparkContext.broadcast(_stream(table)) for name, table in tables.items()})

    def free(self) -> None:
        """No worker reads them any more."""
        for stream in self.streams.values():
            stream.destroy()

    def tables(self) -> References:
        """By name, in a worker."""
        return _read(tuple(self.streams.items()))


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@lru_cache(maxsize=8)
def _read(streams: tuple[tuple[str, Any], ...]) -> References:
    """A worker computes many tasks of one job: it reads each stream once, and sorts its rows once. A Broadcast is
    hashed by what it is."""
    return References({name: pa.ipc.open_stream(pa.py_buffer(stream.value)).read_all() for name, stream in streams})
