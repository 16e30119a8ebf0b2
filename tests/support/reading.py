"""Tables as delta-rs reads them: another reader than Spark, and sooner than Spark plans a job."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from deltalake import DeltaTable


def stored(path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of the newest version, of all columns or of those."""
    return DeltaTable(path).to_pyarrow_table(columns=None if columns is None else list(columns))


def changes(path: str, first: int, last: int | None = None) -> pa.Table:
    """What the change feed tells of the versions `first` to `last`, or to the newest."""
    return pa.table(DeltaTable(path).load_cdf(starting_version=first, ending_version=last))
