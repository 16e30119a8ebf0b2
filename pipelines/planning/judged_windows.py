"""The windows of rows that a changed contract judges otherwise, found without Spark."""

from __future__ import annotations

from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.road import either
from trendlake.pipelines.results.windows import Stretch
from trendlake.pipelines.revision.scope import Task
from trendlake.pipelines.revision.source_changes import SourceChanges
from trendlake.pipelines.runs.run import Run


def judged_windows(run: Run, task: Task) -> tuple[Stretch, ...] | None:
    """Of the published windows those that `revise` computes again; None where this process does not say which."""
    if not task.earlier or run.sources.named:
        return None

    def here() -> tuple[Stretch, ...]:
        from trendlake.pipelines.revision.here import touched  # with the kernels: most plans need none
        from trendlake.pipelines.revision.judged_again import judged_again
        from trendlake.pipelines.revision.matching import matching

        good = judged_again(run, task, limits.REVISED).good
        return touched(run.plan, matching(run, good, SourceChanges(), ()), task.published)

    return either(here, lambda: None)
