"""The tasks of a run: one for each step, and one Spark application for all of them.

To start Spark takes longer than most steps. The first task of a run starts an application that does its step and the
later ones; a later task finds its step done, logs that, and ends. Where it is not done - it failed, its task was
cleared or is tried again - the task starts an application of its own, for its step and those that follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from uuid import uuid4

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.definitions.context import Context
from airflow.sdk.execution_time.context import NEVER_EXPIRE

from trendlake.jobs.actions.steps import STEPS
from trendlake.jobs.airflow.progress import members_done, progress_file, steps_done

APPLICATION = "application"
"""XCom of a task that started an application: its id, and the steps that it has done."""
SEEN = "application_seen"
"""Task state: the id of the application that a task has taken its step from. Once taken, it is no reason any more not
to do the step: a task that runs again although no earlier one did has been cleared, or is tried again."""
FINISHED = ("success", "failed", "skipped", "upstream_failed", "removed")
"""States of tasks that will not run again by themselves."""


class StepOperator(SparkSubmitOperator):
    """The task of one step. `application_args`: those of `trendlake run-steps` but for its steps. `order`: the steps
    that are tasks of the DAG."""

    order: Sequence[str] = STEPS

    def __init__(self, *, step: str, task_id: str | None = None, **options: Any) -> None:
        """`task_id`: the step, unless another is given."""
        super().__init__(task_id=task_id or step, **options)
        self.step = step

    def execute(self, context: Context) -> None:
        """Ends at once if an earlier task's application has done the step; else starts one."""
        memory, application = context["task_state_store"], self._earlier_application(context)
        if application and self.step in application["steps"] and memory.get(SEEN) != application["id"]:
            memory.set(SEEN, application["id"], retention=NEVER_EXPIRE)
            self.log.info("%s: done by the application of %s", application["steps"][self.step], application["task"])
            return
        self._start(context, ["--steps", ",".join(self._steps(context))])

    def _start(self, context: Context, arguments: Sequence[str]) -> dict[str, Any]:
        """Starts an application with `arguments` more. Returns what later tasks are given of it."""
        with progress_file() as progress:
            self.application_args = [*(self.application_args or ()), *arguments, "--progress", str(progress)]
            try:
                super().execute(context)
            except Exception as error:
                if self.step not in steps_done(progress):
                    raise
                # Airflow shows each failure at the step that failed, whose own task does it again.
                self.log.warning("a later step failed, which its own task does again: %s", error)
            failures, changed = members_done(progress)
            facts: dict[str, Any] = {"id": str(uuid4()), "task": self.task_id, "steps": steps_done(progress)}
        facts |= {"failed": [asdict(failure) for failure in failures], "changed": changed}
        context["ti"].xcom_push(key=APPLICATION, value=facts)
        return facts

    def _earlier_application(self, context: Context) -> dict[str, Any] | None:
        """The application of the nearest earlier task that has started one."""
        for step in reversed(self.order[: self.order.index(self.step)]):
            application: dict[str, Any] | None = context["ti"].xcom_pull(task_ids=step, key=APPLICATION)
            if application is not None:
                return application
        return None

    def _steps(self, context: Context) -> list[str]:
        """This step and the later ones up to the first whose task is not going to run: it is done, and stays."""
        ti, later = context["ti"], self.order[self.order.index(self.step) + 1 :]
        states: dict[str, Any] = {}
        if later:
            every = ti.get_task_states(dag_id=ti.dag_id, task_ids=list(later), run_ids=[ti.run_id])
            states = every.get(ti.run_id, {})
        open_steps = [self.step]
        for step in later:
            if states.get(step) in FINISHED:
                break
            open_steps.append(step)
        return open_steps
