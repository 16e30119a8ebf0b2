"""A name in backticks in a docstring or comment is the name of something."""

from __future__ import annotations

import ast
import builtins
import io
import keyword
import re
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import pytest

from scripts.prose import PACKAGES, docstrings, modules
from tests.conftest import ROOT
from tests.repository.test_layout import module_name

QUOTED = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")
NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:\(\))?")
FILE = re.compile(rf"(?:{'|'.join((*PACKAGES, 'tests', 'scripts', 'docs', 'conf'))})/[\w/.-]+")
SUFFIXES = (".py", ".lark", ".yaml", ".crc")

ELSEWHERE = {
    "Table.to_pylist": "a method of pyarrow",
    "apache_airflow_provider": "an entry point, in pyproject.toml",
    "col": "a function of Spark",
    "cron_presets": "of Airflow",
    "data_interval_end": "a field of Airflow's API",
    "data_interval_start": "a field of Airflow's API",
    "metadata.id": "a field of Delta's log",
    "pa.Array": "a class of pyarrow",
    "spark.python.daemon.module": "a setting of Spark",
    "spark.redaction.regex": "a setting of Spark",
    "start_date": "a field of Airflow's API",
    "strptime": "a function of Python's library",
    "to_numpy": "a method of pyarrow",
    "xxhash64": "a function of Spark",
    "UA": "a value of an example",
    "VERSION.crc": "a file of Delta's log",
    "g0": "a column with a number",
    "manual_20130102T030405_678": "a value of an example",
    "price_alarm_aapl_100": "a value of an example",
}
"""Names that are defined outside of this repository, and values."""


def prose_of(source: str) -> Iterator[tuple[int, str]]:
    """(line, text) of each docstring and comment."""
    yield from docstrings(source)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def stored(node: ast.AST) -> set[str]:
    """The names and attributes that a statement assigns."""
    inside = [inner for inner in ast.walk(node) if isinstance(getattr(inner, "ctx", None), ast.Store)]
    names = {inner.id for inner in inside if isinstance(inner, ast.Name)}
    return names | {inner.attr for inner in inside if isinstance(inner, ast.Attribute)}


def defined(node: ast.stmt) -> set[str]:
    """The names that a statement of a module or class defines."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Assign(targets=[ast.Name(id="__all__")], value=exported):
            return {str(name) for name in ast.literal_eval(exported)}
        case ast.Assign() | ast.AnnAssign():
            return stored(node)
        case ast.If() | ast.Try() | ast.With():
            return set().union(*(defined(inner) for inner in ast.iter_child_nodes(node) if isinstance(inner, ast.stmt)))
    return set()


def strings(tree: ast.Module) -> Iterator[str]:
    """The strings of a module that are no docstrings: names of columns, options and keys among them."""
    prose = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in prose:
            yield node.value


def used(tree: ast.Module) -> set[str]:
    """All names in the code of a module, parameters and local variables too, and the words of its strings."""
    names = {word for text in strings(tree) for word in re.findall(r"[A-Za-z_]\w*", text)}
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                names.add(name)
            case ast.alias(name=name):
                names |= {*name.split("."), node.asname or name}
    return names


@dataclass(frozen=True)
class Code:
    """`modules`: the names that each module defines; `classes`: the members of each class; `names`: these, and all
    strings. A name in the prose of a module is one of `names`, or one that the module uses."""

    modules: Mapping[str, set[str]]
    classes: Mapping[str, set[str]]
    names: set[str]

    @classmethod
    def of(cls, sources: Mapping[str, str]) -> Code:
        """The code of modules, by their dotted names."""
        modules, classes, bases = dict[str, set[str]](), dict[str, set[str]](), dict[str, set[str]]()
        names = {*dir(builtins), *keyword.kwlist}
        for module, source in sources.items():
            tree = ast.parse(source)
            modules[module] = set().union(*(defined(node) for node in tree.body))
            names |= {*module.split("."), *strings(tree), *modules[module]}
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    functions = [inner for inner in node.body if isinstance(inner, ast.FunctionDef)]
                    members = set().union(*map(defined, node.body), *map(stored, functions))
                    classes.setdefault(node.name, set()).update(members)
                    bases[node.name] = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
                elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    names.add(node.name)
        for name in classes:
            for base in inherited(name, bases):
                classes[name] |= classes.get(base, set())
        return cls(modules, classes, names.union(*classes.values()))

    def knows(self, name: str, own: set[str]) -> bool:
        """Whether a dotted name exists; `own`: the names that the module around it uses."""
        parts = name.removesuffix("()").split(".")
        if parts[0] in self.classes:
            return len(parts) == 1 or parts[1] in self.classes[parts[0]]
        for length in range(len(parts), 0, -1):
            prefix = ".".join(parts[:length])
            matching = [module for module in self.modules if module == prefix or module.endswith(f".{prefix}")]
            if matching and length < len(parts) and not prefix.startswith("_"):
                rest = parts[length:]
                inside = [rest[0] in self.modules[module] for module in matching]
                member = len(rest) == 1 or rest[1] in self.classes.get(rest[0], set())
                if (any(inside) and member) or parts[0] in PACKAGES:
                    return any(inside) and member
            elif matching:
                return True
        return parts[0] not in PACKAGES and all(part in own or part in self.names for part in parts)


def inherited(name: str, bases: Mapping[str, set[str]]) -> set[str]:
    """The classes above a class, by their names."""
    direct = bases.get(name, set()) - {name}
    return direct.union(*(inherited(base, bases) for base in direct))


def unknown(source: str, code: Code) -> list[tuple[int, str]]:
    """(line, name) of each name in backticks that does not exist."""
    own = used(ast.parse(source))
    wrong = []
    for line, text in prose_of(source):
        for quoted in QUOTED.findall(text):
            if FILE.fullmatch(quoted):
                exists = (ROOT / quoted).exists()
            elif NAME.fullmatch(quoted) and not quoted.endswith(SUFFIXES):
                exists = quoted in ELSEWHERE or code.knows(quoted, own)
            elif quoted.endswith(SUFFIXES) and "/" not in quoted and " " not in quoted:
                exists = quoted in ELSEWHERE or quoted in file_names()
            else:
                continue
            if not exists:
                wrong.append((line, quoted))
    return wrong


@cache
def code() -> Code:
    return Code.of({module_name(path): path.read_text() for path in modules()})


@cache
def file_names() -> frozenset[str]:
    folders = (*PACKAGES, "data_contracts", "tests", "scripts")
    return frozenset(path.name for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())


@pytest.mark.parametrize("package", PACKAGES)
def test_names_exist(package: str) -> None:
    files = [path for path in modules() if path.relative_to(ROOT).parts[0] == package]
    assert files
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}" for path in files for line, name in unknown(path.read_text(), code())
    ]
    assert wrong == []


def test_every_exception_is_needed() -> None:
    quoted = {name for path in modules() for _, text in prose_of(path.read_text()) for name in QUOTED.findall(text)}
    assert ELSEWHERE.keys() - quoted == set()
    assert [name for name in ELSEWHERE if name.isidentifier() and name in code().names] == []


def test_an_unknown_name_is_seen() -> None:
    place = "class Old:\n    def last(self): ...\n\n\nclass Place(Old):\n    line: int\n\n\ndef near(other): ...\n"
    package = Code.of({"cep_core.place": place, "cep_core.other": "__all__ = ['shared']\nCOLUMN = 'a_column'\n"})
    module = '''"""`cep_core.place`, `cep_core.place.near`, `cep_core.place.Place.line`, `place.near()`, `Place.last`.

`cep_core.places`, `cep_core.place.far`, `cep_core.place.Place.column`, `place.far`, `Place.first`, `place.line`.
`tests/repository/test_names.py`, `tests/repository/no_test.py`, `test_names.py`, `no_test.py`, `<other>`, `a = b`.
"""


def function(parameter):  # `parameter` and `argument`
    """The `parameter` of `function`, of `near` and `Place`, `a_column`, `cep_core.other.shared`; no `other_column`."""
'''
    assert [name for _, name in unknown(module, package)] == [
        *("cep_core.places", "cep_core.place.far", "cep_core.place.Place.column", "place.far", "Place.first"),
        *("tests/repository/no_test.py", "no_test.py", "other_column", "argument"),
    ]
