"""The rooms and the arrows between them: dags -> jobs -> pipelines -> cep_core, never back."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.python_files import nodes_of, tree_of

ROOMS = ("cep_core", "pipelines", "jobs", "dags")
"""From the bottom up: a module may import from its own room and from those below."""
PACKAGES = ROOMS[:-1]
"""The rooms that are packages below `trendlake`. Airflow reads the files of the last one."""
FOREIGN = {
    "cep_core": {"pyspark", "delta", "airflow", "great_expectations", "typer", "rich"},
    "pipelines": {"airflow", "typer"},
    "jobs": {"airflow"},
    "dags": {"pyspark", "delta", "great_expectations"},
}
CLOCKS = {"now", "utcnow", "today", "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter"}


KINDS = ("trends", "matches", "automaton", "algebra", "match_recognize", "xml_join")
CACHE, COMPILED = "trendlake.cep_core.kernel_cache", "trendlake.cep_core.compiled"
ARRAY_TYPES = "trendlake.cep_core.events.array_types"
"""Annotations, which no machine code depends on."""


def modules(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and top name of every import, those inside functions too; of `trendlake.cep_core` the room, `cep_core`."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, top_name(alias.name)) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, top_name(f"{node.module}.{alias.name}")) for alias in node.names)


def top_name(module: str) -> str:
    return module.removeprefix("trendlake.").split(".")[0]


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_down(room: str) -> None:
    """No module imports from a room above its own, nor what its room must not know."""
    above = set(ROOMS[ROOMS.index(room) + 1 :]) | FOREIGN[room]
    problems = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in modules(room)
        for line, name in imports(path)
        if name in above
    ]
    assert modules(room)
    assert not problems


@pytest.mark.parametrize("room", ROOMS)
def test_imports_are_absolute(room: str) -> None:
    """So that the arrows can be read in every file's head."""
    problems = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in modules(room)
        for node in nodes_of(path)
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not problems


def test_windows_alone_know_their_arithmetic() -> None:
    """Whoever needs the start, the end or the number of a window asks `Windows`: windows of a calendar are of no equal
    length. Excepted are the forms of its arithmetic in Spark's columns and in a kernel's arguments."""
    excepted = {"cep_core/events/windows.py", "pipelines/results/windows.py", "cep_core/trends/run/window_tasks.py"}
    problems = [
        f"{name}:{node.lineno} reads .{node.attr}"
        for room in ROOMS
        for path in modules(room)
        if (name := str(path.relative_to(ROOT))) not in excepted
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute)
        and node.attr in ("within", "slide", "origin")
        and ast.unparse(node.value).rpartition(".")[2] == "windows"
    ]
    assert not problems


def test_the_public_package_shows_the_engine_only() -> None:
    """`import trendlake` brings neither Spark nor the command, nor the engine before it is used."""
    code = """
import sys, trendlake
ours = {"trendlake.jobs", "trendlake.pipelines"}
print(sorted({"pyspark", "typer", "trendlake.cep_core", *ours} & set(sys.modules)))
print(trendlake.evaluate.__module__, sorted({"pyspark", "typer", *ours} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "trendlake.cep_core.frames.evaluate []"]


def test_the_engine_reads_no_clock() -> None:
    """Results depend on events and plan only: cep_core asks nobody what time it is."""
    problems = []
    for path in modules("cep_core"):
        tree = tree_of(path)
        named = {name for _, name in imports(path)} & {"time", "calendar", "sched"}
        problems += [f"{path.relative_to(ROOT)} imports {name}" for name in sorted(named)]
        problems += [
            f"{path.relative_to(ROOT)}:{node.lineno} calls {node.func.attr}()"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in CLOCKS
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id in {"datetime", "date", "time", "dt"}
        ]
    assert not problems


def test_the_engine_loads_without_spark_and_airflow() -> None:
    """Importing cep_core brings neither along, whatever is installed."""
    code = """
import sys, trendlake.cep_core
print(sorted({"pyspark", "airflow", "delta", "trendlake.pipelines"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def module_name(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    return f"trendlake.{name}" if path.relative_to(ROOT).parts[0] in PACKAGES else name


def imported_modules(path: Path, ours: frozenset[str]) -> Iterator[str]:
    """The modules of ours that a file imports, inside functions too."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in ours)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in ours or node.module in ours:
                    yield inner if inner in ours else node.module


@cache
def arrows() -> dict[str, set[str]]:
    """Each module of ours and the modules it imports; the re-exports of a package's `__init__` are no arrows of it."""
    files = {module_name(path): path for room in ROOMS for path in modules(room)}
    ours = frozenset(files)
    return {name: set(imported_modules(path, ours)) - {name} for name, path in files.items()}


def folder(module: str, packages: frozenset[str], halls: frozenset[str]) -> str:
    """The folder of a module. Of a folder that has folders inside (a hall) each file stands for itself."""
    if module in packages:
        return module
    parent = module.rpartition(".")[0]
    return module if parent in halls or not parent else parent


def circle(arrows: dict[str, set[str]]) -> list[str]:
    """Some modules of which each imports the next, and the last is the first; empty where there are none."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_two_files_import_each_other() -> None:
    assert not circle(arrows())


def test_no_two_folders_import_each_other() -> None:
    files = arrows()
    packages = frozenset(module_name(p) for room in ROOMS for p in modules(room) if p.name == "__init__.py")
    halls = frozenset(name.rpartition(".")[0] for name in packages)
    folders: dict[str, set[str]] = {}
    for a, targets in files.items():
        own = folder(a, packages, halls)
        folders.setdefault(own, set()).update(folder(b, packages, halls) for b in targets)
    assert not circle({name: targets - {name} for name, targets in folders.items()})


def test_kinds_do_not_import_each_other() -> None:
    """What two kinds need stands in a room that both may use."""
    wrong = [
        f"{a} imports {b}"
        for a, targets in arrows().items()
        for b in targets
        for kind in KINDS
        if a.startswith(f"trendlake.cep_core.{kind}.") and b.startswith("trendlake.cep_core.")
        if any(b.startswith(f"trendlake.cep_core.{other}.") for other in KINDS if other != kind)
    ]
    assert not wrong


def test_only_the_registry_names_a_kind() -> None:
    """Everybody else asks the plan or `cep_core.kinds`, which imports the entry of each when it is asked for."""
    own = tuple(f"trendlake.cep_core.{kind}" for kind in KINDS)
    wrong = [
        f"{a} imports {b}"
        for a, targets in arrows().items()
        for b in targets
        if b.startswith(own) and not a.startswith(own)
    ]
    assert not wrong


def test_compiled_code_is_in_kernels_only() -> None:
    """And every package of kernels first imports the module that says where machine code is cached."""
    compiled = [
        path
        for room in ROOMS
        for path in modules(room)
        if "intrinsic" in names_of(path) or COMPILED in arrows()[module_name(path)]
    ]
    assert len(compiled) > 20
    assert [module_name(path) for room in ROOMS for path in modules(room) if "njit" in names_of(path)] == [COMPILED]
    assert [str(path.relative_to(ROOT)) for path in compiled if path.parent.name != "kernels"] == []
    for package in {path.parent for path in compiled}:
        assert CACHE in full_imports(package / "__init__.py"), package


def test_kernels_import_kernels_only() -> None:
    """What else they held inlined could change without their cached machine code being made anew."""
    wrong = [
        f"{a} imports {b}"
        for a, targets in arrows().items()
        for b in targets
        if ".kernels" in a and not (".kernels" in b or b.endswith("opcodes") or b in (CACHE, COMPILED, ARRAY_TYPES))
    ]
    assert not wrong


def names_of(path: Path) -> set[str]:
    return {node.id for node in nodes_of(path) if isinstance(node, ast.Name)}


def full_imports(path: Path) -> set[str]:
    return {a.name for n in nodes_of(path) if isinstance(n, ast.Import) for a in n.names}


def test_checking_a_pattern_loads_no_compiled_code() -> None:
    """Airflow parses DAGs every minute, and the command's help is asked for often: numba takes a second to load."""
    code = """
import sys
from trendlake.cep_core import compile_query, explain
from trendlake.cep_core.events.schema import EventSchema
columns = {"id": "string", "at": "timestamp", "what": "string", "price": "double"}
query = {"kind": "trends", "pattern": "S+", "where": ["S.price > NEXT(S).price", "1 < 2"], "return": {"n": "COUNT(*)"},
         "within": "1 day"}
print(len(explain(compile_query(query, EventSchema(columns, "id", "at", "what")))) > 0, "numba" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_the_folders_of_tests_are_those_of_the_code() -> None:
    """So that whoever reads a file knows where its tests are."""
    for room in ROOMS:
        for folder in (path for path in (ROOT / "tests" / room).glob("*/") if (path / "__init__.py").is_file()):
            code = ROOT / room / folder.name
            assert code.is_dir() or code.with_suffix(".py").is_file(), f"{folder} tests nothing of that name"


MOST_PARAMETERS = 12


def test_functions_of_the_engine_have_few_parameters() -> None:
    """What belongs together is a named tuple."""
    many = {
        f"{path.relative_to(ROOT)}:{node.name}": count
        for path in (ROOT / "cep_core").rglob("*.py")
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef)
        and (count := len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs)) > MOST_PARAMETERS
    }
    assert many == {}


def test_the_formatter_touches_every_line() -> None:
    """One way to lay out code: no line is kept from the formatter."""
    marks = "# fmt: " + "skip", "# fmt: " + "off"
    lines = (
        f"{path.relative_to(ROOT)}:{number}"
        for room in (*ROOMS, "trendlake", "tests", "bench", "scripts")
        for path in modules(room)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if any(mark in line for mark in marks)
    )
    assert not list(lines)
