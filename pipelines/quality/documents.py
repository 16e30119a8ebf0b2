"""The rules of XML documents, judged by one parse of each document: as a column of Spark's, and of a table here."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import Column

from cep_core.documents.document import broken_rules
from cep_core.events.array_types import Bools
from cep_core.events.arrays import numbers
from pipelines.spark.arrow_functions import text_function


def broken_document_rule(document: Column) -> Column:
    """The rule that each document breaks, NULL for none. Spark evaluates equal calls in one operator once."""
    return _function(SparkContext._active_spark_context)(document)


@lru_cache(maxsize=1)
def _function(context: Any) -> Callable[[Column], Column]:
    """That of a Spark application."""
    return text_function(broken_rules)


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
        good: Bools = ~numbers(pa.compute.equal(self.broken, rule), False).astype(np.bool_)
        return good


def _memory(array: pa.Array) -> tuple[Any, ...]:
    """Equal for arrays that are the same memory."""
    return array.offset, len(array), *((part.address, part.size) for part in array.buffers() if part)


DOCUMENT_RULES = DocumentRules()
