"""Sends a stage's events. Nobody's run fails because lineage cannot be told: that is one line of warning."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from pipelines.error_text import in_words
from pipelines.project.lineage_settings import Lineage

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import RunEvent

    from pipelines.delta.tables import Warehouse
    from pipelines.runs.stage import Record

LOG = logging.getLogger("trendlake.lineage")


@contextmanager
def events_sent(spark: SparkSession, warehouse: Warehouse, record: Record) -> Iterator[None]:
    """Around a stage: START, then COMPLETE, or FAIL with the reason, of one OpenLineage run. What the events say is
    read from `record` at that moment. A stage whose START cannot be sent is not told of any further."""
    lineage = warehouse.lineage
    if lineage is None:
        yield
        return
    from pipelines.runs import lineage_events  # imports OpenLineage's client, a second that others need not wait

    step = lineage_events.Step(spark, warehouse, lineage.namespace, record)
    started = _sent(lineage, step.started)
    try:
        yield
    except Exception as error:
        if started:
            reason = in_words(error)
            _sent(lineage, lambda: step.failed(reason))
        raise
    if started:
        _sent(lineage, step.completed)


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
