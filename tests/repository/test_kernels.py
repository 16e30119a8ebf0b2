"""Which compiled functions Python calls: one without a wrapper would end the process (`cep_core.compiled`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.repository.test_layout import module_name
from tests.support.python_files import tree_of

FOLDERS = ("trendlake", "cep_core", "pipelines", "jobs", "dags", "tests", "bench", "scripts")


@cache
def trees() -> dict[Path, ast.Module]:
    """Every file with Python in it."""
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    return {path: tree_of(path) for path in paths}


def declared(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Functions that are declared to be compiled, each with the word by which."""
    for node in tree.body:
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            if isinstance(decorator, ast.Attribute) and ast.unparse(decorator.value) == "compiled":
                yield node.name, decorator.attr


def used(tree: ast.Module) -> set[tuple[str, str]]:
    """What a file imports, module and name; and what it names of a module that it imports."""
    imported = {
        (alias.asname or alias.name): (node.module or "", alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    modules = {name: ".".join(both) for name, both in imported.items()} | {
        alias.asname: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.asname
    }
    attributes = [(dotted(node.value), node.attr) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return set(imported.values()) | {(modules.get(module, module), name) for module, name in attributes}


def dotted(node: ast.expr) -> str:
    """`a.b.c`; "" of what is no name."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


@pytest.mark.parametrize(
    "text",
    [
        "from trendlake.cep_core.a.kernels.b import _c",
        "from trendlake.cep_core.a.kernels import b as d\nd._c()",
        "import trendlake.cep_core.a.kernels.b\ntrendlake.cep_core.a.kernels.b._c()",
        "import trendlake.cep_core.a.kernels.b as d\nd._c()",
    ],
)
def test_each_way_to_name_a_function_is_seen(text: str) -> None:
    assert ("trendlake.cep_core.a.kernels.b", "_c") in used(ast.parse(text))


def test_python_calls_entries_only() -> None:
    words: dict[tuple[str, str], str] = {}
    for path, tree in trees().items():
        module = module_name(path)
        words |= {(module, name): word for name, word in declared(tree)}
    asked = {
        name: str(path.relative_to(ROOT))
        for path, tree in trees().items()
        if path.parent.name != "kernels" or "tests" in path.parts
        for name in used(tree) & words.keys()
    }
    assert {name: place for name, place in asked.items() if words[name] != "entry"} == {}
    idle = {name for name, word in words.items() if word == "entry"} - asked.keys()
    assert idle == set(), "entries that kernels alone call: parts"
    assert len(words) > 150
