"""Delta's jars: fetched by their lock from a Maven registry or a folder, and found by a session."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.conftest import SET_UP
from trendlake.pipelines.errors import JarsMissingError
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.spark import jars
from trendlake.pipelines.spark.jars import faults, fetch_jars, find_jars, jars_folder, mirror_of_central, read_lock
from trendlake.pipelines.spark.setup_files import shared_folder

LOCKED = read_lock()
POM = """\
<project><modelVersion>4.0.0</modelVersion>
  <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
</project>
"""
SETTINGS = """\
<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0"><mirrors>
  <mirror><id>other</id><mirrorOf>snapshots</mirrorOf><url>http://127.0.0.1:9/none</url></mirror>
  <mirror><id>here</id><mirrorOf>{of}</mirrorOf><url>{url}</url></mirror>
</mirrors></settings>
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Requests are no news."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home without Maven's settings, caches, or a folder of jars that the environment names."""
    folder = tmp_path / "home"
    (folder / ".m2").mkdir(parents=True)
    for name in ("TRENDLAKE_JARS", "TRENDLAKE_CACHE", "XDG_CACHE_HOME", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def registry(tmp_path: Path, home: Path) -> Iterator[Path]:
    """A Maven registry of this machine with the locked jars, which the user's settings name as Central's mirror."""
    root = tmp_path / "registry"
    for jar in LOCKED:
        folder = root / jar.group.replace(".", "/") / jar.artifact / jar.version
        folder.mkdir(parents=True)
        (folder / jar.name).symlink_to(SET_UP / "jars" / jar.name)
        (folder / f"{jar.name[:-4]}.pom").write_text(POM.format(jar.group, jar.artifact, jar.version))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        (home / ".m2" / "settings.xml").write_text(SETTINGS.format(of="central", url=url))
        yield root
        server.shutdown()


@pytest.fixture
def installed(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project beside an installed package, without a clone."""
    monkeypatch.setattr("trendlake.pipelines.project.shipped.INSTALLED", tmp_path)
    return Project(tmp_path, tmp_path / "state")


def test_the_lock_names_files_and_digests() -> None:
    assert len(LOCKED) == 8
    assert [jar.name for jar in LOCKED if jar.group == "io.delta"][3] == "delta-spark_4.2_2.13-4.4.0.jar"
    assert all(len(jar.sha256) == 64 for jar in LOCKED)


def test_the_first_session_fetches_the_jars(installed: Project, registry: Path, home: Path) -> None:
    """From the mirror, into the user's cache; then they are there for the next, without the registry."""
    folder = home / ".cache" / "trendlake" / shared_folder().name / "jars"
    assert [path.name for path in find_jars(installed)] == [
        jar.name for jar in sorted(LOCKED, key=lambda jar: jar.name)
    ]
    assert not faults(folder, LOCKED)
    shutil.rmtree(registry)
    assert find_jars(installed)[0].parent == folder


def test_a_file_that_is_not_the_locked_one_is_refused(registry: Path, tmp_path: Path) -> None:
    """And nothing is left behind."""
    changed = next(registry.rglob("delta-storage-*.jar"))
    changed.unlink()
    changed.write_bytes(b"not the jar")
    with pytest.raises(JarsMissingError, match=r"delta-storage-4\.4\.0\.jar has another SHA-256") as raised:
        fetch_jars(tmp_path / "jars")
    assert "trendlake setup --from FOLDER" in str(raised.value.hint)
    assert list((tmp_path / "jars").iterdir()) == []
    assert not list(tmp_path.glob("jars-*"))


def test_a_registry_that_does_not_answer(registry: Path, home: Path, tmp_path: Path) -> None:
    (home / ".m2" / "settings.xml").write_text(SETTINGS.format(of="*", url="http://127.0.0.1:9"))
    with pytest.raises(JarsMissingError, match=rf"the mirror in {home}/\.m2/settings\.xml did not give") as raised:
        fetch_jars(tmp_path / "jars")
    assert "~/.m2/settings.xml" in str(raised.value.hint)


def test_jars_from_a_folder_replace_those_of_another_version(home: Path, tmp_path: Path) -> None:
    folder, other = tmp_path / "jars", tmp_path / "jars" / "delta-spark_4.0_2.13-4.0.0.jar"
    folder.mkdir()
    other.touch()
    fetch_jars(folder, SET_UP / "jars", offline=True)
    assert not other.exists()
    assert {path.name for path in folder.iterdir()} == {jar.name for jar in LOCKED}
    fetch_jars(folder, offline=True)  # they are there


def test_without_a_network_the_error_says_what_to_do(home: Path, tmp_path: Path) -> None:
    with pytest.raises(JarsMissingError, match=r"delta-kernel-api-4\.4\.0\.jar is missing") as raised:
        fetch_jars(tmp_path / "jars", offline=True)
    assert "copy the jars from a machine that has them" in str(raised.value.hint)
    with pytest.raises(JarsMissingError, match="jar is missing"):
        fetch_jars(tmp_path / "jars", tmp_path / "nothing")


def test_a_folder_that_cannot_be_written(home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JarsMissingError, match="cannot be written") as raised:
        fetch_jars(tmp_path / "file" / "jars", SET_UP / "jars")
    assert "TRENDLAKE_CACHE" in str(raised.value.hint)


def test_a_named_folder_comes_first(installed: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's, then the profile's, then the state folder; nothing is fetched where one is named."""
    profile = Profile(jars="lib")
    assert jars_folder(installed) == shared_folder() / "jars"
    (installed.state / "jars").mkdir(parents=True)
    assert jars_folder(installed) == installed.state / "jars"
    assert jars_folder(installed, profile) == installed.root / "lib"
    monkeypatch.setenv("TRENDLAKE_JARS", str(installed.root / "own"))
    assert jars_folder(installed, profile) == installed.root / "own"
    monkeypatch.delenv("TRENDLAKE_JARS")
    with pytest.raises(JarsMissingError, match=f"Delta's jars are not in {installed.root / 'lib'}"):
        find_jars(installed, profile)
    (installed.root / "lib").symlink_to(SET_UP / "jars")
    assert len(find_jars(installed, profile)) == len(LOCKED)


@pytest.mark.parametrize(
    ("of", "taken"), [("central", True), ("*", True), ("external:*", True), ("*,!central", False), ("other", False)]
)
def test_mirrors_of_maven_central(tmp_path: Path, of: str, taken: bool) -> None:
    settings = tmp_path / "settings.xml"
    settings.write_text(SETTINGS.format(of=of, url=" http://mirror/m2 "))
    assert mirror_of_central(settings) == ("http://mirror/m2" if taken else None)


def test_settings_that_are_no_xml(tmp_path: Path) -> None:
    settings = tmp_path / "settings.xml"
    assert mirror_of_central(settings) is None
    settings.write_text("<settings>")
    with pytest.raises(JarsMissingError, match="is not well-formed XML"):
        mirror_of_central(settings)


def test_a_proxy_of_the_environment_is_java_s_too() -> None:
    environment = {"https_proxy": "http://proxy:3128", "HTTP_PROXY": "other", "no_proxy": "x"}
    expected = ["-Dhttp.proxyHost=other", "-Dhttp.proxyPort=80", "-Dhttps.proxyHost=proxy", "-Dhttps.proxyPort=3128"]
    assert jars._proxy_flags(environment) == expected
