"""Where a step works on its rows: in this process, or on Spark; the answer and its reason go to the run record.

Work in this process is given to `tried`, `either` or `Roads.take`, which know what another library raises where it
cannot go on, and ask Spark then. A mistake of ours (KeyError, TypeError, ValueError) is none of that, and is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Any, Literal, TypeVar, get_args

import pyarrow as pa
from deltalake.exceptions import DeltaError

from trendlake.pipelines.errors import OtherwiseWrittenError, RoadClosedError
from trendlake.pipelines.project.profile import Limits

On = Literal["here", "spark"]
ROADS: tuple[On, ...] = get_args(On)
T = TypeVar("T")
OF_OTHERS = (DeltaError, pa.ArrowException, UnicodeDecodeError, JSONDecodeError, OSError, OtherwiseWrittenError)
"""Errors of delta-rs, Arrow (also of texts that are not UTF-8) and the disk; of files that are otherwise written."""


class NotHereError(Exception):
    """This process cannot do the work as Spark does it, with the same result. The message says why. No user sees it."""


@dataclass(frozen=True)
class NotHere:
    """In place of an answer of this process: why only Spark can give it, for people."""

    reason: str


def tried(work: Callable[[], T | NotHere]) -> T | NotHere:
    """The answer of `work`, which changes nothing where it has none. Its own mistakes are raised."""
    try:
        return work()
    except NotHereError as error:
        return NotHere(str(error))
    except OF_OTHERS as error:
        return NotHere(f"{type(error).__name__}: {error}")


def either(here: Callable[[], T | NotHere], by_spark: Callable[[], T]) -> T:
    """The answer of `here`, as of `tried`, or, where this process has none, that of `by_spark`."""
    answer = tried(here)
    return by_spark() if isinstance(answer, NotHere) else answer


def answer_of(given: T | NotHere) -> T:
    """The answer, for work that cannot go on without it. Raises NotHereError where there is none."""
    if isinstance(given, NotHere):
        raise NotHereError(given.reason)
    return given


def refuse(reasons: Mapping[str, bool]) -> None:
    """Raises NotHereError for the first of the `reasons` that holds."""
    reason = next((text for text, holds in reasons.items() if holds), None)
    if reason is not None:
        raise NotHereError(reason)


def refuse_more(count: int, most: int, of: str) -> None:
    """Raises NotHereError where `count` is above `most`, a number of `lake.limits`. `of`: what is counted."""
    refuse({f"{count:,} {of}, more than {most:,}": count > most})


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

    def take(self, step: str, here: Callable[[], T | NotHere], by_spark: Callable[[], T]) -> tuple[T, Road]:
        """As `either`, with the road. Raises RoadClosedError where `here` was asked for, and has no answer."""
        answer = NotHere(self.always_spark) if self.always_spark else tried(here)
        if not isinstance(answer, NotHere):
            return answer, HERE
        self.refuse(step, answer.reason)
        return by_spark(), Road("spark", answer.reason)

    def refuse(self, step: str, reason: str) -> None:
        """Raises RoadClosedError if this process was asked for `step`, which only Spark can do for `reason`."""
        if self.asked == "here":
            raise RoadClosedError(
                f"{step} cannot be done in this process: {reason}",
                hint="leave out `--on here`, or, where it is the number of rows, raise the limit that "
                "docs/here-or-on-spark.md names",
            )
