"""Tables that only Spark reads, for tests that hold this process's answers against Spark's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from trendlake.pipelines.lake import commits, versions
from trendlake.pipelines.lake.here import read, write
from trendlake.pipelines.lake.road import NotHereError


def not_here(*_: Any, **__: Any) -> Any:
    """In place of a function of this process: as where the table lies elsewhere."""
    raise NotHereError("for the test")


@contextmanager
def only_spark() -> Iterator[None]:
    """Every table is as if it lay elsewhere than on this machine's disk."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (commits, read, versions, write):
            patch.setattr(module, "folder_on_disk", not_here)
        yield
