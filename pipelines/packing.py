"""How events travel to the workers: what Spark shuffles is rows, and each of 10 million is paid for by its bytes.

An event's type is one of the few that the plan names, so its number travels, and nothing where there is only one;
in the worker it is a dictionary column.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cep_core import AnyPlan
from pipelines.quarantine import column


def packed(plan: AnyPlan, events: DataFrame) -> DataFrame:
    """`events` with the type's number in `plan.event_types` in place of its name, or without the column where the plan
    knows one type only; events of other types are left out. As they are where every type matters."""
    if plan.event_types is None:
        return events
    kind = column(plan.schema.event_type)
    known = events.where(kind.isin(list(plan.event_types)))
    if len(plan.event_types) == 1:
        return known.drop(plan.schema.event_type)
    number = sf.lit(0)
    for code, name in enumerate(plan.event_types):
        number = sf.when(kind == sf.lit(name), sf.lit(code)).otherwise(number)
    return known.withColumn(plan.schema.event_type, number)


def unpacked(plan: AnyPlan, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch as it arrived, with the event types named again."""
    if plan.event_types is None:
        return batch
    name = plan.schema.event_type
    columns = {field: batch.column(field) for field in batch.schema.names}
    codes = columns.get(name, pa.array(np.zeros(batch.num_rows, np.int8)))
    columns[name] = pa.DictionaryArray.from_arrays(pc.cast(codes, pa.int8()), pa.array(plan.event_types))
    return pa.RecordBatch.from_pydict(columns)
