"""docs/architecture.md, where.md and glossary.md speak of the code as it is: its files, its symbols, its imports."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from tests.repository.test_layout import ROOT, arrows
from tests.support.python_files import tree_of
from trendlake.pipelines.revision.repairs import State

PAGES = {"architecture.md": 40, "where.md": 40, "glossary.md": 20}
"""The pages, each with a number of references that it exceeds."""
REFERENCE = re.compile(
    r"\b((?:cep_core|pipelines|jobs|dags|trendlake|tests|bench|conf)/[\w/.]*[\w/])(?::([A-Za-z_][\w.]*))?"
)
MERMAID = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)
Graph = dict[str, set[str]]


def text(page: str) -> str:
    return (ROOT / "docs" / page).read_text()


def references(page: str) -> list[tuple[str, str]]:
    """(path, symbol) of each mention of a file or folder; the symbol is empty where none is named."""
    return sorted(set(REFERENCE.findall(re.sub(r"\S*<[^>]*>\S*", "", page))))


@cache
def symbols(path: Path) -> frozenset[str]:
    """The names at the top of a module, and those of its classes as `Class.name`."""
    names: set[str] = set()
    for node in tree_of(path).body:
        names |= defined(node)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{name}" for inner in node.body for name in defined(inner)}
    return frozenset(names)


def defined(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def missing(path: str, symbol: str) -> str | None:
    """What the code does not have of a reference."""
    file = ROOT / path
    if not file.exists():
        return f"no file {path}"
    if symbol and symbol not in symbols(file):
        return f"no '{symbol}' in {path}"
    return None


@pytest.mark.parametrize("page", PAGES)
def test_files_and_symbols_exist(page: str) -> None:
    named = references(text(page))
    assert len(named) > PAGES[page]
    assert [fault for path, symbol in named if (fault := missing(path, symbol))] == []


def test_a_stale_reference_is_seen() -> None:
    files = "`cep_core/engine.py:explain` `cep_core/engine.py:run_plans` `cep_core/motor.py`"
    page = f"{files} `cep_core/yaml/source.py:Source.place`"
    faults = [missing(path, symbol) for path, symbol in references(page)]
    assert faults == [None, "no 'run_plans' in cep_core/engine.py", "no file cep_core/motor.py", None]


def test_forty_questions_have_an_answer() -> None:
    rows = re.findall(r"^\| ([^|]*\?) \| (.*) \|$", text("where.md"), re.MULTILINE)
    questions = [(question, answer) for question, answer in rows if question != "where is ...?"]
    assert len(questions) >= 40
    assert [question for question, answer in questions if not references(answer)] == []


def drawn(page: str) -> dict[str, Graph]:
    """The arrows of each drawing, by the package that it says it is of."""
    graphs: dict[str, Graph] = {}
    for block in MERMAID.findall(page):
        of_imports = re.search(r"%% imports of (\w+)", block)
        if of_imports is None:
            continue
        package = of_imports[1]
        graph = graphs.setdefault(package, {})
        for source, target in re.findall(r"^\s*(\w+) --> (\w+)$", block, re.MULTILINE):
            assert target not in graph.setdefault(source, set()), f"{source} --> {target} is drawn twice"
            graph[source].add(target)
    return graphs


def measured(package: str) -> Graph:
    """The imports between the folders and files that lie directly under `package`."""
    graph: Graph = {}
    for module, targets in arrows().items():
        for target in targets:
            ours = [name.split(".")[2] for name in (module, target) if name.startswith(f"trendlake.{package}.")]
            if len(ours) == 2 and ours[0] != ours[1]:
                graph.setdefault(ours[0], set()).add(ours[1])
    return graph


def reduced(graph: Graph) -> Graph:
    """The graph without the arrows that follow from others (transitive reduction; `graph` has no circles)."""

    def reached(start: str) -> set[str]:
        return {end for step in graph.get(start, ()) for end in {step} | reached(step)}

    remaining = {a: {b for b in targets if not any(b in reached(c) for c in targets)} for a, targets in graph.items()}
    return {a: targets for a, targets in remaining.items() if targets}


@pytest.mark.parametrize("package", ["cep_core", "pipelines"])
def test_drawn_arrows_are_the_imports(package: str) -> None:
    assert drawn(text("architecture.md"))[package] == reduced(measured(package))


def test_a_reduction_leaves_out_what_follows() -> None:
    assert reduced({"a": {"b", "c"}, "b": {"c"}}) == {"a": {"b"}, "b": {"c"}}


def test_the_drawn_states_are_those_that_are_shown() -> None:
    """`not_known` is no state of results: then nobody can say which it is."""
    (picture,) = (block for block in MERMAID.findall(text("architecture.md")) if "behind_source" in block)
    states = set(re.findall(r"--> (\w+) -- ", picture))
    assert states == {*get_args(State)} - {"not_known"}
