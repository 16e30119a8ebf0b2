"""A project as a caller from Python has it: the commands' work for it, in silence, and their errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Never

from trendlake.cep_core.errors import PatternErrors, TrendlakeError
from trendlake.jobs.terminal.hints import as_typed, given
from trendlake.jobs.terminal.lines import silence
from trendlake.jobs.terminal.user_errors import user_error
from trendlake.jobs.terminal.workspace import Place, session, started_lake
from trendlake.pipelines.errors import NeedsSparkError
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.redaction import redacted

APP = "trendlake in Python"


@dataclass(frozen=True)
class Caller:
    """`folder`, `profile`: as the caller has named them, for the commands in messages. `own`: of the caller's session;
    the lake of `place` is of another one of the same Spark."""

    place: Place
    folder: Path | None
    profile: str | None
    own: Lake | None = None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Around all that a command does, which says nothing meanwhile. Raises errors as it would print them."""
        with silence(), given(self.profile, self.folder):
            try:
                yield
            except Exception as error:
                mistake = user_error(error)
                if mistake is None:
                    raise
                _reword(mistake)
                if mistake is error:
                    raise
                raise mistake from error

    def reading(self) -> Lake:
        """A lake for questions, which start no Spark: they ask that which has started, if they need one."""
        return started_lake(self.place) or Lake.on_demand(
            self.place.warehouse, self.place.project, self.place.profile, APP, refuse=_refuse_start
        )

    @contextmanager
    def on_spark(self) -> Iterator[Lake]:
        """A lake whose Spark may start, and is the caller's own session where that is given."""
        if self.own is not None:
            yield self.own
            return
        with session(self.place, APP) as lake:
            yield lake


def needs_spark(reason: str) -> NeedsSparkError:
    return NeedsSparkError(
        f"only Spark reads these rows: {reason}",
        hint="`.spark()` gives them as a frame of Spark and starts it; or Project(..., spark=session)",
    )


def _refuse_start() -> Never:
    raise needs_spark("their table is elsewhere, is large, or is of a form that this process does not read")


def _reword(error: TrendlakeError) -> None:
    """Commands in the error work as typed, and it shows no secrets."""
    error.message = as_typed(redacted(error.message))
    error.hint = error.hint and as_typed(redacted(error.hint))
    for one in error.errors if isinstance(error, PatternErrors) else ():
        _reword(one)
