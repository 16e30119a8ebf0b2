"""Types of arrays, named by dtype. Shapes are in the docstrings of who uses them.

Arrow's arrays are annotated as `pa.Array`: to mypy that is `Any`, as pyarrow has no type stubs.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Bools: TypeAlias = npt.NDArray[np.bool_]
Int8s: TypeAlias = npt.NDArray[np.int8]
Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]
UInt8s: TypeAlias = npt.NDArray[np.uint8]
UInt64s: TypeAlias = npt.NDArray[np.uint64]
Float64s: TypeAlias = npt.NDArray[np.float64]

Codes: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]
"""Places, codes or ranks: int32 where that is enough, else int64."""
AnyArray: TypeAlias = npt.NDArray[Any]
"""Any dtype: numbers of several tiers, or whatever a column holds."""
Positions: TypeAlias = npt.NDArray[np.int64] | slice
"""Rows by their places, or a slice of them."""

MOST_EXACT = 2**53
"""A double holds every whole number up to it."""
