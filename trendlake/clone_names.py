"""The names that our packages have in a clone, from its root: `import cep_core` gives `trendlake.cep_core` itself.

A clone has the packages in the folders `cep_core/`, `pipelines/` and `jobs/` at its root, and `trendlake/` has symbolic
links to them. Python that starts in the root finds a package by both names, and would make two modules of one file: two
classes of each name, two caches. So the `__init__.py` of each package calls `share` when it runs under its short name.
An installed package has no such folders. Our own code uses the names below `trendlake` only, and so do its pickles.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from types import CodeType, ModuleType

OWNER = __name__.rpartition(".")[0]


def share(package: str) -> None:
    """Makes the package `cep_core`, `pipelines` or `jobs` the module below `trendlake`, and so its modules."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    sys.modules[package] = import_module(f"{OWNER}.{package}")


class _Finder(MetaPathFinder):
    """Finds `cep_core.engine` as `trendlake.cep_core.engine`, for the packages that are shared."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package = fullname.partition(".")[0]
        shared = sys.modules.get(f"{OWNER}.{package}")
        if path is None or shared is None or sys.modules.get(package) is not shared:
            return None
        spec = find_spec(f"{OWNER}.{fullname}")
        if spec is None:
            return None
        folders = spec.submodule_search_locations
        return spec_from_file_location(
            fullname, spec.origin, loader=_Loader(spec), submodule_search_locations=folders and [*folders]
        )


class _Loader(Loader):
    """Gives the module of another name."""

    def __init__(self, spec: ModuleSpec) -> None:
        self.spec = spec

    def exec_module(self, module: ModuleType) -> None:
        """Puts the real module in the place of the new one: the import system returns the entry of `sys.modules`."""
        sys.modules[module.__name__] = import_module(self.spec.name)

    def get_code(self, fullname: str) -> CodeType | None:
        """The code of the module, which `python -m` runs."""
        loader = self.spec.loader
        return loader.get_code(self.spec.name) if isinstance(loader, InspectLoader) else None
