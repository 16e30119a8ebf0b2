"""Errors on the way to a report that the user can fix."""

from __future__ import annotations

from trendlake.cep_core.errors import TrendlakeError


class RunNotFoundError(TrendlakeError):
    """No run of that id was recorded for the pattern."""

    code = "RUN_NOT_FOUND"

    @classmethod
    def of(cls, run_id: str, pattern: str, path: str) -> RunNotFoundError:
        """The error for `run_id` of `pattern`, looked for in the runs table at `path`."""
        return cls(
            f"no run '{run_id}' of pattern '{pattern}' is recorded",
            hint=f"recorded runs are the rows of the Delta table {path}",
        )
