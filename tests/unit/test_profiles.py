"""Profiles: those that are shipped are right; what cannot work on a cluster is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import ProfileError
from pipelines.profile import read_profile

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted((ROOT / "conf" / "profiles").glob("*.yaml"))
POD = "master: k8s://https://10.0.0.1:6443\nwarehouse: s3a://a/b\n"


def test_three_are_shipped() -> None:
    found = {path.stem: read_profile(path) for path in SHIPPED}
    assert {name: profile.on_cluster for name, profile in found.items()} == {
        "kubernetes": True, "local": False, "standalone": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    "master",
    ["local", "local[2]", "local[*]", "local[2, 3]", "local-cluster[2,1,900]", "spark://a:7077,b:7077", "yarn"],
)
def test_masters_of_spark(tmp_path: Path, master: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(f'master: "{master}"\nwarehouse: /shared\n')
    assert read_profile(path).master == master


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("warehouse: /shared\nmaster: spark://host\n", 2, "spark://HOST:PORT"),
        ("master: mesos://host:5050\n", 1, "not 'mesos://host:5050'"),
        ("master: spark://host:7077\nwarehouse: warehouse\n", 2, "an absolute path that all its machines reach"),
        ("master: spark://host:7077\n", 1, "an absolute path that all its machines reach"),
        (f"{POD}spark:\n  spark.pyspark.python: /p\n", 4, "Kubernetes needs spark.kubernetes.container.image"),
        (POD, 1, "Kubernetes needs spark.kubernetes.container.image and spark.pyspark.python"),
        ("limits:\n  steps: 0\n", 2, "greater than or equal to 1"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, text: str, line: int, told: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(ProfileError) as caught:
        read_profile(path)
    assert told in str(caught.value)
    assert f"p.yaml:{line}:" in str(caught.value)
