"""Where a step works on its rows: in this process, or on Spark; the answer and its reason go to the run record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from trendlake.pipelines.errors import LocalUnsupportedError, RoadClosedError
from trendlake.pipelines.project.profile import Limits

On = Literal["here", "spark"]
ROADS: tuple[On, ...] = get_args(On)
T = TypeVar("T")


@dataclass(frozen=True)
class Road:
    """`reason`: why Spark, for people; empty for this process."""

    on: On
    reason: str = ""

    def __str__(self) -> str:
        """`in this process`, or `on Spark: 1,200,000 rows, more than 20,000`."""
        return "in this process" if self.on == "here" else f"on Spark: {self.reason}"


HERE = Road("here")


def road_of(record: Mapping[str, Any]) -> str:
    """`Road` of a run record, by its columns, in words; empty where the record does not say it."""
    on = record.get("road")
    return str(Road(on, record.get("road_reason") or "")) if on in ROADS else ""


@dataclass(frozen=True)
class Roads:
    """Which road a run may take: `asked` by the user, else by the `limits` of the profile."""

    limits: Limits
    asked: On | None = None

    @property
    def always_spark(self) -> str:
        """Why each step is done on Spark, whatever the rows are; empty where that depends on them."""
        if self.asked == "spark":
            return "asked for by --on spark"
        if self.asked is None and self.limits.driver_rows == 0:
            return "`limits.driver_rows` is 0"
        return ""

    @property
    def computed_here(self) -> tuple[int, str]:
        """How many events this process may compute, and the name of that limit: where the user asked for this process,
        as many as a worker may hold."""
        driver, worker = (self.limits.driver_rows, "driver_rows"), (self.limits.shard_rows, "shard_rows")
        return worker if self.asked == "here" else min(driver, worker)

    def take(self, step: str, local: Callable[[], T], by_spark: Callable[[], T]) -> tuple[T, Road]:
        """The result of `local`, or, where this process cannot do it, that of `by_spark`. `local` raises
        LocalUnsupportedError, before it has changed anything. Raises RoadClosedError where `here` was asked for."""
        reason = self.always_spark
        if not reason:
            try:
                return local(), HERE
            except LocalUnsupportedError as error:
                reason = str(error)
        self.refuse(step, reason)
        return by_spark(), Road("spark", reason)

    def refuse(self, step: str, reason: str) -> None:
        """Raises RoadClosedError if this process was asked for `step`, which only Spark can do for `reason`."""
        if self.asked == "here":
            raise RoadClosedError(
                f"{step} cannot be done in this process: {reason}",
                hint="leave out `--on here`, or, where it is the number of rows, raise the limit that "
                "docs/here-or-on-spark.md names",
            )
