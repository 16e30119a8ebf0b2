"""Every package that the code imports is one that its metadata asks for."""

from __future__ import annotations

import ast
import re
import shlex
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement

from tests.repository.test_layout import ROOMS, ROOT, modules
from tests.support.python_files import nodes_of
from trendlake.jobs.terminal.user_errors import PACKAGES, not_installed

OWN = {*ROOMS, "trendlake", "tests", "bench", "scripts", "dags"}
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BASE = tuple(METADATA["dependencies"])
EXTRAS = METADATA["optional-dependencies"]
ASKED = {
    "cep_core": BASE,
    "pipelines": (*BASE, *EXTRAS["spark"]),
    "jobs": (*BASE, *EXTRAS["spark"], *EXTRAS["airflow"]),
    "dags": (*BASE, *EXTRAS["spark"], *EXTRAS["airflow"]),
    "tests": (*BASE, *EXTRAS["spark"], *EXTRAS["airflow"], *EXTRAS["dev"]),
    "bench": (*BASE, *EXTRAS["spark"], *EXTRAS["airflow"], *EXTRAS["dev"]),
    "scripts": (*BASE, *EXTRAS["spark"]),
}
"""What a room may import: the requirements of an installation in which it is used."""
OTHERWISE = {
    "trendlake/pytest_plugin.py": ("pytest",),  # a plugin: pytest imports it
    "scripts/lint_contracts.py": ("datacontract",),  # runs in an environment of its own (locks/datacontract.lock)
    "scripts/docs/conf.py": ("docutils", "myst_parser", "sphinx", "mmdr"),  # as well (locks/docs.lock)
    "cep_core/frames/duckdb.py": ("duckdb",),  # imported where the caller has a frame of the library
    "cep_core/frames/evaluate.py": ("pandas", "polars"),  # for type checkers only
    "jobs/python/results.py": ("polars",),  # for type checkers only
}
"""Packages that are there whenever the module is."""


def plain(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=!~;\[ ]", name)[0]).lower()


def imported(room: str) -> dict[str, str]:
    """The packages of others that a room's modules import, each with a module that does."""
    own = {path.stem for path in (ROOT / "dags").rglob("*.py")}  # Airflow puts their folder on the path
    packages: dict[str, str] = {}
    for path in modules(room):
        for node in nodes_of(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                top = name.split(".")[0]
                if top not in sys.stdlib_module_names and top not in OWN and top not in own:
                    packages.setdefault(name if top == "airflow" else top, str(path.relative_to(ROOT)))
    return packages


@cache
def owners_of_packages() -> Mapping[str, list[str]]:
    """The distributions that hold each package; it takes a second to read them all."""
    return packages_distributions()


@pytest.mark.parametrize("room", ASKED)
def test_imports_are_declared(room: str) -> None:
    asked = {plain(text) for text in ASKED[room]}
    owners = owners_of_packages()
    undeclared: dict[str, str] = {}
    for package, module in imported(room).items():
        distributions = {plain(name) for name in owners.get(package.split(".")[0], [package])}
        if not distributions & asked and package not in OTHERWISE.get(module, ()):
            undeclared[module] = package
    assert undeclared == {}


@pytest.mark.parametrize("extra", PACKAGES)
def test_extras_are_known_to_the_command(extra: str) -> None:
    """What is missing where an extra is not installed is told with the extra's name."""
    asked = {plain(text) for text in EXTRAS[extra] if not text.startswith(("trendlake", "apache-airflow"))}
    owners = {plain(owner) for package in PACKAGES[extra] for owner in owners_of_packages().get(package, [])}
    assert asked <= owners


def test_an_extra_that_is_not_installed() -> None:
    """The hint names packages that an index has, all of the extra."""
    said = not_installed(ModuleNotFoundError("No module named 'pyspark.sql'", name="pyspark.sql"))
    assert said is not None
    assert said.hint is not None
    words = shlex.split(said.hint)
    assert words[:2] == ["pip", "install"]
    assert sorted(map(Requirement, words[2:]), key=str) == sorted(map(Requirement, EXTRAS["spark"]), key=str)
    assert not_installed(ModuleNotFoundError("No module named 'mine'", name="mine")) is None
