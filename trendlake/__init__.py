"""Trendlake for Python: evaluate, explain and draw patterns over Arrow tables, without Spark.

    import pyarrow.parquet as pq
    import trendlake

    rows = trendlake.evaluate("falling.yaml", pq.read_table("trades.parquet"))

A pattern is a file's path or a mapping of the same shape.
"""

from importlib.metadata import version

from cep_core import (
    EventSchema,
    Pattern,
    PatternErrors,
    PatternWarning,
    TrendlakeError,
    Windows,
    compile_query,
    draw,
    evaluate,
    explain,
    load_pattern,
)

__version__ = version("trendlake")
__all__ = [
    "EventSchema",
    "Pattern",
    "PatternErrors",
    "PatternWarning",
    "TrendlakeError",
    "Windows",
    "__version__",
    "compile_query",
    "draw",
    "evaluate",
    "explain",
    "load_pattern",
]
