"""The settings of every property test in `make test`: the same examples each time, no clock, no database."""

from __future__ import annotations

import os
from typing import Any

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

ALL = os.environ.get("EXAMPLES") == "all" or "TRENDLAKE_CHAOS" in os.environ
"""Whether random tests have all their examples: in `.ci/run`, before a change lands, and in `make chaos`. `make test`
takes a third, so that it stays quick enough to be run often."""
CHAOS_EXAMPLES = 4
"""How many times as many examples a test marked `more_in_chaos` has in `make chaos`."""


def share(count: int) -> int:
    """How many of `count` random examples a test has now."""
    if "TRENDLAKE_CHAOS" in os.environ:
        return count * CHAOS_EXAMPLES
    return count if ALL else -(-count // 3)


def examples(count: int, **more: Any) -> settings:
    """The settings of a property test that has `count` examples in `.ci/run`; `more` as of Hypothesis."""
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
