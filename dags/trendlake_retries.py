"""The retry policy of tasks: retries crashes and lost machines, but no error that a person has to fix."""

from __future__ import annotations

from typing import Any

from airflow.sdk import RetryDecision, RetryPolicy
from trendlake_alerts import EXIT_CODE, REASON, reason_of

from pipelines.errors import BusyTableError

USER_ERROR = "1"
"""The exit code of a `trendlake` command that ends with an error of the user's, or of the data."""
PASSING = (BusyTableError.code,)
"""User errors that another attempt may not meet."""


class RetryCrashes(RetryPolicy):
    """A task whose command has ended with an error of the user's (`[TOLERANCE]`, `[CHECKS_FAILED]` ...) fails at once;
    every other failure is retried as the task is configured."""

    def evaluate(self, exception: BaseException, try_number: int, max_tries: int, context: Any = None) -> RetryDecision:
        """Airflow calls it in the task's own process, with what SparkSubmitOperator has raised."""
        reason = reason_of(exception)
        ended, error = EXIT_CODE.search(str(exception)), REASON.fullmatch(reason)
        if ended is None or ended[1] != USER_ERROR or error is None or error["code"] in PASSING:
            return RetryDecision.default()
        return RetryDecision.fail(f"another attempt would end the same: {reason}")
