"""Writes pipelines/spark/jars.lock anew, from the dependencies that scripts/ivy.xml names: `make jars-lock`."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from trendlake.pipelines.spark.jars import resolve
from trendlake.pipelines.spark.setup_files import LOCK

MODULE = Path(__file__).with_name("ivy.xml")


def lock_line(path: Path, root: Path) -> str:
    """`SHA-256  group:artifact:version` of the file `group/artifact/version/file` below `root`."""
    coordinates = ":".join(path.relative_to(root).parts[:3])
    return f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {coordinates}\n"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="trendlake-jars-") as folder:
        root = Path(folder)
        resolve(MODULE.read_text(), root)
        jars = sorted(root.glob("*/*/*/*.jar"), key=lambda path: path.name)
        LOCK.write_text("".join(lock_line(path, root) for path in jars))
    print(f"{len(jars)} jars in {LOCK}")


if __name__ == "__main__":
    main()
