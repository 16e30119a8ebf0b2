"""Where set-up leaves the files that Spark needs: Delta's jars, our jar for a local disk, the archive of classes."""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path

from trendlake.pipelines.errors import NotInstalledError
from trendlake.pipelines.project import shipped
from trendlake.pipelines.project.paths import Project

LOCK = Path(__file__).with_name("jars.lock")
"""The lock of Delta's jars, which also names the shared folder: another version of Delta has another folder."""
JARS = "jars"


def shared_folder() -> Path:
    """The folder that all projects of this user share. In a clone: its `.trendlake`, which `make setup` fills. For an
    installed package: `trendlake/spark-<digest>` in `TRENDLAKE_CACHE`, `XDG_CACHE_HOME` or `~/.cache`."""
    if not shipped.is_installed():
        return shipped.CLONE / ".trendlake"
    cache = os.environ.get("TRENDLAKE_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(cache) / "trendlake" / f"spark-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]}"


def setup_file(project: Project, name: str) -> Path:
    """The file or folder `name` of the project's state folder, if it exists, else of the shared folder."""
    own = project.state / name
    return own if own.exists() else shared_folder() / name


def spark_jars() -> list[Path]:
    """The jars of Spark itself, which PySpark ships. Raises NotInstalledError."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        message = "this needs packages that are not installed: there is no pyspark"
        raise NotInstalledError(message, hint=shipped.install_command("spark"))
    return sorted((Path(spec.origin).parent / "jars").glob("*.jar"))
