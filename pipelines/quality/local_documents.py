"""The rules of XML documents of a table in this process, by one parse of each document; without Spark's packages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cep_core.documents.document import broken_rules
from cep_core.events.array_types import Bools
from cep_core.events.arrays import numbers


class DocumentRules:
    """Parses the documents of a column once for all rules, which a contract asks one after the other. Holds the last
    column, so that its memory cannot become that of another."""

    def __init__(self) -> None:
        self.documents = self.broken = pa.nulls(0, pa.string())

    def keeping(self, documents: pa.Array, rule: str) -> Bools:
        """Which documents keep `rule`; a NULL does."""
        if pa.types.is_dictionary(documents.type):
            documents = documents.dictionary_decode()
        if _memory(documents) != _memory(self.documents):
            self.broken, self.documents = broken_rules(documents), documents
        good: Bools = ~numbers(pc.equal(self.broken, rule), False).astype(np.bool_)
        return good


def _memory(array: pa.Array) -> tuple[Any, ...]:
    """Equal for arrays that are the same memory."""
    return array.offset, len(array), *((part.address, part.size) for part in array.buffers() if part)


DOCUMENT_RULES = DocumentRules()
