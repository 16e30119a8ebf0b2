"""The folder of what takes long to make: machine code, tables of parsers, compiled templates.

All of these are code: another user who can write there runs code as the one who reads it. So a folder counts only if
no other user can have written there.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

before_compilation = list[Callable[[], None]]()
"""Functions that are called each time that a kernel is about to be compiled."""
PRIVATE = 0o700
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


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
