"""The retry policy of tasks: retries crashes and lost machines, but no error that a person has to fix."""

from __future__ import annotations

from typing import Any

from airflow.sdk import RetryDecision, RetryPolicy
from trendlake_alerts import EXIT_CODE, REASON, MembersFailedError, reason_of

from trendlake.pipelines.errors import PASSING

USER_ERROR, WRONG_USAGE = "1", "2"
"""The exit codes of a `trendlake` command that ends with an error of the user's, or of the data; and of one that has
been called with options or arguments that it does not take."""


class RetryCrashes(RetryPolicy):
    """A task whose command has ended with an error of the user's (`[TOLERANCE]`, `[CHECKS_FAILED]` ...), or was called
    wrongly, fails at once; every other failure is retried as the task is configured."""

    def evaluate(self, exception: BaseException, try_number: int, max_tries: int, context: Any = None) -> RetryDecision:
        """Airflow calls it in the task's own process, with what SparkSubmitOperator has raised."""
        reason = reason_of(exception)
        ended, error = EXIT_CODE.search(str(exception)), REASON.fullmatch(reason)
        code = ended[1] if ended else None
        mistake = code == USER_ERROR and error is not None and error["code"] not in PASSING
        if isinstance(exception, MembersFailedError):
            mistake = exception.mistake
        if not mistake and code != WRONG_USAGE:
            return RetryDecision.default()
        return RetryDecision.fail(f"another attempt would end the same: {reason}")
