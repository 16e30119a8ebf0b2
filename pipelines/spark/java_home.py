"""The Java that Spark runs on."""

from __future__ import annotations

import locale
import os
import shutil
import sys

from trendlake.pipelines.errors import JavaMissingError
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.spark.setup_files import setup_file

JAVA_HINT = "install Java 17 or 21 (such as openjdk-17-jre-headless), or set JAVA_HOME to where it is"
ASCII = ("ansi_x3.4-1968", "us-ascii", "ascii", "646")
"""The names of the encoding of the locale C."""


def java_program() -> str:
    """The path of `java`: that of `JAVA_HOME`, else the first on the PATH. Raises JavaMissingError."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if program is None:
        nowhere = f"in {home}, which JAVA_HOME names" if home else ": JAVA_HOME is not set, and no java is on the PATH"
        raise JavaMissingError(f"there is no Java{' ' if home else ''}{nowhere}", hint=JAVA_HINT)
    return program


def choose_java(project: Project) -> None:
    """Sets the environment of the Java process: the Java that set-up noted, unless `JAVA_HOME` names one, and a locale
    in which Java can name all files. Raises JavaMissingError."""
    noted = setup_file(project, "java_home")
    if "JAVA_HOME" not in os.environ and noted.is_file():
        os.environ["JAVA_HOME"] = noted.read_text().strip()
    java_program()
    if locale.getencoding().lower() in ASCII and sys.platform != "darwin":
        # of the locale C, or one that is not installed: Java could not name a folder `é`, not even its working folder
        os.environ["LC_ALL"] = "C.UTF-8"
