"""A bound on what a compressed file may hold: a few kilobytes can unpack to more than a disk takes."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

from trendlake.pipelines.errors import SourceFileError

UNPACKED = 1 << 30
"""Bytes that any compressed file may unpack to."""
RATIO = 200
"""Larger files may unpack to so many times their size."""


class Unpacked:
    """Counts what comes out of a compressed file."""

    def __init__(self, path: Path, way_out: str) -> None:
        self.path = path
        self.way_out = way_out
        self.packed = path.stat().st_size
        self.bytes = 0

    def add(self, count: int) -> None:
        """Raises SourceFileError when it is more than the file may hold."""
        self.bytes += count
        limit = max(UNPACKED, RATIO * self.packed)
        if self.bytes > limit:
            raise SourceFileError(
                f"{self.path}, {self.packed:,} bytes, unpacks to more than {limit:,} bytes: it is not read further",
                hint=f"if it is meant to hold so much, {self.way_out}",
            )


class _Counted(io.RawIOBase):
    def __init__(self, file: Any, unpacked: Unpacked) -> None:
        self._file = file
        self._unpacked = unpacked

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self._file.readinto(buffer))
        self._unpacked.add(count)
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def open_bytes(path: Path) -> io.BufferedReader:
    """The file's bytes, unpacked where its name ends in .gz; reading them raises SourceFileError beyond the bound."""
    if not path.name.lower().endswith(".gz"):
        return path.open("rb")
    unpacked = Unpacked(path, "unpack it first (gunzip), or write it in parts")
    return io.BufferedReader(_Counted(gzip.open(path), unpacked), 1 << 20)
