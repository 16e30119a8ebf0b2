"""Compiled kernels. Their machine code is cached in a folder named by the kernels' own source, so that a new version
never runs an old one's code (numba itself looks only at the file of the outermost function)."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import numba


def _cache_folder() -> Path:
    digest = hashlib.sha256(numba.__version__.encode())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    name = f"kernels-{digest.hexdigest()[:12]}"
    homes = [os.environ.get("TRENDLAKE_CACHE"), os.environ.get("XDG_CACHE_HOME")]
    if os.environ.get("HOME"):
        homes.append(str(Path(os.environ["HOME"]) / ".cache"))
    for home in homes:
        if home:
            folder = Path(home) / "trendlake" / name
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError:
                continue
            if os.access(folder, os.W_OK):
                return folder
    return Path(tempfile.gettempdir()) / f"trendlake-{os.getuid()}" / name


numba.config.CACHE_DIR = str(_cache_folder())  # type: ignore[attr-defined]
