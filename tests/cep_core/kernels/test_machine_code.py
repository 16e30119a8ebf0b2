"""Machine code that a wheel brings along: the same rows without a compiler, and only where it was made for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trendlake.cep_core.kernel_cache import FEATURES, MADE_WITH

COMPILE = """
import sys
from pathlib import Path
from trendlake.cep_core.kernel_cache import KernelCache
if sys.argv[2] == "make":
    KernelCache.made_in = Path(sys.argv[1])
else:
    import trendlake.cep_core.kernel_cache as kernel_cache
    kernel_cache.SHIPPED = Path(sys.argv[1])
exec(sys.argv[3])
from numba.core import event

class Listener(event.Listener):
    compiled = 0
    def on_start(self, event): self.compiled += 1
    def on_end(self, event): pass

listener = Listener()
event.register("numba:compile", listener)
exec(sys.argv[4])
"""
EVALUATE = """
import pyarrow as pa
from trendlake.cep_core import evaluate
events = pa.table({
    "event_id": [f"e{n}" for n in range(50)],
    "event_time": pa.array([n * 1_000_000 for n in range(50)], pa.timestamp("us", "UTC")),
    "event_type": ["S"] * 50,
    "price": [n * 7919 % 31 / 7 for n in range(50)],
})
query = {"pattern": "S+", "where": ["S.price > NEXT(S).price"], "within": "1 day"}
rows = evaluate(query | {"return": {"n": "COUNT(*)", "mean": "AVG(S.price)"}}, events)
print(listener.compiled, rows.to_pylist())
"""
ONE_KERNEL = """
import numpy
from trendlake.cep_core.events.kernels.values import plain
rows = plain(numpy.ones(2))
print(listener.compiled, rows)
"""
NONE = ""


def answer(
    folder: Path, cache: Path, asked: str = ONE_KERNEL, *, make: bool = False, first: str = NONE, **settings: str
) -> tuple[int, str]:
    """How many functions a process without a cache has compiled, and its answer. `first`: code that comes first."""
    environment = os.environ | {"TRENDLAKE_CACHE": str(cache)} | settings
    command = [sys.executable, "-c", COMPILE, str(folder), "make" if make else "use", first, asked]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    compiled, rows = done.stdout.strip().split(" ", 1)
    return int(compiled), rows


@pytest.fixture(scope="module")
def machine_code(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder of machine code for the processor that wheels are made for, and the rows of the process that made it."""
    folder = tmp_path_factory.mktemp("machine_code")
    settings = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in FEATURES)}
    compiled, rows = answer(folder, tmp_path_factory.mktemp("cache"), EVALUATE, make=True, **settings)
    assert compiled > 0
    about = "from trendlake.cep_core.kernel_cache import made_with; import json; print(json.dumps(made_with()))"
    said = subprocess.run([sys.executable, "-c", about], cwd=ROOT, capture_output=True, text=True, check=True)
    (folder / MADE_WITH).write_text(said.stdout)
    return folder, rows


@pytest.mark.long
def test_nothing_is_compiled(machine_code: tuple[Path, str], tmp_path: Path) -> None:
    """In an empty home. The rows are those of code for this machine's own processor."""
    folder, rows = machine_code
    assert answer(folder, tmp_path / "new", EVALUATE) == (0, rows)
    compiled, own = answer(tmp_path, tmp_path / "own", EVALUATE)
    assert compiled > 0
    assert own == rows


@pytest.mark.long
@pytest.mark.parametrize(
    "first",
    [
        "import numba; numba.__version__ = '0.99.0'",
        "kernel_cache.np = type('', (), {'__version__': '9.9'})",
        "import llvmlite; llvmlite.__version__ = '0.99'",
        "kernel_cache.binding = type('', (), {'get_host_cpu_features': lambda: {'sse4.2': True, 'avx': True}})",
        "kernel_cache.source_digest = lambda: 'another'",
        "import platform; platform.machine = lambda: 'aarch64'",
    ],
    ids=["numba", "numpy", "llvmlite", "processor", "source", "machine"],
)
def test_code_that_was_made_for_another(machine_code: tuple[Path, str], tmp_path: Path, first: str) -> None:
    """It is not run: the kernel is compiled."""
    assert answer(machine_code[0], tmp_path / "as it is") == (0, "True")
    compiled, own = answer(machine_code[0], tmp_path / "another", first=first)
    assert compiled > 0
    assert own == "True"


@pytest.mark.long
@pytest.mark.parametrize("spoilt", ["half a file", "no file", "another's file", "no description"])
def test_files_that_are_not_whole(machine_code: tuple[Path, str], tmp_path: Path, spoilt: str) -> None:
    folder = shutil.copytree(machine_code[0], tmp_path / "code")
    files = sorted(folder.glob("*.z"))
    for file in files:
        match spoilt:
            case "half a file":
                file.write_bytes(file.read_bytes()[:-10])
            case "no file":
                file.unlink()
            case "another's file":
                file.write_bytes(b"x")
    if spoilt == "no description":
        (folder / MADE_WITH).write_text(json.dumps({}))
    compiled, own = answer(folder, tmp_path / "cache")
    assert compiled > 0
    assert own == "True"
