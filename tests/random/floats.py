"""Floats by their bits: NaN of every kind, zero of either sign, and values beside each other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from trendlake.cep_core.events.arrays import arrow

NANS = tuple(
    np.array(
        [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001, 0xFFFFFFFFFFFFFFFF, 0x7FF0000000000001], np.uint64
    )
    .view(np.float64)
    .tolist()
)
"""As Java, `inf - inf` and others make it: quiet and signalling, with and without the sign bit."""

_NAN64 = st.builds(
    lambda sign, payload: sign << 63 | 0x7FF << 52 | payload, st.integers(0, 1), st.integers(1, (1 << 52) - 1)
)
_NAN32 = st.builds(
    lambda sign, payload: sign << 31 | 0xFF << 23 | payload, st.integers(0, 1), st.integers(1, (1 << 23) - 1)
)
_BITS64 = _NAN64 | st.sampled_from([0, 1 << 63, 1, 0x3FF0000000000000, 0x3FF0000000000001, 0x7FF0000000000000])
_BITS32 = _NAN32 | st.sampled_from([0, 1 << 31, 1, 0x3F800000, 0x3F800001, 0x7F800000])


@st.composite
def float_arrays(draw: st.DrawFn, size: int = 12) -> pa.Array:
    """float32 or float64 with these bits; some are NULL."""
    wide = draw(st.booleans())
    bits = draw(st.lists(_BITS64 if wide else _BITS32, max_size=size))
    missing = draw(st.lists(st.booleans(), min_size=len(bits), max_size=len(bits)))
    values = np.array(bits, np.uint64 if wide else np.uint32).view(np.float64 if wide else np.float32)
    return arrow(values, np.array(missing, np.bool_))
