"""The engine: language -> plan -> kernels. Arrow in, Arrow out; no Spark, Airflow or clock."""

import cep_core.kernel_cache  # noqa: F401 - before the first kernel is declared

# isort: split
from cep_core.compiled import AnyPlan
from cep_core.engine import compile_plan, compile_query, draw, evaluate, explain, run_plan
from cep_core.errors import PatternErrors, PatternWarning, TrendlakeError
from cep_core.model import Pattern
from cep_core.plan import Plan
from cep_core.reading import load_pattern
from cep_core.schema import EventSchema
from cep_core.windows import Windows

__all__ = [
    "AnyPlan",
    "EventSchema",
    "Pattern",
    "PatternErrors",
    "PatternWarning",
    "Plan",
    "TrendlakeError",
    "Windows",
    "compile_plan",
    "compile_query",
    "draw",
    "evaluate",
    "explain",
    "load_pattern",
    "run_plan",
]
