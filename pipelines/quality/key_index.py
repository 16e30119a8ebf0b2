"""How often a key is in a table, without reading the keys of all its history: an index of the keys' hashes.

The files of a Delta table never change, so what an index holds of a file stays right. It is a copy, kept in the state
folder: where it is lost, or behind, the files that it lacks are read. Equal keys have equal hashes, so a key whose hash
occurs once occurs once; of one whose hash occurs twice nothing is known, and the caller compares the keys.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import AnyArray, Int64s, UInt64s
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import TableHere

Segment = tuple[UInt64s, AnyArray]
DEAD = 0.5
"""An index is built again when more than this share of its keys is of files that the table no longer has."""


def hashes_of(rows: pa.Table, columns: Sequence[str]) -> UInt64s:
    """uint64: the hash of each row's key, the same in every process."""
    from trendlake.pipelines.execute.hashing import row_hashes  # compiled code, which few runs need here

    return row_hashes([rows.column(name).combine_chunks() for name in columns], rows.num_rows)


def occurrences(root: Path, table: TableHere, columns: Sequence[str], hashes: UInt64s) -> Int64s:
    """int64: how many rows of `table` have each of `hashes`; brings the index below `root` up to date first. Raises
    NotHereError as `TableHere.every`, and where the index cannot be written."""
    name = hashlib.sha256("\0".join(columns).encode()).hexdigest()[:16]
    folder = root / table.table_id / name
    with _alone(folder):
        index = _Index.read(folder)
        if index.share_outside(table.files) > DEAD:
            index = _Index(folder)
        index.add_files(table, columns)
        return index.count(table.files, hashes)


@dataclass
class _Index:
    """`files`: all that have been added, by number; `sizes`: their keys. A segment holds the hashes of some files in
    ascending order, uint64, and with each the number of its file, uint32; a later one is at most half as long."""

    folder: Path
    files: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> _Index:
        """As it was written; empty where there is none, or it can't be read."""
        try:
            about = json.loads((folder / "index.json").read_text())
            names = about["segments"]
            parts = [tuple(np.load(folder / f"{name}.{part}.npy", mmap_mode="r") for part in PARTS) for name in names]
            return cls(folder, about["files"], about["sizes"], [(hashes, owners) for hashes, owners in parts])
        except (OSError, EOFError, ValueError, TypeError, LookupError):
            return cls(folder)

    def share_outside(self, files: Sequence[str]) -> float:
        """The share of keys of other files than `files`."""
        there = set(files)
        outside = sum(size for name, size in zip(self.files, self.sizes, strict=True) if name not in there)
        return outside / max(sum(self.sizes), 1)

    def add_files(self, table: TableHere, columns: Sequence[str]) -> None:
        """Reads the keys of the files that are new. Segments of like length are merged, so that each key is written
        some log2(files) times and few segments are looked into."""
        known = set(self.files)
        added = [name for name in table.files if name not in known]
        if not added:
            return
        parts = []
        for name in added:
            hashes = hashes_of(table.part([name]).every(list(columns), limits.KEYS_INDEXED), columns)
            parts.append((hashes, np.full(len(hashes), len(self.files), np.uint32)))
            self.files.append(name)
            self.sizes.append(len(hashes))
        self.segments.append(_sorted(parts))
        while len(self.segments) > 1 and 2 * len(self.segments[-1][0]) > len(self.segments[-2][0]):
            self.segments.append(_sorted([self.segments.pop(), self.segments.pop()]))
        self._write()

    def count(self, files: Sequence[str], hashes: UInt64s) -> Int64s:
        """int64: the number of rows of `files` with each of `hashes`."""
        there, live = set(files), np.zeros(len(self.files), np.bool_)
        live[:] = [name in there for name in self.files]
        total = np.zeros(len(hashes), np.int64)
        for known, owners in self.segments:
            low, high = np.searchsorted(known, hashes, "left"), np.searchsorted(known, hashes, "right")
            matches = high - low
            asked = np.repeat(np.arange(len(hashes)), matches)
            places = np.arange(len(asked)) - np.repeat(np.cumsum(matches) - matches, matches) + np.repeat(low, matches)
            np.add.at(total, asked[live[owners[places]]], 1)
        return total

    def _write(self) -> None:
        """A folder of segments, then the list that names them: who is killed in between leaves the index as it was."""
        self.folder.mkdir(parents=True, exist_ok=True)
        names = []
        for hashes, owners in self.segments:
            name = f"{len(hashes)}-{hashlib.sha256(owners.tobytes()).hexdigest()[:16]}"
            names.append(name)
            for part, values in zip(PARTS, (hashes, owners), strict=True):
                file = self.folder / f"{name}.{part}.npy"
                if not file.exists():
                    fresh = file.with_suffix(".partial")
                    with fresh.open("wb") as out:
                        np.save(out, values)
                    fresh.replace(file)
        fresh = self.folder / "index.partial"
        fresh.write_text(json.dumps({"files": self.files, "sizes": self.sizes, "segments": names}))
        fresh.replace(self.folder / "index.json")
        for file in self.folder.glob("*.npy"):
            if file.name.split(".")[0] not in names:
                file.unlink()


PARTS = ("hashes", "owners")


def _sorted(parts: Sequence[Segment]) -> Segment:
    hashes, owners = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    order = np.argsort(hashes, kind="stable")
    return hashes[order], owners[order]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
