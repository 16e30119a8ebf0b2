"""Values of rows that this process has read, compared as Spark compares them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def comparable(value: Any) -> tuple[Any, ...]:
    """What Python orders, and finds equal, as Spark does with `value` (`ORDER BY`, `<=>`): NULL is the least and equals
    itself, so does NaN, the greatest of the numbers; -0.0 is 0.0. Hashable."""
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        return (1, tuple(map(comparable, value)))
    return (1, value)
