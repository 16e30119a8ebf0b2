"""Variables, functions and modules have names that say what they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT
from tests.support.python_files import tree_of

FOLDERS = ("trendlake", "cep_core", "pipelines", "jobs", "dags", "tests", "bench", "scripts")
NO_NAMES = {"told", "found", "made", "kept", "twice"}
"""Words that say of a thing what was done with it, and not what it is."""


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of all that the module defines: functions, classes, parameters, variables, fields, imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.alias):
            yield node.lineno, (node.asname or node.name).rpartition(".")[2]
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.lineno, node.name


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_say_what_the_thing_is(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    assert [path for path in files if path.stem in NO_NAMES] == []
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in files
        for line, name in names(tree_of(path))
        if name in NO_NAMES
    ]
    assert wrong == []


def test_every_definition_is_seen() -> None:
    source = """
import a.told, b as found
def made(kept, *, here): pass
class twice: told: int
self.found = 1
for made in []: pass
try: pass
except E as kept: pass
match x:
    case [*here] as twice: pass
"""
    assert sorted(name for _, name in names(ast.parse(source)) if name in NO_NAMES) == sorted([*NO_NAMES, *NO_NAMES])
