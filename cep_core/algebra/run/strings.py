"""All strings of a run as numbers: equal strings have equal codes, and where some expression orders strings, codes too
are in their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.cep_core.expressions.operands import machine_table


class Strings:
    """Codes of the strings of `columns`, of `constants`, and with `cases` of all that lower and upper make of them.
    `texts`: whether programs look into them; `zone`: whose clock they read."""

    def __init__(
        self,
        columns: Sequence[pa.Array],
        constants: Iterable[str],
        *,
        ordered: bool,
        cases: bool,
        texts: bool,
        zone: str | None = None,
    ) -> None:
        chunks = [column for column in columns if pa.types.is_string(column.type)]
        known = pc.unique(pa.chunked_array([*chunks, pa.array(list(constants), pa.string())], pa.string())).drop_null()
        while cases:
            more = pc.unique(pa.chunked_array([known, pc.utf8_lower(known), pc.utf8_upper(known)]))
            if len(more) == len(known):
                break
            known = more
        self.known = known.take(pc.array_sort_indices(known)) if ordered else known
        plain = self.known.to_pylist() if cases or texts else []
        codes = {text: code for code, text in enumerate(plain)}
        self.table = machine_table(plain, codes, cases=cases, texts=texts, zone=zone)

    def codes(self, column: pa.Array) -> tuple[Int64s, Bools]:
        """(codes, whether NULL) of a column of strings."""
        indices = pc.index_in(column, value_set=self.known)
        null = ~valid(column)
        return numbers(indices, 0).astype(np.int64), null

    def code(self, text: str) -> int:
        return int(pc.index(self.known, text).as_py())

    def column(self, codes: Int64s, null: Bools) -> pa.Array:
        """Codes as strings."""
        if not len(self.known):
            return pa.nulls(len(codes), pa.string())
        return self.known.take(arrow(np.ascontiguousarray(codes), null))
