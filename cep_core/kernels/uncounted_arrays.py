"""Arrays whose references numba does not count.

Every call that takes an array counts it up and down, atomically: in `active_runs.advance`, whose inner calls take some
nanoseconds, that was four fifths of the time (measured). The arrays belong to the caller, who keeps them until the
kernel returns; and a kernel that never keeps, returns or makes arrays need not count them.
"""

from __future__ import annotations

from typing import Any, cast

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def _borrowed(context: Any, arrays: Any) -> Any:
    """See `borrowed`."""
    if not (isinstance(arrays, types.Array) or all(isinstance(one, types.Array) for one in arrays)):
        return None

    def one(target: Any, builder: Any, kind: Any, value: Any) -> Any:
        array = target.make_array(kind)(target, builder, value=value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)  # type: ignore[no-untyped-call]
        return array._getvalue()

    def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        (kind,), (value,) = signature.args, values
        if isinstance(kind, types.Array):
            return one(target, builder, kind, value)
        parts = cgutils.unpack_tuple(builder, value)  # type: ignore[no-untyped-call]
        return target.make_tuple(builder, kind, [one(target, builder, k, v) for k, v in zip(kind, parts, strict=True)])

    return arrays(arrays), generate


borrowed = cast(Any, _borrowed)
"""borrowed(array or tuple of arrays), in compiled code: the same, without an owner."""
