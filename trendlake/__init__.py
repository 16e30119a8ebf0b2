"""Trendlake for Python: evaluate, explain and draw patterns over frames, without Spark.

    import pandas as pd
    import trendlake

    rows = trendlake.evaluate("falling.yaml", pd.read_parquet("trades.parquet"))

A frame is of pandas, Polars, DuckDB or Arrow, and so are the rows. A pattern is a file's path, YAML text or a mapping
of the same shape. The engine is imported when one of its names is first used.
"""

import os.path
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trendlake.cep_core import (
        AssumptionWarning,
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
    from trendlake.jobs.python import Project, Results

FOLDER = os.path.dirname(__file__)
if not os.path.isdir(os.path.join(FOLDER, "cep_core")):  # a copy of a clone without its symbolic links
    __path__.append(os.path.dirname(FOLDER))

__version__: str
__all__ = [
    "AssumptionWarning",
    "EventSchema",
    "Pattern",
    "PatternErrors",
    "PatternWarning",
    "Project",
    "Results",
    "TrendlakeError",
    "Windows",
    "__version__",
    "compile_query",
    "draw",
    "evaluate",
    "explain",
    "load_pattern",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("trendlake")
    if name in ("Project", "Results"):
        return getattr(import_module("trendlake.jobs.python"), name)
    if name in __all__:
        return getattr(import_module("trendlake.cep_core"), name)
    raise AttributeError(f"module 'trendlake' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
