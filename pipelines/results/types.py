"""A results table keeps the type of each column: what a pattern gives under the same name must have that type.

Spark and Delta would cast silently, where a row is appended, merged or rewritten: an average would be rounded into a
count's column. So every writer asks here first, before it computes.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from trendlake.cep_core.events.names import same_name
from trendlake.pipelines.errors import ResultsTypeError
from trendlake.pipelines.lake.lake import exists
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.runs.run import Run


def refuse_other_types(run: Run) -> None:
    """Raises ResultsTypeError where a column of the published results has another type than the pattern gives it.

    Types must be equal: not even a narrower one is cast to a wider one. Columns that only one of the two has are no
    mistake: new ones are added, old ones stay. Whether a column may be NULL is no part of its type.
    """
    there = _published(run)
    if there is None:
        return
    different = other_types(there, run.plan.result_schema)
    if different:
        raise ResultsTypeError(
            f"the published results of {run.name} have columns of other types: {'; '.join(different)}",
            hint=f"give the measure another name; or remove all published results with `trendlake reset {run.typed}`",
        )


def other_types(there: StructType, wanted: pa.Schema) -> list[str]:
    """The columns that are there with another type than is wanted, each a clause for people."""
    have = {same_name(field.name): field.dataType.simpleString() for field in there}
    changes = []
    for field in from_arrow_schema(wanted):
        now, then = field.dataType.simpleString(), have.get(same_name(field.name))
        if then not in (None, now):
            changes.append(f"'{field.name}' is {then}, and the pattern gives {now}")
    return changes


def _published(run: Run) -> StructType | None:
    path = run.warehouse.results(run.name)
    return Table.at(run.lake, path).schema if exists(run.lake, path) else None
