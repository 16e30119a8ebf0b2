"""Files other than modules that come with the code: the documentation, the DAGs, a first profile and contracts; and
how the packages of an extra are installed.

In a clone they are where they are edited; an installed package has copies (`force-include` in pyproject.toml).
"""

from __future__ import annotations

import shlex
from importlib.metadata import PackageNotFoundError, requires
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


def install_command(extra: str) -> str:
    """The command that installs the packages of an extra of this installation. Trendlake itself is on no index."""
    try:
        lines = requires("trendlake") or []
    except PackageNotFoundError:  # a clone that is on the path and is not installed
        return "make setup"
    ends = f"; extra == '{extra}'"
    return f"pip install {shlex.join(line.removesuffix(ends) for line in lines if line.endswith(ends))}"
