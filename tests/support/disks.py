"""Disks of a few hundred kilobytes, that can be full."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A disk of its own at `folder`; the test is skipped, and says so, where none may be mounted."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no command `mount` to make a small disk with")
    if mounted.returncode != 0:
        pytest.skip(f"no small disk may be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    """While it lasts nothing can be written to a `small_disk`."""
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """While it lasts there is no byte left on the disk."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        while room(file):
            pass
    try:
        yield
    finally:
        filler.unlink()


def room(file: BinaryIO) -> bool:
    """Writes a block; False where there is no room for it."""
    try:
        return file.write(b"x" * 4096) > 0
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
