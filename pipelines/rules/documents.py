"""The rules of XML documents, by one parse of each document."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.documents.document import broken_rules
from trendlake.cep_core.events.array_types import Bools
from trendlake.cep_core.events.arrays import numbers


class DocumentRules(threading.local):
    """Parses the documents of a column once for all rules, which a contract asks one after the other. Holds the last
    column of each thread, so that its memory cannot become that of another."""

    def __init__(self) -> None:
        self.documents = pa.chunked_array([], pa.string())
        self.broken = pa.nulls(0, pa.string())

    def keeping(self, column: pa.Array | pa.ChunkedArray, rule: str) -> Bools:
        """Which documents keep `rule`; a NULL does. The same chunks are not parsed again."""
        documents = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        if _memory(documents) != _memory(self.documents):
            texts = documents.cast(pa.string()) if pa.types.is_dictionary(documents.type) else documents
            self.broken, self.documents = broken_rules(texts), documents
        good: Bools = ~numbers(pc.equal(self.broken, rule), False).astype(np.bool_)
        return good


def _memory(column: pa.ChunkedArray) -> tuple[Any, ...]:
    """Equal for columns that are the same memory."""
    return tuple(
        (chunk.offset, len(chunk), *((part.address, part.size) for part in chunk.buffers() if part))
        for chunk in column.chunks
    )


DOCUMENT_RULES = DocumentRules()
