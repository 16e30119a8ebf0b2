"""Flink's jars in an environment of their own, and small Java programs run with them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).parent


def jars(folder: Path) -> list[Path]:
    """Flink's jars in the environment at `folder`; none when it is not installed."""
    return sorted(folder.glob("venv/lib/python*/site-packages/pyflink/lib/*.jar"))


def install(folder: Path) -> None:
    """Flink's jars into an environment of their own, once."""
    if jars(folder):
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder / "venv")], check=True)
    pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--require-hashes", "-r", str(HERE / "requirements.txt")], check=True)
    if not jars(folder):
        raise SystemExit(f"the package holds no jars where they are looked for: {folder}")


def java(name: str) -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / name) if home else name


def lines(folder: Path, program: str, arguments: list[str], seconds: float) -> list[list[str]]:
    """The words of each line that a program beside this file writes; it is stopped when `seconds` have passed."""
    path = os.pathsep.join(str(jar) for jar in jars(folder))
    classes = folder / "classes"
    subprocess.run([java("javac"), "-cp", path, "-d", str(classes), str(HERE / f"{program}.java")], check=True)
    command = [java("java"), "-Xmx2g", "-cp", f"{path}{os.pathsep}{classes}", program, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as peer:
        timer = threading.Timer(seconds, peer.kill)
        timer.start()
        lines_of_peer = [line.split() for line in peer.stdout or ()]
        timer.cancel()
    return lines_of_peer
