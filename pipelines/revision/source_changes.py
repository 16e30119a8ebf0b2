"""Reads of a source that revisions of several patterns share, each done once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pyspark.sql import DataFrame

from trendlake.pipelines.lake.road import answer_of, tried

T = TypeVar("T")
NET = "__trendlake_net"
"""Column: how many copies of a row came, below 0 went."""


class SourceChanges:
    """Reads of a source that revisions of several patterns share: each done once, with the same answer for all."""

    def __init__(self) -> None:
        self._known: dict[object, Any] = {}
        self._persisted: list[DataFrame] = []

    def once(self, key: object, read: Callable[[], T]) -> T:
        """The answer of `read` at the first call with this `key`; where this process had none then, also later. Raises
        NotHereError."""
        if key not in self._known:
            self._known[key] = tried(read)
        value: T = answer_of(self._known[key])
        return value

    def hold(self, frames: tuple[DataFrame, ...]) -> None:
        """Frames that are held in memory until `close`."""
        self._persisted += frames

    def close(self) -> None:
        """Frees what is held in memory."""
        for frame in self._persisted:
            frame.unpersist()
        self._persisted.clear()
