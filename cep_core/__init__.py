"""The engine: compiles a pattern to a plan and runs it over Arrow tables. Uses no Spark, no Airflow and no clock."""

from trendlake.cep_core.engine import compile_plan, compile_query, draw, explain
from trendlake.cep_core.errors import AssumptionWarning, PatternErrors, PatternWarning, TrendlakeError
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.events.windows import Windows
from trendlake.cep_core.frames.evaluate import evaluate
from trendlake.cep_core.load import load_pattern
from trendlake.cep_core.patterns.model import Pattern
from trendlake.cep_core.plan import AnyPlan
from trendlake.cep_core.sharing.run_plans import run_plan, run_plans

if __name__ == "cep_core":  # in a clone, from its root
    from trendlake.clone_names import share

    share(__name__)

__all__ = [
    "AnyPlan",
    "AssumptionWarning",
    "EventSchema",
    "Pattern",
    "PatternErrors",
    "PatternWarning",
    "TrendlakeError",
    "Windows",
    "compile_plan",
    "compile_query",
    "draw",
    "evaluate",
    "explain",
    "load_pattern",
    "run_plan",
    "run_plans",
]
