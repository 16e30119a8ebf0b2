"""The rooms of pipelines keep to one seam between this process and Spark (docs/adr/0057-a-road-is-a-value.md), and are
given a lake, not a session (docs/adr/0058-functions-take-a-lake.md)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.conftest import ROOT
from tests.support.python_files import nodes_of

PIPELINES = sorted((ROOT / "pipelines").rglob("*.py"))
ERROR = "NotHereError"
ROADS_IN_NAMES = re.compile(r"^local_|_here$|_by_spark$")
MOST_PARAMETERS = 12


def sites(kind: type[ast.AST]) -> list[str]:
    """Where pipelines raises or catches the error of the seam."""
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}"  # type: ignore[attr-defined]
        for path in PIPELINES
        for node in nodes_of(path)
        if isinstance(node, kind) and ERROR in names_in(node)
    ]


def names_in(node: ast.AST) -> set[str]:
    """The names of the class that a statement raises, or that an `except` clause or a `with` names."""
    if isinstance(node, ast.Raise):
        parts = [node.exc] if node.exc else []
    elif isinstance(node, ast.ExceptHandler):
        parts = [node.type] if node.type else []
    elif isinstance(node, ast.With):
        parts = [item.context_expr for item in node.items]
    else:
        parts = []
    return {name.id for part in parts for name in ast.walk(part) if isinstance(name, ast.Name)}


def test_few_places_raise_and_catch() -> None:
    assert PIPELINES
    raising, catching = sites(ast.Raise), sites(ast.ExceptHandler) + sites(ast.With)
    assert 0 < len(raising) <= 5, raising
    assert 0 < len(catching) <= 5, catching
    assert {site.split(":")[0] for site in catching} == {"pipelines/lake/road.py"}


def test_no_catch_hides_a_mistake_of_ours() -> None:
    """The seam names the errors of other libraries, and no base class of KeyError or TypeError."""
    from trendlake.pipelines.lake.road import OF_OTHERS

    assert not [
        kind for kind in OF_OTHERS for mistake in (KeyError, TypeError, IndexError) if issubclass(mistake, kind)
    ]
    assert ValueError not in OF_OTHERS


def test_no_module_is_named_by_its_road() -> None:
    """Both roads of a thing are files of the same names, in folders, or `here.py` beside `spark.py`."""
    assert [path.stem for path in PIPELINES if ROADS_IN_NAMES.search(path.stem)] == []
    for path in PIPELINES:
        if path.stem == "here":
            assert (path.parent / "spark.py").is_file(), path


def test_functions_have_few_parameters() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for folder in ("pipelines", "jobs", "dags")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "commands" not in path.parts
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef) and parameters(node) > MOST_PARAMETERS
    ]
    assert wrong == []


def parameters(node: ast.FunctionDef) -> int:
    return len(node.args.posonlyargs) + len(node.args.args) + len(node.args.kwonlyargs)


def test_limits_are_in_one_file() -> None:
    """No module but `lake/limits.py` and the profile compares a count of rows or bytes with a number of its own."""
    large = re.compile(r"(?:num_rows|row_count|\brows|nbytes)\s*(?:<=|>=|<|>)\s*(?:\d{3,}|\d[\d_]{4,}|1 << \d+)")
    assert [str(path.relative_to(ROOT)) for path in PIPELINES if large.search(Path(path).read_text())] == []


COMPUTES = {"execute", "spark"}
"""The rooms of pipelines that are given a session: by then Spark has started."""


def annotations(node: ast.AST) -> list[ast.expr | None]:
    """The types of a function's parameters, or of what a class or a module holds."""
    if isinstance(node, ast.FunctionDef):
        return [item.annotation for item in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return [node.annotation] if isinstance(node, ast.AnnAssign) else []


def test_only_what_computes_is_given_a_session() -> None:
    """All others are given a `Lake` or a `Table`. The exceptions are those that make a lake."""
    files = [path for path in PIPELINES if path.relative_to(ROOT / "pipelines").parts[0] not in COMPUTES]
    taking = [
        f"{path.relative_to(ROOT)}: {node.name if isinstance(node, ast.FunctionDef) else ast.unparse(node)}"
        for path in (*files, *sorted((ROOT / "jobs").rglob("*.py")))
        for node in nodes_of(path)
        if any(kind is not None and "SparkSession" in ast.unparse(kind) for kind in annotations(node))
    ]
    assert len(files) > 150
    own = ("__init__", "of", "self._session: SparkSession | None = None")  # how a lake comes to its session
    expected = ["jobs/python/project.py: __init__", *(f"pipelines/lake/lake.py: {name}" for name in own)]
    assert sorted(taking) == sorted(expected)


def test_nothing_stands_for_a_session() -> None:
    for path in (*PIPELINES, *sorted((ROOT / "jobs").rglob("*.py"))):
        text = path.read_text()
        assert not re.search(r"\bcast\(\W*SparkSession", text), path
        assert path.stem == "lake" or "newSession" not in text, path
