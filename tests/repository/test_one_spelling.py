"""Modules of ours are imported below `trendlake`; the short names of a clone give the same modules."""

from __future__ import annotations

import ast
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.repository.test_layout import PACKAGES, modules

CODE = ("trendlake", *PACKAGES, "dags", "tests", "bench", "scripts")
SHORT = re.compile(
    r"(?<![\w.])from (?:cep_core|pipelines|jobs)(?:\.\w+)* import\b"
    r"|(?<![\w.`])import (?:[\w.]+(?: as \w+)?, )*(?:cep_core|pipelines|jobs)\b(?!/)"
    r"|-m (?:cep_core|pipelines|jobs)\.\w"
)
NOT_MODULES = {"trendlake.jobs.submit"}
"""A script, which changes Python's path when it is imported."""
EVERY_MODULE = """
import sys, warnings
from importlib import import_module
warnings.simplefilter("ignore")
names = sys.argv[2:]
first, second = ("", "trendlake.") if sys.argv[1] == "short" else ("trendlake.", "")
modules = {name: import_module(first + name) for name in names}
assert all(import_module(second + name) is module for name, module in modules.items())
assert all(sys.modules[name] is sys.modules["trendlake." + name] for name in names)
assert all(module.__spec__.name == module.__name__ == "trendlake." + name for name, module in modules.items())
import cep_core, jobs, pipelines, trendlake
assert (cep_core, jobs, pipelines) == (trendlake.cep_core, trendlake.jobs, trendlake.pipelines)
twice = [name for name in sys.modules if name.split(".")[0] in ("cep_core", "jobs", "pipelines")]
assert all(sys.modules[name] is sys.modules["trendlake." + name] for name in twice)
print(len(modules))
"""
PICKLE = """
import pickle
from cep_core import EventSchema, compile_query
columns = {"event_id": "string", "event_time": "timestamp", "event_type": "string"}
plan = compile_query({"pattern": "A+", "return": {"n": "COUNT(*)"}, "within": "1 day"}, EventSchema(columns))
print(pickle.dumps(plan).hex())
"""
"""Prints a plan that was made by the short name, as hexadecimal digits."""


def run(*words: str, folder: Path = ROOT) -> str:
    """What Python prints that starts in a folder, where nothing has imported `trendlake` before."""
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def short_names(text: str) -> list[str]:
    """Imports by a name of the clone alone, in code and in strings of code."""
    return [match.group() for match in SHORT.finditer(text)]


def test_our_code_uses_one_spelling() -> None:
    wrong = {
        str(path.relative_to(ROOT)): names
        for folder in CODE
        for path in modules(folder)
        if path != Path(__file__).resolve() and (names := short_names(path.read_text()))
    }
    assert wrong == {}
    assert len(short_names("from cep_core import a\nimport os, jobs.main\npython -m pipelines.x")) == 3


def every_module() -> list[str]:
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for package in PACKAGES
        for path in modules(package)
    ]
    return [name for name in names if f"trendlake.{name}" not in NOT_MODULES]


@pytest.mark.long
@pytest.mark.parametrize("first", ["short", "long"])
def test_a_module_is_one_under_both_names(first: str) -> None:
    """All modules, in a new process, the short name first and the long name first."""
    names = every_module()
    assert len(names) > 500
    assert run("-c", EVERY_MODULE, first, *names) == f"{len(names)}\n"


@pytest.mark.parametrize(
    "code",
    [
        "from cep_core import evaluate as one; from trendlake import evaluate as other",
        "from cep_core.events.schema import EventSchema as one; from trendlake import EventSchema as other",
        "import cep_core.errors; one = cep_core.errors.PatternErrors; from trendlake import PatternErrors as other",
        "from trendlake import PatternErrors as other; from cep_core.errors import PatternErrors as one",
        "from pipelines.project import paths as one; import trendlake.pipelines.project.paths as other",
        "import cep_core.engine as one, importlib; importlib.reload(one); import trendlake.cep_core.engine as other",
    ],
)
def test_both_names_give_one_object(code: str) -> None:
    assert run("-c", f"{code}\nassert one is other; print(one.__module__ if isinstance(one, type) else 'same')")


def test_a_name_that_no_module_has() -> None:
    code = "import cep_core\ntry: import cep_core.nothing\nexcept ModuleNotFoundError as e: print(e.name)"
    assert run("-c", code) == "cep_core.nothing\n"


@pytest.mark.parametrize("module", ["jobs.main", "trendlake.jobs.main"])
def test_a_module_runs_under_both_names(module: str) -> None:
    assert run("-m", module, "--version").startswith("trendlake ")


def test_a_process_that_is_started_anew_imports_the_same() -> None:
    """A function of ours, called by its short name, in a process that `multiprocessing` spawns."""
    code = "import multiprocessing as m; from cep_core.fingerprint import digest; "
    code += "print(m.get_context('spawn').Pool(1).map(digest, [1]) == [digest(1)])"
    assert run("-c", code) == "True\n"


def test_other_packages_of_these_names_are_left_alone(tmp_path: Path) -> None:
    """A project's own `jobs` is the one that it imports, however much of ours is loaded."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "__init__.py").touch()
    (tmp_path / "jobs" / "main.py").write_text("OWN = True\n")
    code = "import trendlake.jobs.main, cep_core.engine, jobs.main; print(jobs.main.OWN, jobs.main.__file__)"
    assert run("-c", code, folder=tmp_path) == f"True {tmp_path / 'jobs' / 'main.py'}\n"


def test_a_pickle_made_by_a_short_name_has_the_long_one() -> None:
    """So that Python without a clone reads it: a Spark worker, or a process of an installed package."""
    stored = bytes.fromhex(run("-c", PICKLE))
    assert b"trendlake.cep_core" in stored
    assert not re.search(rb"(?<!trendlake\.)\b(?:cep_core|pipelines|jobs)\b", stored)
    assert type(pickle.loads(stored)).__module__ == "trendlake.cep_core.trends.compile.plan"


def test_a_copy_without_symbolic_links(tmp_path: Path) -> None:
    """As an unpacked source distribution is, or a clone where git writes links as files with text."""
    for folder in ("trendlake", "cep_core"):
        shutil.copytree(
            ROOT / folder,
            tmp_path / folder,
            ignore=lambda path, names: {name for name in names if Path(path, name).is_symlink()},
        )
    (tmp_path / "trendlake" / "cep_core").write_text("../cep_core")
    code = "import cep_core.engine as one, trendlake.cep_core.engine as other; print(one is other, one.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"True {tmp_path / 'cep_core' / 'engine.py'}\n"


def test_the_packages_share_their_short_name_last() -> None:
    """`share` is the only thing that an `__init__.py` does under a short name and not under the long one."""
    for package in PACKAGES:
        tree = ast.parse((ROOT / package / "__init__.py").read_text())
        (clause,) = [node for node in tree.body if isinstance(node, ast.If)]
        assert ast.unparse(clause.test) == f"__name__ == '{package}'"
        assert [ast.unparse(node) for node in clause.body] == [
            "from trendlake.clone_names import share",
            "share(__name__)",
        ]
