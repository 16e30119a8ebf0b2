"""The paths of a project's parts: patterns, contracts, profiles and the state folder."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG

from trendlake.cep_core.errors import did_you_mean, readable
from trendlake.pipelines.errors import ProjectError

TABLE_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""The name of a table: that of its folder in the warehouse, and of the table in patterns."""
TEMPLATES = "results_"
"""How the name of a contract of results begins, which is a template and no source's."""
PRIVATE = 0o700
RENAMED_FROM = b"renamed_from"
"""The key of a pattern file whose results table has an older name."""
PUBLISHED = "results/"
"""How a source begins that is the results of the pattern named after it."""


def upstream(source: str) -> str | None:
    """The pattern whose results a source is; None for a table of events."""
    return source.removeprefix(PUBLISHED) if source.startswith(PUBLISHED) else None


@dataclass(frozen=True)
class Project:
    """`root` holds `conf/` and `data_contracts/`; `state` is the folder for all that runs make."""

    root: Path
    state: Path

    @property
    def patterns(self) -> Path:
        return self.root / "conf" / "patterns"

    @property
    def contracts(self) -> Path:
        return self.root / "data_contracts"

    def make_state(self) -> None:
        """Make the state folder if it is missing: tables, logs and settings are for this user alone. A folder that
        exists keeps its rights, because its owner has chosen them."""
        self.state.parent.mkdir(parents=True, exist_ok=True)
        self.state.mkdir(PRIVATE, exist_ok=True)

    def pattern_files(self) -> list[Path]:
        """Every pattern file, in a stable order."""
        return files_of(self.patterns, self.root)

    def contract_files(self) -> list[Path]:
        """Every contract, in a stable order: of sources, and the templates of results."""
        return files_of(self.contracts, self.root)

    def source_contracts(self) -> list[Path]:
        """Every contract of a source, in a stable order; contracts of results are templates and no source's."""
        return [path for path in self.contract_files() if not path.stem.startswith(TEMPLATES)]

    def own(self, path: Path) -> Path:
        """`path` as it is. Raises ProjectError for a file of the project that is a link out of it: errors quote the
        lines of a file, which may be one that only the server's own user can read. (A folder may be a link.)"""
        if self.root in path.absolute().parents and leads_out(path, self.root):
            raise ProjectError(f"{path} is {LEADS_OUT}", hint="put the file itself there")
        return path

    def pattern_path(self, name: str) -> Path:
        """The file of the pattern `name`, which may be a path. Raises ProjectError."""
        if name.endswith((".yaml", ".yml")):
            return self.own(Path(name))
        path = self.patterns / f"{name}.yaml"
        if not path.is_file():
            known = [file.stem for file in self.pattern_files()]
            now = self.renamed(name)
            hint = did_you_mean(name, known) if now is None else f"it is called '{now}' now, also as a source"
            raise ProjectError(f"there is no pattern '{name}' in {self.patterns}", hint=hint)
        return self.own(path)

    def table_of(self, pattern: str) -> str | None:
        """The name of the results table of a pattern: its own, or the one that its file says it was renamed from. None
        if it has no file."""
        path = self.patterns / f"{pattern}.yaml"
        try:
            state = path.stat()
        except (OSError, ValueError):
            return None
        if not S_ISREG(state.st_mode):
            return None
        return _renamed_from(path, state.st_mtime_ns, state.st_size) or pattern

    def renamed(self, name: str) -> str | None:
        """The pattern whose file says `renamed_from: name`; None if there is none."""
        others = (path.stem for path in self.pattern_files() if path.stem != name)
        return next((other for other in others if self.table_of(other) == name), None)

    def typed(self, name: str, file: str | Path) -> str:
        """The word for the pattern `name` of `file` on the command line: its name, or the path of a file elsewhere."""
        path = Path(file)
        return name if path.absolute() == (self.patterns / f"{name}.yaml").absolute() else shlex.quote(str(path))

    def contract_path(self, source: str) -> Path:
        """The contract of the source `source`. Raises ProjectError."""
        path = self.contracts / f"{source}.yaml"
        if not path.is_file():
            known = [file.stem for file in self.source_contracts()]
            raise ProjectError(
                f"the source '{source}' has no contract: {path} does not exist", hint=did_you_mean(source, known)
            )
        return self.own(path)


LEADS_OUT = "a link out of the project"
EXTENSION = ".yaml"


def files_of(folder: Path, root: Path) -> list[Path]:
    """The files of patterns or contracts in `folder`, in a stable order: those with the name of a table that can be
    read. `root`: the project's folder. Any user who can write into the folder chooses the names there, and an editor
    puts files of its own next to the one that is edited."""
    return [path for path in _entries(folder) if path.suffix == EXTENSION and fault_of(path, root) is None]


def odd_entries(folder: Path, root: Path) -> list[tuple[Path, ProjectError]]:
    """Each entry of `folder` that looks like a file of a pattern or contract and is none of `files_of`, with its error.
    Hidden files are meant for programs and not looked at."""
    faults = ((path, fault_of(path, root)) for path in _entries(folder))
    return [
        (path, ProjectError(f"{printable(path)} is not read: {fault[0]}", hint=fault[1]))
        for path, fault in faults
        if fault is not None
    ]


def fault_of(path: Path, root: Path) -> tuple[str, str] | None:
    """Why a file is no pattern and no contract, and what to do; None for one that is. Its text is not read."""
    if not TABLE_NAME.fullmatch(path.stem) or path.suffix != EXTENSION:
        plain = re.sub(r"[^a-z0-9_]+", "_", path.stem.lower()).lstrip("_0123456789")[:64].rstrip("_")
        rule = f"a lower case letter, then those, digits and _, 64 at most, then {EXTENSION}"
        return f"the name of such a file is {rule}", f"call it {plain or 'name'}{EXTENSION}"
    if path.is_symlink() and not os.path.exists(path):
        return "it is a link that leads nowhere", "remove it, or put the file itself there"
    if leads_out(path, root):
        return f"it is {LEADS_OUT}", "put the file itself there"
    if not os.path.isfile(path):  # to open a pipe would wait for a writer
        return "it is a folder" if os.path.isdir(path) else "it is no file", "move it out of this folder"
    return None


def leads_out(path: Path, root: Path) -> bool:
    """Whether a file is a link out of its folder and the project at `root`."""
    if not path.is_symlink():
        return False
    try:
        target = path.resolve(strict=False)
    except (OSError, RuntimeError):  # a link to itself
        return False
    return not any(target.is_relative_to(home.resolve()) for home in (root, path.parent))


def printable(path: Path) -> str:
    """A path on one line, as any terminal and log can show it."""
    return readable(str(path).replace("\n", "\\n"))


def _entries(folder: Path) -> Iterator[Path]:
    """The names that look like files in YAML, in a stable order, without hidden entries."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        if not name.startswith((".", "#")) and name.lower().endswith((EXTENSION, ".yml")):
            yield folder / name


@lru_cache(maxsize=10_000)
def _renamed_from(path: Path, _changed_at: int, _size: int) -> str | None:
    """The value of `renamed_from` in the pattern file, as of its last change."""
    from trendlake.cep_core.errors import TrendlakeError
    from trendlake.cep_core.yaml.limits import MAX_FILE
    from trendlake.cep_core.yaml.source import read_yaml

    try:
        with path.open("rb") as file:
            spoken_of = RENAMED_FROM in file.read(MAX_FILE)
        data = read_yaml(path).data if spoken_of else None
    except (OSError, TrendlakeError):
        return None
    name = data.get(RENAMED_FROM.decode()) if isinstance(data, Mapping) else None
    return name if isinstance(name, str) and TABLE_NAME.fullmatch(name) else None


def find_project(root: str | Path | None = None) -> Project:
    """The project at `root`, else of `TRENDLAKE_PROJECT`, else around the working directory. Raises ProjectError.

    `TRENDLAKE_STATE` names the state folder of the project that the environment is about, that of `TRENDLAKE_PROJECT`
    or of the working directory: another one that `root` names keeps its own, so no command writes into the warehouse
    of a project that it was not asked about.
    """
    surrounding = _surrounding()
    folder = Path(root).resolve() if root else surrounding
    if folder is None:
        raise ProjectError(f"no project at or above {Path.cwd()}", hint="give --project-dir or TRENDLAKE_PROJECT")
    if not (folder / "conf").is_dir():
        raise ProjectError(f"{folder} is no Trendlake project: it holds no folder conf/")
    state = os.environ.get("TRENDLAKE_STATE")
    if state and surrounding in (None, folder):
        return Project(folder, Path(state).resolve())
    return Project(folder, folder / ".trendlake")


def _surrounding() -> Path | None:
    """The project that the environment is about; None where there is none."""
    named = os.environ.get("TRENDLAKE_PROJECT")
    if named:
        return Path(named).resolve()
    folder = Path.cwd().resolve()
    return next(
        (up for up in (folder, *folder.parents) if (up / "conf").is_dir() and (up / "data_contracts").is_dir()), None
    )
