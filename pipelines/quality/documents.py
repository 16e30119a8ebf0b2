"""The rules of XML documents as a column of Spark's, by one parse of each document."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pyspark import SparkContext
from pyspark.sql import Column

from cep_core.documents.document import broken_rules
from pipelines.spark.arrow_functions import text_function


def broken_document_rule(document: Column) -> Column:
    """The rule that each document breaks, NULL for none. Spark evaluates equal calls in one operator once."""
    return _function(SparkContext._active_spark_context)(document)


@lru_cache(maxsize=1)
def _function(context: Any) -> Callable[[Column], Column]:
    """That of a Spark application."""
    return text_function(broken_rules)
