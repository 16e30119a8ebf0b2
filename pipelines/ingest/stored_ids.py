"""The ids in a source's table compared with the columns that its contract makes ids of.

Rows keep the id that they were stored with. If `idColumns` were changed, a delivery would find none of its rows in the
table, and every event would be stored twice.
"""

from __future__ import annotations

import pyarrow.compute as pc

from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.errors import SourceSchemaError
from trendlake.pipelines.ingest.readers.event_ids import event_ids
from trendlake.pipelines.ingest.readers.files import made_id
from trendlake.pipelines.lake.lake import Lake, read_at
from trendlake.pipelines.spark.columns import column

ROWS = 1_000
"""So many rows are looked at: ids of other columns differ in all rows, or nearly all."""


def refuse_other_ids(lake: Lake, path: str, version: int, contract: Contract) -> None:
    """Raises SourceSchemaError if most rows of the table have an id that is not made of the contract's `idColumns`.
    Some may have: other programs can update a column and leave the id."""
    if not contract.id_columns:
        return
    name, columns = made_id(contract), contract.id_columns
    rows = read_at(lake, path, version).select(*map(column, (name, *columns))).limit(ROWS).toArrow().combine_chunks()
    expected = event_ids([rows[item].combine_chunks() for item in columns])
    others = pc.invert(pc.fill_null(pc.equal(rows[name], expected), False))
    if 2 * (pc.sum(others).as_py() or 0) <= rows.num_rows:
        return
    first = pc.index(others, True).as_py()
    raise SourceSchemaError(
        f"table '{contract.name}' has other ids than {contract.file} makes: idColumns [{', '.join(columns)}] give "
        f"'{expected[first]}' for the row with the {name} '{rows[name][first]}'; nothing was written",
        hint="set idColumns back to the columns that the table was filled with; for other ids make another source",
    )
