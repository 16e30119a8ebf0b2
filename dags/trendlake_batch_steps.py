"""The tasks of a batch: as those of one pattern, and one of them fails for the patterns that failed.

The task that starts the application succeeds if its own step was done for some pattern, and creates the asset events
of all results that changed: a task that fails creates none, and the readers of the other patterns would not be started.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Asset, AssetAlias
from airflow.sdk.definitions.context import Context
from airflow.sdk.execution_time.context import NEVER_EXPIRE
from trendlake_alerts import MembersFailedError
from trendlake_steps import APPLICATION, SEEN, StepOperator

from trendlake.jobs.airflow.notify import asset_of
from trendlake.pipelines.project.paths import PUBLISHED

FAILED, CHANGED, REPEATED = "failed", "changed", "application_repeated"
"""Task state: the patterns whose failure the last attempt of this task has shown; the results whose new versions no
event reports yet, because that attempt failed; the application whose failed patterns this task has done again."""
SHOWN = 5
"""Patterns that failed and are named in the line of an alert."""


class BatchStepOperator(StepOperator):
    """The task of one step of all `patterns` (files) of a batch. The task `judge` fails if some of them failed; when it
    is tried again, it does all steps of those only. `results`: its outlet."""

    def __init__(
        self,
        *,
        step: str,
        patterns: Sequence[str],
        results: AssetAlias,
        order: Sequence[str],
        judge: str,
        **options: Any,
    ) -> None:
        super().__init__(step=step, outlets=[results], **options)
        self.patterns, self.results, self.order, self.judge = tuple(patterns), results, tuple(order), judge

    def execute(self, context: Context) -> None:
        """Ends at once if an earlier task's application has done the step; else starts one."""
        memory, application = context["task_state_store"], self._earlier_application(context)
        earlier: dict[str, Any] = application or {"id": None, "steps": {}, "failed": []}
        if self.step in earlier["steps"] and memory.get(SEEN) != earlier["id"]:
            memory.set(SEEN, earlier["id"], retention=NEVER_EXPIRE)
            self.log.info("%s: done by the application of %s", earlier["steps"][self.step], earlier["task"])
            self._judge(context, earlier["failed"], [])
            return
        failed: Any = memory.get(FAILED) if self.step == self.judge and self.step in earlier["steps"] else None
        if failed:
            facts = self._start(context, self._arguments(failed, self._all_steps(context)))
            memory.set(REPEATED, earlier["id"], retention=NEVER_EXPIRE)
        else:
            # A pattern that failed in a step before this one has nothing for this one to go on with.
            before = [item for item in earlier["failed"] if item["step"] in self.order[: self.order.index(self.step)]]
            gone = {item["file"] for item in before if memory.get(REPEATED) != earlier["id"]}
            patterns, steps = [path for path in self.patterns if path not in gone], self._steps(context)
            facts = self._start(context, self._arguments(patterns, steps))
            if self.judge in steps:
                facts["failed"] += [item for item in before if item["file"] in gone]
                context["ti"].xcom_push(key=APPLICATION, value=facts)
        self._judge(context, facts["failed"], facts["changed"])

    def _arguments(self, patterns: Sequence[str], steps: Sequence[str]) -> list[str]:
        return [*patterns, "--steps", ",".join(steps)]

    def _all_steps(self, context: Context) -> list[str]:
        """Those before this one, which succeeded for other patterns, too."""
        return [*self.order[: self.order.index(self.step)], *self._steps(context)]

    def _judge(self, context: Context, failed: list[dict[str, Any]], changed: list[str]) -> None:
        """Creates the events of results that changed; raises MembersFailedError if no later task is going to."""
        memory = context["task_state_store"]
        if failed and self.judge not in self._steps(context)[1:]:
            before: Any = memory.get(CHANGED) or []
            memory.set(FAILED, [item["file"] for item in failed], retention=NEVER_EXPIRE)
            memory.set(CHANGED, sorted({*before, *changed}), retention=NEVER_EXPIRE)
            raise MembersFailedError(self._line(failed), mistake=all(item["mistake"] for item in failed))
        untold: Any = memory.get(CHANGED) or []
        for name in sorted({*untold, *changed}):
            asset, uri = asset_of(f"{PUBLISHED}{name}")
            context["outlet_events"][self.results].add(Asset(name=asset, uri=uri))
        memory.set(FAILED, [], retention=NEVER_EXPIRE)
        memory.set(CHANGED, [], retention=NEVER_EXPIRE)

    def _line(self, failed: Sequence[dict[str, Any]]) -> str:
        lines = [f"{item['pattern']} ({item['step']}): {item['reason']}" for item in failed[:SHOWN]]
        more = f"; and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
        return f"{len(failed)} of {len(self.patterns)} patterns failed: {'; '.join(lines)}{more}"
