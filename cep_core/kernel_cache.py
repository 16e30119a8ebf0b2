"""Where the machine code of kernels is cached: a private folder, named by the source of all compiled code.

numba compares only the file of the outermost function with the cached one, but a kernel holds the functions and
constants of other files inlined: the folder's name changes with any of them. Every package `kernels` imports this
module first. numba's index is a pickle: whoever can write it runs code as whoever reads it, so a folder counts only if
no other user can have written there.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numba
from numba.core.caching import Cache

PRIVATE = 0o700
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def source_digest() -> str:
    """Twelve hexadecimal digits that differ where numba, or a file with compiled code, does."""
    digest = hashlib.sha256(numba.__version__.encode())
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        if file.parent.name == "kernels" or file.name.endswith("opcodes.py") or file.name == "compiled.py":
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def cache_folder(name: str) -> Path:
    """The folder `name` below `trendlake` in the first place that is this user's alone: `TRENDLAKE_CACHE`,
    `XDG_CACHE_HOME`, `~/.cache`, the system's folder for temporary files; else a new one, of this process alone."""
    for home in _homes():
        for folder in (home, home / name):
            if not made_private(folder):
                break
        else:
            return home / name
    return Path(tempfile.mkdtemp(prefix="trendlake-"))


def _homes() -> Iterator[Path]:
    for named in (os.environ.get("TRENDLAKE_CACHE"), os.environ.get("XDG_CACHE_HOME")):
        if named:
            yield Path(named) / "trendlake"
    if os.environ.get("HOME"):
        yield Path(os.environ["HOME"]) / ".cache" / "trendlake"
    yield Path(tempfile.gettempdir()) / f"trendlake-{os.getuid()}"


def made_private(folder: Path) -> bool:
    """Whether `folder`, created if it is missing, exists, is this user's alone, no link, and can be written. One that
    others could write until now may hold what they have put there: it is not taken, and left as it is."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir(PRIVATE)
        facts = folder.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & _OTHERS_WRITE:
            return False
        if stat.S_IMODE(facts.st_mode) != PRIVATE:
            folder.chmod(PRIVATE)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


@contextmanager
def _cache_or_compile(_: Cache) -> Iterator[None]:
    """A cache that cannot be written (a full disk) or read (half a file) costs the time to compile, and no more."""
    with suppress(Exception):  # whatever a file holds that is not whole
        yield


Cache._guard_against_spurious_io_errors = _cache_or_compile  # type: ignore[method-assign, assignment]
"""numba's own guard, around each look-up and each entry that it writes, lets all errors through but on Windows."""
numba.config.CACHE_DIR = str(cache_folder(f"kernels-{source_digest()}"))  # type: ignore[attr-defined]
