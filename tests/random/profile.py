"""The settings of every property test in `make test`: the same examples each time, no clock, no database."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
)

CI = settings.get_profile("ci")
T = TypeVar("T")

ALL = os.environ.get("EXAMPLES") == "all" or "TRENDLAKE_CHAOS" in os.environ
"""Whether random tests have all their examples: before a release, and in `make chaos`. `make test` takes a tenth, so
that it stays quick enough to be run often; `make fuzz` draws others as long as one likes."""
CHAOS_EXAMPLES = 4
"""How many times as many examples a test marked `more_in_chaos` has in `make chaos`."""


def share(count: int, least: int = 1) -> int:
    """How many of `count` random examples a test has now; `least`: fewer would say too little."""
    if "TRENDLAKE_CHAOS" in os.environ:
        return count * CHAOS_EXAMPLES
    return count if ALL else max(least, -(-count // 10))


def every(step: int, cases: Sequence[T]) -> list[T]:
    """The worked cases that a test asks on Spark: one in `step` in `make test`, which asks the engine all of them."""
    return list(cases if ALL else cases[::step])


def examples(count: int, **more: Any) -> settings:
    """The settings of a property test that has `count` examples with `EXAMPLES=all`; `more` as of Hypothesis."""
    return settings(CI, max_examples=share(count), **more)


OPEN_ENDED = settings(
    deadline=None,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
    print_blob=False,
    report_multiple_bugs=False,
)
"""Of a search that goes on until its time is over: nothing is known beforehand, and nothing is too slow."""
