"""The steps by name, in the order of a run."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.runs.run import Run
from pipelines.runs.stage import Record
from pipelines.steps.check_results import check_results
from pipelines.steps.check_source import check_source
from pipelines.steps.compute import compute
from pipelines.steps.publish import publish

STEPS: dict[str, Callable[[Run], Record]] = {
    "check_source": check_source,
    "compute": compute,
    "check_results": check_results,
    "publish": publish,
}
