"""Rows that a project is asked for: a plan of a read, which reads when it is first asked for rows."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from trendlake.cep_core.frames import pandas as of_pandas
from trendlake.cep_core.frames import polars as of_polars
from trendlake.jobs.python import html
from trendlake.jobs.python.caller import Caller
from trendlake.jobs.python.reads import Answer, Read

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame


class Results:
    """Rows of a project, as a frame of any library. Nothing is read before it is asked for; the version that is read
    then is that of all later answers. Two that were asked for alike are equal. Any library that takes objects with
    `__arrow_c_stream__` reads it as it is, and so does `trendlake.evaluate`.

    Rows are read in this process wherever the command needs no Java for them. Where only Spark reads them, that is
    asked if it has started; else NeedsSparkError says why."""

    def __init__(self, caller: Caller, read: Read) -> None:
        self._caller = caller
        self._read = read

    @cached_property
    def _answer(self) -> Answer:
        with self._caller.asking():
            return self._read.answer(self._caller)

    @cached_property
    def _table(self) -> pa.Table:
        with self._caller.asking():
            return self._answer.table(self._caller)

    @property
    def version(self) -> int | None:
        """The version of the table that is read: of the results, the source or the run records; None where there is no
        table yet."""
        return self._answer.version

    def to_arrow(self) -> pa.Table:
        """The rows. Raises NeedsSparkError, ProjectError, and what the command raises."""
        return self._table

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, a batch after another."""
        return self._table.to_reader()

    def to_pandas(self) -> pd.DataFrame:
        """The rows. Doubles, times and texts are of NumPy's types, other columns (counts, lists) of Arrow's."""
        frame: pd.DataFrame = of_pandas.from_arrow(self._table, None)
        return frame

    def to_polars(self) -> pl.DataFrame:
        """The rows."""
        frame: pl.DataFrame = of_polars.from_arrow(self._table, None)
        return frame

    def spark(self) -> DataFrame:
        """The rows as a frame of Spark, in no order: of the caller's session, else of one that is started, and ends
        with `Project.close`."""
        with self._caller.asking(), self._caller.on_spark() as lake:
            return self._answer.frame(lake)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._table.schema.__arrow_c_schema__()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Results) and (self._caller, self._read) == (other._caller, other._read)

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __repr__(self) -> str:
        return f"Results({self._read.title})"

    def _repr_html_(self) -> str:
        return html.rows(self._read.title, self._table, self._answer.plan, self._answer.zone)
