"""The warehouse that Trendlake 0.2 wrote (tests/golden/warehouse_0_2), unpacked."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import ROOT
from tests.support.archives import unpacked

FOLDER = ROOT / "tests" / "golden" / "warehouse_0_2"


def unpack(folder: Path) -> Path:
    """Puts the warehouse below `folder`; where it is."""
    unpacked(FOLDER / "warehouse.tar.gz", folder)
    return folder / "warehouse"
