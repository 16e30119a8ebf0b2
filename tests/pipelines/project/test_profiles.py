"""Profiles: those that are shipped are right; what cannot work on a cluster is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT
from trendlake.pipelines.authoring.scaffold import note_source
from trendlake.pipelines.errors import ProfileError
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile, load_profile, read_profile

SHIPPED = sorted((ROOT / "conf" / "profiles").glob("*.yaml"))
POD = "master: k8s://https://10.0.0.1:6443\nwarehouse: s3a://a/b\n"


def test_those_that_are_shipped_can_be_read() -> None:
    profiles = {path.stem: read_profile(path) for path in SHIPPED}
    assert {name: profile.on_cluster for name, profile in profiles.items()} == {
        "demo": False,
        "kubernetes": True,
        "local": False,
        "standalone": True,
    }


@pytest.mark.parametrize(
    "master",
    ["local", "local[2]", "local[*]", "local[2, 3]", "local-cluster[2,1,900]", "spark://a:7077,b:7077", "yarn"],
)
def test_masters_of_spark(tmp_path: Path, master: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(f'master: "{master}"\nwarehouse: /shared\n')
    assert read_profile(path).master == master


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("warehouse: /shared\nmaster: spark://host\n", 2, "spark://HOST:PORT"),
        ("master: mesos://host:5050\n", 1, "not 'mesos://host:5050'"),
        ("master: spark://host:7077\nwarehouse: warehouse\n", 2, "an absolute path that all its machines reach"),
        ("master: spark://host:7077\n", 1, "an absolute path that all its machines reach"),
        (f"{POD}spark:\n  spark.pyspark.python: /p\n", 4, "Kubernetes needs spark.kubernetes.container.image"),
        (POD, 1, "Kubernetes needs spark.kubernetes.container.image and spark.pyspark.python"),
        ("limits:\n  steps: 0\n", 2, "greater than or equal to 1"),
        ("sources:\n  ../x: /lake\n", 2, "'../x' is no name of a source"),
        ("sources:\n  x: ''\n", 2, "where the table of 'x' lies"),
        ("sources:\n  x: 3\n", 2, "a valid string"),
        ("master: yarn\nwarehouse: /w\nsources:\n  x: lake/x\n", 4, "an absolute path that all its machines reach"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(ProfileError) as caught:
        read_profile(path)
    assert message in str(caught.value)
    assert f"p.yaml:{line}:" in str(caught.value)


def test_where_tables_of_others_lie(tmp_path: Path) -> None:
    """Relative to the project's folder, like the files that name them."""
    profile = Profile(sources={"a": "/lake/a/", "b": "s3a://bucket/b", "c": "../lake/c"})
    project = Project(tmp_path / "project", tmp_path / "state")
    assert profile.sources_of(project) == {"a": "/lake/a", "b": "s3a://bucket/b", "c": f"{tmp_path}/project/../lake/c"}


def test_a_table_is_noted_in_the_profile(tmp_path: Path) -> None:
    """What else the file says stays, its comments too; a place that is there is not replaced."""
    folder = tmp_path / "conf" / "profiles"
    folder.mkdir(parents=True)
    text = (ROOT / "conf" / "profiles" / "local.yaml").read_text()
    (folder / "local.yaml").write_text(text)
    project = Project(tmp_path, tmp_path / "state")
    for name, place in (("a", "/lake/a b"), ("b", "s3a://bucket/b"), ("a", "/lake/a b")):
        assert note_source(project, None, name, place) == folder / "local.yaml"
    assert load_profile(project).sources == {"a": "/lake/a b", "b": "s3a://bucket/b"}
    assert (folder / "local.yaml").read_text().startswith(text)
    with pytest.raises(ProfileError, match=r"the table of 'a' lies at /lake/a b"):
        note_source(project, None, "a", "/other")
    (folder / "local.yaml").write_text(text)  # as it was read before
    assert load_profile(project).sources == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("master: local[2]  # m", "master: local[2]  # m\nsources:\n  no: /lake/a b\n"),
        ("sources:\n  a: /x", "sources:\n  a: /x\n  no: /lake/a b"),
        ("sources: {}  # s\n", "sources: {no: /lake/a b}  # s\n"),
        ("sources: {a: /x}\nmaster: local[2]\n", "sources: {no: /lake/a b, a: /x}\nmaster: local[2]\n"),
        (
            "sources: # s\n    a: /x\n    'b': '/y'  # y\n\n# m\nmaster: local[2]\n",
            "sources: # s\n    a: /x\n    'b': '/y'  # y\n    no: /lake/a b\n\n# m\nmaster: local[2]\n",
        ),
        ("sources:\r\n  a: é\r\nmaster: local[2]\r\n", "sources:\r\n  a: é\r\n  no: /lake/a b\r\nmaster: local[2]\r\n"),
    ],
)
def test_a_source_is_added_to_the_text_of_a_profile(tmp_path: Path, text: str, expected: str) -> None:
    """Where people write sources, behind the last one; every other character of the file stays."""
    path = tmp_path / "conf" / "profiles" / "local.yaml"
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode())
    note_source(Project(tmp_path, tmp_path / "state"), None, "no", "/lake/a b")
    assert path.read_bytes().decode() == expected
    assert read_profile(path).sources["no"] == "/lake/a b"


@pytest.mark.parametrize(
    "text", ["sources:\n  a: >\n    /x\n    /y\n", "{warehouse: x}\n", "spark: &s\n  a: /x\nsources: *s\n"]
)
def test_a_profile_of_another_form_stays_as_it_is(tmp_path: Path, text: str) -> None:
    """The error says what to write."""
    path = tmp_path / "conf" / "profiles" / "local.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(ProfileError, match=r"cannot add a source to .*\n.*write there: sources: \{no: /lake\}"):
        note_source(Project(tmp_path, tmp_path / "state"), None, "no", "/lake")
    assert path.read_text() == text
