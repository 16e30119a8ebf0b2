"""Sends a stage's events. No run fails because an event cannot be sent: that is one line of warning."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from trendlake.pipelines.error_text import in_words
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.project.lineage_settings import Lineage

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import RunEvent

    from trendlake.pipelines.runs.stage import Record

LOG = logging.getLogger("trendlake.lineage")


class Telling:
    """Reports a stage as an OpenLineage run: START when it is made; at its `end` COMPLETE, or FAIL with the reason. The
    events say what the record says then. Nothing more is sent for a stage whose START cannot be sent."""

    def __init__(self, lake: Lake, record: Record) -> None:
        self.lineage = lake.warehouse.lineage
        if self.lineage is None:
            return
        from trendlake.pipelines.runs import (
            lineage_events,  # imports OpenLineage's client, a second that others need not wait
        )

        self.step = lineage_events.Step(lake, self.lineage.namespace, record)
        self.started = _sent(self.lineage, self.step.started)

    def end(self, error: Exception | None) -> None:
        if self.lineage is None or not self.started:
            return
        if error is None:
            _sent(self.lineage, self.step.completed)
        else:
            reason = in_words(error)
            _sent(self.lineage, lambda: self.step.failed(reason))


def _sent(lineage: Lineage, make: Callable[[], RunEvent]) -> bool:
    try:
        _client(lineage).emit(make())
    except Exception as error:
        LOG.warning("lineage: an event could not be sent: %s", in_words(error))
        return False
    return True


@lru_cache(maxsize=4)
def _client(lineage: Lineage) -> OpenLineageClient:
    from openlineage.client import OpenLineageClient

    lineage.make_folder()
    # else the client tells where the working directory's code comes from: an address that may hold a password
    facets = {"source_code_location": {"disabled": True}}
    return OpenLineageClient(config={"transport": lineage.transport.client(), "facets": facets})
