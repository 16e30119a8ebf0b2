"""The steps by name, in the order of a run: of one run, and of several of one source."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trendlake.pipelines.runs.record import Attempt
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.check_results import check_results, check_results_together
from trendlake.pipelines.steps.check_source import check_source, check_source_together
from trendlake.pipelines.steps.compute import compute, compute_together
from trendlake.pipelines.steps.publish import publish, publish_together

STEPS: dict[str, Callable[[Run], Record]] = {
    "check_source": check_source,
    "compute": compute,
    "check_results": check_results,
    "publish": publish,
}
TOGETHER: dict[str, Callable[[Sequence[Run]], list[Attempt]]] = {
    "check_source": check_source_together,
    "compute": compute_together,
    "check_results": check_results_together,
    "publish": publish_together,
}
