"""A cache of what was read from the logs of tables on this machine's disk, valid while the file of the version's commit
is the same: to open a table takes ten times as long as to see that."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

TABLES = 2_048
"""Tables whose answers are held: all of a project of many patterns."""
COMMIT = re.compile(r"[0-9]{20}\.json", re.ASCII)
"""A file of the log that is a version (Delta's protocol, "Delta Log Entries")."""
T = TypeVar("T")
Stamp = tuple[int, int, int]
"""The stamp by which a file differs from another one in its place: number on disk, size in bytes, nanoseconds of its
time."""


def cache_by_commit(read: Callable[[Path, int | None], T], versions: int = 8) -> Callable[[Path, int | None], T]:
    """`read` of a table's folder and version (None: the newest), whose answers are held, of so many `versions` of a
    table. It may not depend on anything but the log up to that version. Its exceptions are not held."""

    @lru_cache(maxsize=TABLES)
    def of_table(folder: Path) -> Callable[[int, Stamp], T]:
        @lru_cache(maxsize=versions)
        def remembered(version: int, _: Stamp) -> T:
            return read(folder, version)

        return remembered

    def answer(folder: Path, version: int | None = None) -> T:
        log = f"{folder}/_delta_log"
        wanted = newest_commit(log) if version is None else version
        entry = None if wanted is None else stamp(_commit(log, wanted))
        if wanted is None or entry is None:
            return read(folder, version)
        return of_table(folder)(wanted, entry)

    return answer


def newest_commit(log: str) -> int | None:
    """The newest version of the table whose log is in the folder `log`; None where it has none.

    Versions follow one another without a gap (Delta's protocol, "Delta Log Entries"): while the commit that was the
    newest is still that file, only the ones after it are looked for, and not among all names of the folder."""
    seen = _seen(log)
    if seen.commit is not None and stamp(_commit(log, seen.commit[0])) == seen.commit[1]:
        newest = seen.commit[0]
        while os.path.exists(_commit(log, newest + 1)):
            newest += 1
        if newest == seen.commit[0]:
            return newest
    else:
        names = sorted(os.listdir(log), reverse=True)
        listed = next((int(name[:20]) for name in names if COMMIT.fullmatch(name)), None)
        if listed is None:
            return None
        newest = listed
    about = stamp(_commit(log, newest))
    seen.commit = None if about is None else (newest, about)
    return newest


@dataclass
class _Seen:
    """The newest commit of a log when it was last looked at, and the stamp of its file."""

    commit: tuple[int, Stamp] | None = None


@lru_cache(maxsize=TABLES)
def _seen(_: str) -> _Seen:
    return _Seen()


def _commit(log: str, version: int) -> str:
    return f"{log}/{version:020d}.json"  # a Path takes longer to put together than the file to be looked at


def stamp(file: Path | str) -> Stamp | None:
    """None where there is no such file."""
    try:
        about = os.stat(file)
    except FileNotFoundError:
        return None
    return about.st_ino, about.st_size, about.st_mtime_ns
