"""Files other than modules that come with the code: the documentation, the DAGs, a first profile and contracts.

In a clone they are where they are edited; an installed package has copies (`force-include` in pyproject.toml).
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

CLONE = Path(__file__).resolve().parents[2]
INSTALLED = Path(str(files("trendlake.pipelines"))) / "shipped_files"


def is_installed() -> bool:
    """Whether this code is an installed package; False in a clone."""
    return INSTALLED.is_dir()


def shipped(name: str) -> Path:
    """The file or folder `name`, such as `docs`."""
    return (INSTALLED if is_installed() else CLONE) / name
