"""Arrays whose references numba does not count.

Every call that takes an array counts it up and down, atomically: in `active_runs.advance`, whose inner calls take some
nanoseconds, that was four fifths of the time (measured). The arrays belong to the caller, who keeps them until the
kernel returns; and a kernel that never keeps, returns or makes arrays does not have to count them.
"""

from __future__ import annotations

from typing import Any, cast

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _parts(kind: Any) -> Any:
    """The types in numba's type of a tuple."""
    return kind.types


def _is_borrowable(kind: Any) -> bool:
    """Whether numba's type is an array, a number or a truth value, or a tuple of such, named or not, however deep."""
    if isinstance(kind, types.Array | types.Number | types.Boolean):
        return True
    return isinstance(kind, types.BaseTuple) and all(_is_borrowable(part) for part in _parts(kind))


@intrinsic
def _borrowed(context: Any, arrays: Any) -> Any:
    """See `borrowed`."""
    if not _is_borrowable(arrays):
        return None

    def one(target: Any, builder: Any, kind: Any, value: Any) -> Any:
        if isinstance(kind, types.BaseTuple):
            parts = cgutils.unpack_tuple(builder, value)  # type: ignore[no-untyped-call]
            inner = [one(target, builder, k, v) for k, v in zip(_parts(kind), parts, strict=True)]
            return target.make_tuple(builder, kind, inner)
        if not isinstance(kind, types.Array):
            return value
        array = target.make_array(kind)(target, builder, value=value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)  # type: ignore[no-untyped-call]
        return array._getvalue()

    def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        (kind,), (value,) = signature.args, values
        return one(target, builder, kind, value)

    return arrays(arrays), generate


borrowed = cast(Any, _borrowed)
"""borrowed(array or tuple of arrays and numbers, named or not), in compiled code: the same, without an owner."""
