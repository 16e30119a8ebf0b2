"""How a kernel is declared: by who calls it.

Wrappers take numba a sixth of the time to compile a kernel: one for Python, which takes each argument apart, and one
for other languages. Only functions that Python calls have the first, and none has the second. To call one without it
from Python ends the process: a test sees that nothing outside the folders of kernels names such a function
(`tests/repository/test_kernels.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

from numba import njit

import cep_core.kernel_cache  # noqa: F401 - before the first kernel is declared

Function = TypeVar("Function", bound=Callable[..., Any])


class Compile(Protocol):
    """What gives a function that is called as the one it takes."""

    def __call__(self, function: Function, /) -> Function: ...


def _with(**more: Any) -> Compile:
    options: Any = {"cache": True, "nogil": True, "no_cfunc_wrapper": True, **more}
    return cast(Compile, njit(**options))


entry = _with()
"""A function that Python calls, and kernels may."""
part = _with(no_cpython_wrapper=True)
"""A function that kernels alone call."""
inlined = _with(no_cpython_wrapper=True, forceinline=True)
"""As `part`; its machine code is put where it is called."""
expanded = _with(no_cpython_wrapper=True, inline="always")
"""As `part`; its statements are put where it is called, before types are inferred."""
