"""The engine: language -> plan -> kernels. Arrow in, Arrow out; no Spark, Airflow or clock."""

from cep_core.errors import PatternErrors, TrendlakeError
from cep_core.evaluate import evaluate, run_plan
from cep_core.explain import explain
from cep_core.model import Pattern, load_pattern
from cep_core.plan import PatternWarning, Plan, compile_plan, compile_query
from cep_core.schema import EventSchema
from cep_core.windows import Windows

__all__ = [
    "EventSchema",
    "Pattern",
    "PatternErrors",
    "PatternWarning",
    "Plan",
    "TrendlakeError",
    "Windows",
    "compile_plan",
    "compile_query",
    "evaluate",
    "explain",
    "load_pattern",
    "run_plan",
]
