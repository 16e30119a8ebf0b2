"""Where a project's parts lie: patterns, contracts, profiles and the state folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cep_core.errors import did_you_mean
from pipelines.errors import ProjectError


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

    def pattern_files(self) -> list[Path]:
        """Every pattern file, in a stable order."""
        return sorted(self.patterns.glob("*.yaml"))

    def pattern_path(self, name: str) -> Path:
        """The file of the pattern `name`, which may be a path. Raises ProjectError."""
        if name.endswith((".yaml", ".yml")):
            return Path(name)
        path = self.patterns / f"{name}.yaml"
        if not path.is_file():
            known = [file.stem for file in self.pattern_files()]
            raise ProjectError(f"there is no pattern '{name}' in {self.patterns}", hint=did_you_mean(name, known))
        return path

    def contract_path(self, source: str) -> Path:
        """The contract of the source `source`. Raises ProjectError."""
        path = self.contracts / f"{source}.yaml"
        if not path.is_file():
            known = [file.stem for file in sorted(self.contracts.glob("*.yaml"))]
            raise ProjectError(
                f"the source '{source}' has no contract: {path} is not there",
                hint=did_you_mean(source, known),
            )
        return path


def find_project(root: str | Path | None = None) -> Project:
    """The project at `root`, else of `TRENDLAKE_PROJECT`, else around the working directory. Raises ProjectError."""
    named = root or os.environ.get("TRENDLAKE_PROJECT")
    if named:
        folder = Path(named).resolve()
        if not (folder / "conf").is_dir():
            raise ProjectError(f"{folder} is no Trendlake project: it holds no folder conf/")
    else:
        here = Path.cwd()
        found = next(
            (up for up in (here, *here.parents) if (up / "conf").is_dir() and (up / "data_contracts").is_dir()),
            None,
        )
        if found is None:
            raise ProjectError(f"no project at or above {here}", hint="give --project-dir or TRENDLAKE_PROJECT")
        folder = found
    state = os.environ.get("TRENDLAKE_STATE")
    return Project(folder, Path(state).resolve() if state else folder / ".trendlake")
