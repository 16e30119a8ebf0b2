"""The unit in which doubles are summed up exactly."""

from __future__ import annotations

from trendlake.cep_core.events.array_types import Bools, Float64s
from trendlake.cep_core.events.arrays import read_only

_FAR = 900
"""Of greater powers of two a sum might be no normal double."""
_MOST_BITS = 125


def unit_of(values: Float64s, known: Bools) -> int | None:
    """The power of two in which all values that are known are whole numbers; None where their sums might not fit two
    words."""
    from trendlake.cep_core.match_recognize.kernels.exact import extent  # brings numba

    least, greatest = extent(read_only(values), read_only(known))
    if least > greatest:
        return 0
    if greatest - least + len(values).bit_length() > _MOST_BITS or greatest > _FAR or least < -_FAR:
        return None
    return least
