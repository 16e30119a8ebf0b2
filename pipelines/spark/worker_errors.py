"""The error that a worker raised for the user, taken out of Spark's exception."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException

from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.errors import OtherwiseWrittenError, ShardTooLargeError

CODES = (
    "SHARD_TOO_LARGE",
    "OTHERWISE_WRITTEN",
    "WINDOW_TOO_LARGE",
    "TOO_MANY_MATCHES",
    "NOT_SUPPORTED",
    "BAD_EVENTS",
    "SKIP_FAILED",
    "SEARCH_TOO_LONG",
    "LIMIT",
)
"""Of the errors that a worker raises for the user."""


@contextmanager
def told_by_workers() -> Iterator[None]:
    """Raises what a worker raised for the user as it was raised; any other error of Spark as it is. Spark gives that of
    the first partition, which fails while it is written, as Java's own error."""
    try:
        yield
    except (PythonException, Py4JJavaError) as error:
        original = _original_error(str(error))
        if original is None:
            raise
        raise original from error


def _original_error(traceback: str) -> TrendlakeError | None:
    code = re.search(rf"\[({'|'.join(CODES)})\] (.*)", traceback)
    if code is None:
        return None
    return coded(code[1], code[2])


def coded(code: str, message: str, hint: str | None = None) -> TrendlakeError:
    """The error of this code."""
    for known in (ShardTooLargeError, OtherwiseWrittenError):
        if code == known.code:
            return known(message, hint=hint)
    mine = TrendlakeError(message, hint=hint)
    mine.code = code
    return mine
