"""Savings of a process that runs one command and ends. Another process that imports `trendlake.jobs` has none."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

ELSEWHERE = frozenset({"sqlalchemy", "pyspark.ml", "pyspark.sql.connect"})
"""Packages by which Great Expectations judges tables of databases and of Spark; it is given those of this process."""
_PROCESS = {"is_ours": False, "has_announced": False, "silent": False}


def begin() -> None:
    """To be called before anything is imported. Modules and their objects live until a command ends: the garbage
    collector, which would look at all of them again and again, comes rarely, and not at the end. It took a third of a
    small run."""
    _PROCESS["is_ours"] = True
    gc.set_threshold(10_000, 20, 1_000)
    atexit.register(gc.freeze)
    sys.meta_path.insert(0, _Spared())
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads for matrices, of which there are none


def is_ours() -> bool:
    """Whether this process runs our command and ends with it."""
    return _PROCESS["is_ours"]


def _tell_once() -> None:
    if not (_PROCESS["has_announced"] or _PROCESS["silent"]):
        _PROCESS["has_announced"] = True
        print("compiling code for this processor, once: it takes up to half a minute", file=sys.stderr, flush=True)


def before_a_command(*, silent: bool) -> None:
    """Has compilation announced, unless the command is `silent`, and spares pandas."""
    _PROCESS["silent"] = silent
    if not _PROCESS["is_ours"]:
        return
    from trendlake.cep_core.cache_folder import before_compilation

    if _tell_once not in before_compilation:
        before_compilation.append(_tell_once)
    if "pandas" not in sys.modules:
        _spare_pandas()


def _spare_pandas() -> None:
    """Lets pyarrow believe that there is no pandas, until a DataFrame of one of its tables is asked for. It looks
    whether a value that it is given is a Series, and imports pandas (0.4 s) to know that class."""
    import pyarrow

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pyarrow.array([0])
    finally:
        sys.meta_path.remove(finder)


class _Spared(MetaPathFinder):
    """Lets Great Expectations believe that `ELSEWHERE` are not installed (0.5 s). Other modules find them."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name in ELSEWHERE and _asks().startswith("great_expectations."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def _asks() -> str:
    """The name of the module that imports another one."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("importlib"):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", ""))


class _NoPandas(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
        return None
