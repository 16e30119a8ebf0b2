"""The warehouse that Trendlake 0.2 wrote (tests/golden/warehouse_0_2), unpacked."""

from __future__ import annotations

import tarfile
from pathlib import Path

from tests.conftest import ROOT

FOLDER = ROOT / "tests" / "golden" / "warehouse_0_2"


def unpack(folder: Path) -> Path:
    """Puts the warehouse below `folder`; where it is. Python before 3.11.4 knows no filter; the archive is our own."""
    with tarfile.open(FOLDER / "warehouse.tar.gz") as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:
            archive.extractall(folder)
    return folder / "warehouse"
