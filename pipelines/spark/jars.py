"""Delta's jars: which they are, where a session finds them, how they are fetched.

`jars.lock` names each jar by its Maven coordinates and its SHA-256. A session takes the jars of the folder that
`TRENDLAKE_JARS` or the profile's `jars` names, else those of the project's state folder, else those of the folder that
projects share. Where they are in none of these, they are fetched into the shared folder, once, by the Ivy that PySpark
brings along: from Maven Central, or from its mirror in `~/.m2/settings.xml`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from trendlake.pipelines.errors import JarsMissingError
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.spark.java_home import java_program
from trendlake.pipelines.spark.setup_files import JARS, LOCK, setup_file, shared_folder, spark_jars

DELTA = "delta-spark_"
"""How the name of the jar begins without which there is no Delta."""
LAYOUT = "[organisation]/[artifact]/[revision]/[artifact]-[revision].[ext]"
"""Where Ivy puts a file, so that its path shows its coordinates."""
MIRRORS_OF_CENTRAL = {"*", "central", "external:*"}
TIMEOUTS = ("-Dsun.net.client.defaultConnectTimeout=30000", "-Dsun.net.client.defaultReadTimeout=60000")
"""Milliseconds; Java's own are unlimited."""
HINT = (
    "name a mirror of Maven Central in ~/.m2/settings.xml, or copy the jars from a machine that has them and run "
    "`trendlake setup --from FOLDER`"
)


@dataclass(frozen=True)
class Jar:
    """A file of Maven Central: its coordinates and its SHA-256 in hexadecimal digits."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        """Where Ivy puts it (`LAYOUT`)."""
        return f"{self.group}/{self.artifact}/{self.version}/{self.name}"

    def fault_in(self, folder: Path) -> str | None:
        """Why the file in `folder` is not this jar; None where it is."""
        path = folder / self.name
        if not path.is_file():
            return f"{self.name} is missing"
        same = hashlib.sha256(path.read_bytes()).hexdigest() == self.sha256
        return None if same else f"{self.name} has another SHA-256 than jars.lock says"


def read_lock(path: Path = LOCK) -> tuple[Jar, ...]:
    """The locked jars, from lines `SHA-256  group:artifact:version`."""
    return tuple(
        Jar(*coordinates.split(":"), sha256=sha256)  # type: ignore[misc]
        for sha256, coordinates in map(str.split, path.read_text().splitlines())
    )


def faults(folder: Path, jars: Sequence[Jar]) -> str:
    """Why `folder` does not hold the jars: the first wrong files; empty where it does."""
    wrong = [fault for jar in jars if (fault := jar.fault_in(folder))]
    return "; ".join([*wrong[:2], f"{len(wrong) - 2} others"] if len(wrong) > 3 else wrong)


def jars_folder(project: Project, profile: Profile | None = None) -> Path:
    """The folder in which a session looks for Delta's jars."""
    return _named_folder(project, profile) or setup_file(project, JARS)


def find_jars(project: Project, profile: Profile | None = None) -> list[Path]:
    """All jars of `jars_folder`. The jars are fetched first if no folder is named and they are missing. Raises
    JarsMissingError, JavaMissingError."""
    folder = jars_folder(project, profile)
    if _named_folder(project, profile) is None and not all((folder / jar.name).is_file() for jar in read_lock()):
        folder = shared_folder() / JARS
        fetch_jars(folder)
    jars = sorted(folder.glob("*.jar"))
    if not any(jar.name.startswith(DELTA) for jar in jars):
        raise JarsMissingError(
            f"Delta's jars are not in {folder}",
            hint="unset TRENDLAKE_JARS (in the profile: jars) and run `trendlake setup`, which fetches them",
        )
    return jars


def _named_folder(project: Project, profile: Profile | None) -> Path | None:
    """The folder that the environment names, else the profile."""
    if named := os.environ.get("TRENDLAKE_JARS"):
        return Path(named).resolve()
    return project.root / profile.jars if profile is not None and profile.jars else None


def fetch_jars(folder: Path, source: Path | None = None, *, offline: bool = False) -> None:
    """Leaves the locked jars, and no other jars, in `folder`; does nothing if it has them. They come from the folder
    `source`, if one is given, else from Maven. Several processes may do so at once. Raises JarsMissingError."""
    locked = read_lock()
    wrong = faults(folder, locked)
    if not wrong:
        return
    if offline and source is None:
        raise JarsMissingError(f"Delta's jars are not in {folder}: {wrong}", hint=HINT)
    print(f"Delta's jars: from {source or 'Maven'} into {folder}, once", file=sys.stderr, flush=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="jars-") as scratch:
            fresh = Path(scratch)
            if source is None:
                resolve(_wanted(locked), fresh)
            for jar in locked:
                path = fresh / jar.path if source is None else source / jar.name
                if path.is_file():
                    shutil.copy2(path, fresh)
            if wrong := faults(fresh, locked):
                raise JarsMissingError(f"Delta's jars from {source or 'Maven'}: {wrong}", hint=HINT)
            _replace(folder, fresh, locked)
    except OSError as error:
        raise JarsMissingError(
            f"Delta's jars cannot be written to {folder}: {error.strerror or error}",
            hint="set TRENDLAKE_CACHE to a folder that you can write, or TRENDLAKE_JARS to one that holds the jars",
        ) from None


def _replace(folder: Path, fresh: Path, locked: Sequence[Jar]) -> None:
    """Moves the jars from `fresh` to `folder`, each whole, then removes those of other versions."""
    names = {jar.name for jar in locked}
    for name in names:
        (fresh / name).replace(folder / name)
    for path in folder.glob("*.jar"):
        if path.name not in names:
            path.unlink(missing_ok=True)


def resolve(module: str, into: Path) -> None:
    """Has Ivy download the dependencies of an Ivy `module` (XML) to `into`, in `LAYOUT`. Raises JarsMissingError,
    JavaMissingError, NotInstalledError."""
    (ivy,) = (jar for jar in spark_jars() if jar.name.startswith("ivy-"))
    mirror = mirror_of_central(Path.home() / ".m2" / "settings.xml")
    settings, wanted = into / "ivysettings.xml", into / "ivy.xml"
    settings.write_text(_ivy_settings(mirror))
    wanted.write_text(module)
    command = [java_program(), f"-Duser.home={Path.home()}", *TIMEOUTS, *_proxy_flags(os.environ)]
    command += ["-jar", str(ivy), "-warn", "-settings", str(settings), "-ivy", str(wanted)]
    command += ["-confs", "default", "-retrieve", f"{into}/{LAYOUT}"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        lines = [line.strip(" :\t.") for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        reasons = [line for line in lines if "not found" in line or "rror" in line or "xception" in line] or lines[-1:]
        origin = f"the mirror in {Path.home()}/.m2/settings.xml" if mirror else "Maven Central"
        raise JarsMissingError(f"{origin} did not give Delta's jars: {'; '.join(dict.fromkeys(reasons))}", hint=HINT)


def _wanted(jars: Sequence[Jar]) -> str:
    """An Ivy module that depends on exactly these jars."""
    root = ElementTree.Element("ivy-module", version="2.0")
    ElementTree.SubElement(root, "info", organisation="trendlake", module="jars")
    ElementTree.SubElement(ElementTree.SubElement(root, "configurations"), "conf", name="default")
    dependencies = ElementTree.SubElement(root, "dependencies")
    for jar in jars:
        exact = {"org": jar.group, "name": jar.artifact, "rev": jar.version, "transitive": "false"}
        ElementTree.SubElement(dependencies, "dependency", exact, conf="default->master")
    return ElementTree.tostring(root, encoding="unicode")


def mirror_of_central(settings: Path) -> str | None:
    """The URL of the mirror that Maven would ask instead of Maven Central, by the user's Maven settings. Raises
    JarsMissingError where the file is not well-formed."""
    if not settings.is_file():
        return None
    try:
        tree = ElementTree.parse(settings)
    except ElementTree.ParseError as error:
        raise JarsMissingError(f"{settings} is not well-formed XML: {error}") from None
    for mirror in tree.iterfind(".//{*}mirror"):
        of = {part.strip() for part in mirror.findtext("{*}mirrorOf", "").split(",")}
        if of & MIRRORS_OF_CENTRAL and "!central" not in of:
            return mirror.findtext("{*}url", "").strip() or None
    return None


def _ivy_settings(mirror: str | None) -> str:
    """Ivy's settings: one repository in Maven's layout, the mirror or Ivy's own default, Maven Central."""
    root = ElementTree.Element("ivysettings")
    ElementTree.SubElement(root, "settings", defaultResolver="central")
    resolvers = ElementTree.SubElement(root, "resolvers")
    central = ElementTree.SubElement(resolvers, "ibiblio", name="central", m2compatible="true")
    if mirror:
        central.set("root", mirror)
    return ElementTree.tostring(root, encoding="unicode")


def _proxy_flags(env: Mapping[str, str]) -> list[str]:
    """Java reads no proxy from the environment."""
    flags = []
    for scheme in ("http", "https"):
        proxy = env.get(f"{scheme}_proxy") or env.get(f"{scheme.upper()}_PROXY")
        if proxy and (address := urlsplit(proxy if "//" in proxy else f"//{proxy}")).hostname:
            flags += [f"-D{scheme}.proxyHost={address.hostname}", f"-D{scheme}.proxyPort={address.port or 80}"]
    return flags
