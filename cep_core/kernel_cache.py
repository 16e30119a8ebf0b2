"""Where the machine code of kernels is cached: a folder named by the source of all compiled code.

numba compares only the file of the outermost function with the cached one, but a kernel holds the functions and
constants of other files inlined: the folder's name changes with any of them. Every package `kernels` imports this
module first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numba
from numba.core.caching import Cache

from trendlake.cep_core.cache_folder import cache_folder


def source_digest() -> str:
    """Twelve hexadecimal digits that differ where numba, or a file with compiled code, does."""
    digest = hashlib.sha256(numba.__version__.encode())
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        if file.parent.name == "kernels" or file.name.endswith("opcodes.py") or file.name == "compiled.py":
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@contextmanager
def _cache_or_compile(_: Cache) -> Iterator[None]:
    """A cache that cannot be written (a full disk) or read (half a file) costs the time to compile, and no more."""
    with suppress(Exception):  # whatever a file holds that is not whole
        yield


Cache._guard_against_spurious_io_errors = _cache_or_compile  # type: ignore[method-assign, assignment]
"""numba's own guard, around each look-up and each entry that it writes, lets all errors through but on Windows."""
numba.config.CACHE_DIR = str(cache_folder(f"kernels-{source_digest()}"))  # type: ignore[attr-defined]
