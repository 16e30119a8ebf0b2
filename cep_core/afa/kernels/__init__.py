"""Compiled kernels of kind automaton. Their machine code is cached in a folder named by their own source (numba itself
looks only at the file of the outermost function) and by that of the shared kernels, which they hold inlined."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numba

import cep_core.kernels  # noqa: F401 - says where caches lie

_shared = Path(str(numba.config.CACHE_DIR))  # type: ignore[attr-defined]
_digest = hashlib.sha256(_shared.name.encode())
for _file in sorted(Path(__file__).parent.glob("*.py")):
    _digest.update(_file.read_bytes())

numba.config.CACHE_DIR = str(_shared.parent / f"automata-{_digest.hexdigest()[:12]}")  # type: ignore[attr-defined]
from cep_core.afa.kernels import arcs, firsts, frontier  # noqa: E402, F401 - compiled for that folder

numba.config.CACHE_DIR = str(_shared)  # type: ignore[attr-defined]
