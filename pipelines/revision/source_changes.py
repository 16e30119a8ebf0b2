"""Reads of a source that revisions of several patterns share, each done once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pyspark.sql import DataFrame

from trendlake.pipelines.errors import LocalUnsupportedError

T = TypeVar("T")
NET = "__trendlake_net"
"""Column: how many copies of a row came, below 0 went."""


class SourceChanges:
    """Reads of a source that revisions of several patterns share: each done once, with the same answer for all."""

    def __init__(self) -> None:
        self._known: dict[object, Any] = {}
        self._persisted: list[DataFrame] = []

    def once(self, key: object, read: Callable[[], T]) -> T:
        """The result of `read` at the first call with this `key`; also the LocalUnsupportedError that it raised."""
        if key not in self._known:
            try:
                self._known[key] = read()
            except LocalUnsupportedError as error:
                self._known[key] = error
        known = self._known[key]
        if isinstance(known, LocalUnsupportedError):
            raise LocalUnsupportedError(str(known))
        value: T = known
        return value

    def hold(self, frames: tuple[DataFrame, ...]) -> None:
        """Frames that are held in memory until `close`."""
        self._persisted += frames

    def close(self) -> None:
        """Frees what is held in memory."""
        for frame in self._persisted:
            frame.unpersist()
        self._persisted.clear()
