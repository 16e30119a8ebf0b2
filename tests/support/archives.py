"""Archives of files, unpacked."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpacked(archive: Path, folder: Path) -> list[str]:
    """Puts the files of an archive of our own below `folder`; their names. Python before 3.11.4 knows no filter."""
    with tarfile.open(archive) as packed:
        if hasattr(tarfile, "data_filter"):
            packed.extractall(folder, filter="data")
        else:
            packed.extractall(folder)
        return packed.getnames()
