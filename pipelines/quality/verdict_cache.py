"""Verdicts on data files, kept in a folder of the warehouse, so that the next run judges new files only.

The folder is a cache: who removes it, or a file of it, pays one reading of the source. A kept file is written under
another name first, has a checksum, and names the data file that it is about, with its size and time. Any other file is
ignored and written again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
import weakref
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

import numpy as np

from trendlake.cep_core.events.array_types import AnyArray
from trendlake.pipelines.quality.verdict import Question, Verdict, code_type, hashing

MAGIC = b"trendlake verdict 1\n"
WORD = 8
"""Bytes of a number in the file, and what the arrays' places are multiples of."""
USED_AGAIN = 86_400
"""Seconds after which a use of a kept file is noted in its time: `maintain` removes files that no run uses any more."""


@dataclass(eq=False)
class VerdictCache:
    """The verdicts of one contract on the files of one table, kept in `folder`; None: nowhere. Where nothing can be
    written there, verdicts of this process are in a folder of its own, for as long as this object is used."""

    folder: Path | None
    _own: Path | None = None
    _lock: Lock = field(default_factory=Lock)

    def find(self, table: Path, name: str, question: Question) -> Verdict | None:
        """The verdict on the file `name` of the `table`, whose arrays are memory maps; None where there is none, or it
        is damaged."""
        if self.folder is None:
            return None
        file = self.folder / _name(name)
        try:
            verdict = _read(file, _about(table, name), question)
        except (OSError, ValueError, LookupError, TypeError):  # whatever a foreign file may cause
            return None
        with suppress(OSError):  # a warehouse that is read-only, a file of another user
            if verdict is not None and time.time() - file.stat().st_mtime > USED_AGAIN:
                os.utime(file)
        return verdict

    def keep(self, table: Path, name: str, verdict: Verdict, question: Question) -> Verdict:
        """`verdict`, written to the disk: its arrays no longer need memory. Raises OSError where no disk has room."""
        about = _about(table, name)
        if self.folder is not None:
            with suppress(OSError):
                self.folder.mkdir(parents=True, exist_ok=True)
                return _written(self.folder / _name(name), about, verdict, question)
        return _written(self._of_process() / _name(name), about, verdict, question)

    def _of_process(self) -> Path:
        """A folder that goes with this object. Memory maps of its files stay what they are."""
        with self._lock:  # several threads keep verdicts
            if self._own is None:
                self._own = Path(tempfile.mkdtemp(prefix="trendlake-verdicts-"))
                weakref.finalize(self, shutil.rmtree, self._own, ignore_errors=True)
            return self._own


def _name(data: str) -> str:
    return hashlib.sha256(data.encode()).hexdigest()[:32]


def _about(table: Path, name: str) -> dict[str, Any]:
    """The facts that tell a data file from another one in its place, and its hashes from others."""
    state = (table / name).stat()
    return {"file": name, "size": state.st_size, "time": state.st_mtime_ns, "hashing": hashing()}


def _written(file: Path, about: dict[str, Any], verdict: Verdict, question: Question) -> Verdict:
    header = json.dumps(
        {
            **about,
            "rows": verdict.rows,
            "masks": [np.packbits(mask).tobytes().hex() for mask in verdict.masks],
            "bits": question.bits,
            "hashes": len(verdict.hashes),
            "codes": verdict.codes is not None,
        }
    ).encode()
    arrays = [*verdict.hashes, *(() if verdict.codes is None else (verdict.codes,))]
    parts: list[Any] = [np.ascontiguousarray(array) for array in arrays if len(array)]  # Any: each is a buffer
    start = MAGIC + len(header).to_bytes(WORD, "little") + header
    start += b" " * (-len(start) % WORD)
    partial = file.with_name(f".partial-{uuid4().hex}")
    try:
        with partial.open("xb") as out:
            checksum = 0
            for part in (start, *parts):
                checksum = zlib.crc32(part, checksum)
                out.write(part)
            out.write(checksum.to_bytes(WORD, "little"))
        partial.replace(file)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
    return _mapped(file, len(start), verdict.rows, verdict.masks, len(verdict.hashes), verdict.codes is not None)


def _read(file: Path, about: dict[str, Any], question: Question) -> Verdict | None:
    """Raises OSError, ValueError, LookupError or TypeError for a file that is none of ours, or half a one."""
    with file.open("rb") as opened:
        if opened.read(len(MAGIC)) != MAGIC:
            return None
        size = int.from_bytes(opened.read(WORD), "little")
        if size > file.stat().st_size:
            return None
        header = json.loads(opened.read(size))
    if {name: header[name] for name in about} != about:
        return None
    if (header["bits"], header["hashes"]) != (question.bits, len(question.keys)):
        return None
    masks = np.array(
        [np.unpackbits(np.frombuffer(bytes.fromhex(mask), np.uint8), count=question.bits) for mask in header["masks"]],
        np.bool_,
    ).reshape(-1, question.bits)
    rows, coded = int(header["rows"]), bool(header["codes"])
    start = len(MAGIC) + WORD + size
    start += -start % WORD
    width = code_type(len(masks)).itemsize if coded else 0
    whole: Any = np.memmap(file, np.uint8, "r")
    if len(whole) != start + rows * (WORD * len(question.keys) + width) + WORD:
        return None
    if zlib.crc32(whole[:-WORD]) != int.from_bytes(whole[-WORD:].tobytes(), "little"):
        return None
    return _mapped(file, start, rows, masks, len(question.keys), coded)


def _mapped(file: Path, start: int, rows: int, masks: AnyArray, hashes: int, coded: bool) -> Verdict:
    if not rows:
        return Verdict(0, masks, None, tuple(np.zeros(0, np.uint64) for _ in range(hashes)))
    ends = [start + WORD * rows * at for at in range(hashes + 1)]
    of_keys = tuple(np.memmap(file, np.uint64, "r", offset=offset, shape=(rows,)) for offset in ends[:-1])
    codes = np.memmap(file, code_type(len(masks)), "r", offset=ends[-1], shape=(rows,)) if coded else None
    return Verdict(rows, masks, codes, of_keys)
