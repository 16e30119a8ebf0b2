"""Where the machine code of kernels is cached: a folder named by the source of all compiled code.

numba compares only the file of the outermost function with the cached one, but a kernel holds the functions and
constants of other files inlined: the folder's name changes with any of them. Every package `kernels` imports this
module first.

A wheel may bring machine code for `PROCESSOR` along (`scripts/machine_code.py` makes it): to compile what the first
pattern of a kind needs takes up to half a minute. It is used only where it was made with the same source, Python,
numba, llvmlite and numpy, and where the processor has all `FEATURES`; everywhere else kernels are compiled.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import platform
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite import binding
from numba.core.caching import Cache, FunctionCache

from trendlake.cep_core.cache_folder import before_compilation, cache_folder

PROCESSOR = "x86-64-v3"
FEATURES = ("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf", "sse4.2", "xsave")
"""By LLVM's names, those that the level 3 of the x86-64 psABI asks for."""
SHIPPED = Path(__file__).parent / "machine_code"
MADE_WITH = "made_with.json"


@cache
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


def made_with() -> dict[str, str]:
    """Everything that machine code depends on, but the processor."""
    python = f"{sys.implementation.cache_tag}{sys.abiflags}"
    versions = {"numba": numba.__version__, "llvmlite": llvmlite.__version__, "numpy": np.__version__}
    system = f"{sys.platform} {platform.machine()} {platform.libc_ver()[0]}"
    return {"python": python, "system": system, "source": source_digest(), "processor": PROCESSOR, **versions}


@cache
def usable(folder: Path) -> bool:
    """Whether the machine code in `folder` may be run by this process."""
    try:
        said = json.loads((folder / MADE_WITH).read_text())
    except (OSError, ValueError):
        return False
    if said != made_with():
        return False
    features = binding.get_host_cpu_features()
    return all(features.get(name, False) for name in FEATURES)


class KernelCache(FunctionCache):
    """The cache of a kernel: the user's, then the wheel's. `made_in`: where what is compiled is left for a wheel."""

    made_in: Path | None = None

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        compiled = super()._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if compiled is None and usable(SHIPPED):
            file = SHIPPED / self._name_of(sig, target_context.codegen())
            if file.is_file():
                compiled = self._impl.rebuild(target_context, pickle.loads(zlib.decompress(file.read_bytes())))
        if compiled is None:
            for tell in before_compilation:
                tell()
        return compiled

    def _save_overload(self, sig: Any, data: Any) -> None:
        super()._save_overload(sig, data)  # type: ignore[no-untyped-call]
        if self.made_in is not None and self._impl.check_cachable(data):
            file = self.made_in / self._name_of(sig, data.codegen)
            file.write_bytes(zlib.compress(pickle.dumps(self._impl.reduce(data)), 9))

    def _name_of(self, sig: Any, codegen: Any) -> str:
        """The file of the kernel's machine code for arguments of these types: without the processor, which numba's own
        key names."""
        _, _, code = self._index_key(sig, codegen)  # type: ignore[no-untyped-call]
        key = f"{self._py_func.__module__} {self._impl.filename_base} {sig} {code}"
        return f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.z"


Cache._guard_against_spurious_io_errors = _cache_or_compile  # type: ignore[method-assign, assignment]
"""numba's own guard, around each look-up and each entry that it writes, lets all errors through but on Windows."""
numba.config.CACHE_DIR = str(cache_folder(f"kernels-{source_digest()}"))  # type: ignore[attr-defined]
