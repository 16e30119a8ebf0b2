"""What analysts write is data: no module runs text as code, pastes it into SQL, or reads YAML by another reader."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repository.test_layout import ROOMS, ROOT, modules
from tests.support.python_files import nodes_of, tree_of
from trendlake.pipelines.lake.maintain import KEEP
from trendlake.pipelines.lake.warehouse import KEPT, folder_name

RUN = {"eval", "exec", "compile", "__import__"}
"""Builtins that run text."""
TEXT = {"sql", "expr", "selectExpr", "where", "filter", "query", "having", "call_udf"}
"""Methods of Spark that take text as a language of its own."""
YAML_READERS = {f"cep_core/yaml/{name}.py" for name in ("limits", "parser", "scalars", "source")}
"""Where PyYAML may be named: all else reads and writes by them."""

EXCEPTED = {"pipelines": ["pipelines/lake/maintain.py .sql() of text that is not written out"]}
"""A path of the warehouse, as a quoted identifier, where Spark takes no parameter."""


def constants(tree: ast.Module) -> set[str]:
    """Names that the module gives one text, written out."""
    return {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def offences(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and words of each call that could run what somebody wrote."""
    fixed = constants(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in RUN:
            yield node.lineno, f"{called.id}()"
        if not isinstance(called, ast.Attribute):
            continue
        of = called.value.id if isinstance(called.value, ast.Name) else ""
        if called.attr in ("load", "unsafe_load", "full_load") and of == "yaml" and called.attr != "load":
            yield node.lineno, f"yaml.{called.attr}()"
        if called.attr == "system" or (of == "os" and called.attr in ("popen", "execl", "execv")):
            yield node.lineno, f"{of}.{called.attr}()"
        if any(word.arg == "shell" for word in node.keywords):
            yield node.lineno, "shell="
        if called.attr in TEXT and of not in ("np", "pc", "re"):
            for argument in node.args:
                if isinstance(argument, ast.JoinedStr | ast.BinOp) and is_text(argument):
                    yield node.lineno, f".{called.attr}() of text put together"
                if called.attr in ("sql", "expr", "selectExpr") and not (
                    isinstance(argument, ast.Constant) or (isinstance(argument, ast.Name) and argument.id in fixed)
                ):
                    yield node.lineno, f".{called.attr}() of text that is not written out"
                if called.attr in ("where", "filter") and isinstance(argument, ast.Constant):
                    yield node.lineno, f".{called.attr}() of text"


def is_text(node: ast.expr) -> bool:
    """Whether an expression puts text together: an f-string, or + and % with a literal text in it."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mod) and (is_text(node.left) or is_text(node.right))
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


@pytest.mark.parametrize("room", ROOMS)
def test_no_text_is_run(room: str) -> None:
    """No eval, no SQL built by pasting, no shell."""
    problems = [f"{path.relative_to(ROOT)} {words}" for path in modules(room) for _, words in offences(tree_of(path))]
    assert problems == EXCEPTED.get(room, [])


@pytest.mark.parametrize(
    "code",
    [
        "eval(text)",
        "exec(text)",
        "compile(text, 'x', 'eval')",
        "spark.sql(f'SELECT {x}')",
        "spark.sql(text)",
        "spark.sql('SELECT ' + x)",
        "sf.expr(condition)",
        "frame.selectExpr(text)",
        "frame.where(f'{x} > 1')",
        "frame.where('a > 1')",
        "frame.filter('%s > 1' % x)",
        "yaml.unsafe_load(x)",
        "os.system(x)",
        "subprocess.run(x, shell=True)",
    ],
)
def test_the_rule_sees(code: str) -> None:
    assert list(offences(ast.parse(code)))


def test_one_reader_of_yaml() -> None:
    """Other readers build objects, or take what this one refuses."""
    problems: dict[str, set[str]] = {}
    for room in ROOMS:
        for path in modules(room):
            for node in nodes_of(path):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
                for name in (*names, module):
                    if name.split(".")[0] in ("yaml", "ruamel", "pickle", "marshal", "shelve"):
                        problems.setdefault(str(path.relative_to(ROOT)), set()).add(name.split(".")[0])
    # Machine code is code: that of the package, which whoever installs it trusts. Work for Spark's workers comes from
    # the driver, as all that Spark sends them does.
    objects = {"cep_core/kernel_cache.py": {"pickle"}, "pipelines/execute/spark_frames.py": {"pickle"}}
    assert problems == {name: {"yaml"} for name in YAML_READERS} | objects


def test_one_way_into_spark() -> None:
    """PySpark loses rows of some tables (`pipelines.spark.frames`)."""
    problems = {
        path.name
        for room in ROOMS
        for path in modules(room)
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "createDataFrame"
        if not isinstance(node.args[0], ast.List)
    }
    assert problems == {"frames.py"}


def test_the_one_statement_says_what_is_kept() -> None:
    """`maintain` sets the properties that new tables have."""
    for name, value in KEPT.items():
        assert f"'{name}' = '{value}'" in KEEP


@pytest.mark.parametrize("run_id", ["..", ".", "../../x", "a/b", "", "/etc", "_x", ".x", "x" * 500, "\x00", "C:\\x"])
def test_a_run_id_is_a_folder_of_its_own(run_id: str) -> None:
    """Whatever a run is called, its staging lies below its pattern's, and no other run has the same."""
    name = folder_name(run_id)
    assert Path("/staging/pattern", name).resolve().parent == Path("/staging/pattern")
    assert not name.startswith((".", "_"))
    assert name != folder_name(run_id + "x")
