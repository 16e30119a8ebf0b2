"""Brings Delta's jars to a folder of the project, once; Spark then runs offline from there.

    python scripts/jars.py --to .trendlake/jars [--write-lock]

`ivy.xml` names what is wanted, `jars.lock` the files it must come to (name and SHA-256). Sources, in this
order: `TRENDLAKE_JARS`, a folder that already holds the files; else the Ivy that PySpark brings along, from
Maven Central or from the mirror of it that `~/.m2/settings.xml` names. Standard library only: it runs before
anything else works.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

SCRIPTS = Path(__file__).resolve().parent
LOCK = SCRIPTS / "jars.lock"
MIRRORS_OF_CENTRAL = {"*", "central", "external:*"}

Lock = dict[str, str]


class JarsError(Exception):
    """The jars could not be brought; the message is for the person who typed `make`."""


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_lock(path: Path) -> Lock:
    """`{file name: SHA-256}`, from lines as `sha256sum` writes them."""
    pairs = (line.split() for line in path.read_text().splitlines() if line.strip())
    return {name: sha for sha, name in pairs}


def check(folder: Path, lock: Lock) -> list[str]:
    """What keeps `folder` from being the locked set, one phrase a file; empty when it is."""
    faults = []
    for name, sha in lock.items():
        if not (folder / name).is_file():
            faults.append(f"{name} is missing")
        elif digest(folder / name) != sha:
            faults.append(f"{name} is not the locked file (SHA-256 differs)")
    return faults


def mirror_of_central(settings: Path) -> str | None:
    """The mirror that Maven would ask instead of Maven Central, by the person's Maven settings."""
    if not settings.is_file():
        return None
    try:
        tree = ElementTree.parse(settings)
    except ElementTree.ParseError as error:
        raise JarsError(f"{settings} is not well-formed XML: {error}") from error
    for mirror in tree.iterfind(".//{*}mirror"):
        of = {part.strip() for part in mirror.findtext("{*}mirrorOf", "").split(",")}
        if of & MIRRORS_OF_CENTRAL and "!central" not in of:
            return mirror.findtext("{*}url", "").strip() or None
    return None


def ivy_settings(mirror: str | None) -> str:
    """Ivy's settings: one repository in Maven's layout, the mirror or Ivy's own default, Maven Central."""
    root = ElementTree.Element("ivysettings")
    ElementTree.SubElement(root, "settings", defaultResolver="central")
    resolvers = ElementTree.SubElement(root, "resolvers")
    central = ElementTree.SubElement(resolvers, "ibiblio", name="central", m2compatible="true")
    if mirror:
        central.set("root", mirror)
    return ElementTree.tostring(root, encoding="unicode")


def proxy_flags(env: Mapping[str, str]) -> list[str]:
    """Java reads no proxy from the environment (nor HOME): hand it on."""
    flags = []
    for scheme in ("http", "https"):
        proxy = env.get(f"{scheme}_proxy") or env.get(f"{scheme.upper()}_PROXY")
        if proxy and (at := urlsplit(proxy if "//" in proxy else f"//{proxy}")).hostname:
            flags += [f"-D{scheme}.proxyHost={at.hostname}", f"-D{scheme}.proxyPort={at.port or 80}"]
    return flags


def ivy_jar() -> Path:
    """The Ivy that PySpark ships."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarsError("PySpark is not installed in this environment: run `make setup`")
    found = sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise JarsError("this PySpark brings no ivy-*.jar along")
    return found[-1]


def java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def resolve(into: Path) -> None:
    """Has Ivy bring the files of `ivy.xml` to `into`."""
    mirror = mirror_of_central(Path.home() / ".m2" / "settings.xml")
    settings = into / "ivysettings.xml"
    settings.write_text(ivy_settings(mirror))
    command = [
        java(),
        f"-Duser.home={Path.home()}",
        *proxy_flags(os.environ),
        "-jar",
        str(ivy_jar()),
        "-warn",
    ]
    command += ["-settings", str(settings), "-ivy", str(SCRIPTS / "ivy.xml"), "-confs", "default"]
    command += ["-retrieve", f"{into}/[artifact]-[revision].[ext]"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    settings.unlink()
    if done.returncode:
        said = [line.strip(" :\t.") for line in (done.stdout + done.stderr).splitlines()]
        unresolved = [line for line in said if "not found" in line or "rror" in line]
        source = f"the mirror of {Path.home()}/.m2/settings.xml" if mirror else "Maven Central"
        raise JarsError(f"{source} did not give them: " + ("; ".join(dict.fromkeys(unresolved)) or said[-1]))


def bring(to: Path, lock: Lock | None) -> None:
    """Leaves exactly the locked files in `to`, or leaves it as it was."""
    given = os.environ.get("TRENDLAKE_JARS")
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix="jars-") as scratch:
        fresh = Path(scratch) / "jars"
        fresh.mkdir()
        if given and lock is not None:
            for name in lock:
                if (Path(given) / name).is_file():
                    shutil.copy2(Path(given) / name, fresh)
        else:
            resolve(fresh)
        if lock is not None and (faults := check(fresh, lock)):
            raise JarsError(f"{f'in TRENDLAKE_JARS={given}, ' if given else ''}{'; '.join(faults)}")
        if to.exists():
            shutil.rmtree(to)
        fresh.rename(to)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, required=True, help="the folder for the jars")
    parser.add_argument("--write-lock", action="store_true", help="resolve again and write jars.lock anew")
    args = parser.parse_args()
    lock = None if args.write_lock else read_lock(LOCK)
    try:
        if lock is None or check(args.to, lock):
            print(f"set-up: Delta's jars into {args.to}", flush=True)
            bring(args.to, lock)
    except JarsError as error:
        print(f"Delta's jars could not be brought: {error}.", file=sys.stderr)
        print(
            "Give Maven Central's mirror in ~/.m2/settings.xml, or set TRENDLAKE_JARS to a folder that holds "
            f"the files of {LOCK}, then run `make setup` again.",
            file=sys.stderr,
        )
        return 1
    if args.write_lock:
        jars = sorted(args.to.glob("*.jar"))
        LOCK.write_text("".join(f"{digest(jar)}  {jar.name}\n" for jar in jars))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
