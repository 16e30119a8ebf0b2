"""How a kernel is declared: by who calls it.

numba makes two wrappers of a function: one for Python, which takes each argument apart, and one for other languages.
They took an eighth of the time to compile the kernels. Now only a function that Python calls has the first, and none
has the second. A call from Python of one without it ends the process: `tests/repository/test_kernels.py` checks that
nothing outside the folders of kernels names such a function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

from numba import njit

from trendlake.cep_core.kernel_cache import KernelCache

Function = TypeVar("Function", bound=Callable[..., Any])


class Compile(Protocol):
    """A decorator: the compiled function takes the same arguments."""

    def __call__(self, function: Function, /) -> Function: ...


def _with(**more: Any) -> Compile:
    options: Any = {"cache": True, "nogil": True, "no_cfunc_wrapper": True, **more}
    compiled = njit(**options)

    def declared(function: Function) -> Function:
        kernel = compiled(function)
        kernel._cache = KernelCache(function)  # type: ignore[no-untyped-call]
        return cast(Function, kernel)

    return declared


entry = _with()
"""A function that Python calls, and kernels may."""
part = _with(no_cpython_wrapper=True)
"""A function that kernels alone call."""
inlined = _with(no_cpython_wrapper=True, forceinline=True)
"""As `part`; its machine code is put where it is called."""
expanded = _with(no_cpython_wrapper=True, inline="always")
"""As `part`; its statements are put where it is called, before types are inferred."""
