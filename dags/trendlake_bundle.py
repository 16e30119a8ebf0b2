"""A DAG bundle that presents a folder of pattern files to Airflow: a Python file for each pattern.

Airflow records one import error for a DAG *file*, and a file that raises gives no DAG at all. An error of one
pattern must not affect the others: this bundle writes a small Python file for each YAML file, which calls
`trendlake_dags.pattern_dags`. Airflow's DAG processor refreshes the bundle, hence
a pattern added, changed or removed is seen without a restart; a task parses only its own pattern's file.
(Airflow 3.4 brings importers for other formats than Python; in 3.3 the DAG processor looks for Python only.)
"""

from __future__ import annotations

import os
from pathlib import Path

from airflow.dag_processing.bundles.base import BaseDagBundle

LOADER = '''\
"""The Airflow DAGs of one pattern. Written by Trendlake from {path}, whose text follows."""
{text}
from trendlake_dags import pattern_dags

globals().update(pattern_dags({path!r}))
'''
SOURCES = "sources_of_the_project.py"
INGESTION = '''\
"""The Airflow DAGs that ingest files into the project's sources. Written by Trendlake."""
from trendlake_dags import ingest_dags

globals().update(ingest_dags())
'''


class PatternsBundle(BaseDagBundle):
    """A DAG bundle of pattern files; `patterns` is their folder."""

    supports_versioning = False

    def __init__(self, *, patterns: str, **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self.patterns = Path(patterns)

    @property
    def path(self) -> Path:
        return self.base_dir / "dags"

    def initialize(self) -> None:
        self.refresh()
        super().initialize()

    def refresh(self) -> None:
        """Writes changed files and removes deleted ones. Another process may do the same at the same time."""
        self.path.mkdir(parents=True, exist_ok=True)
        wanted = {f"{path.stem}.py": loader(path) for path in sorted(self.patterns.glob("*.yaml"))}
        wanted[SOURCES] = INGESTION
        for name, code in wanted.items():
            file = self.path / name
            if not file.is_file() or file.read_text() != code:
                fresh = self.path / f".{name}.{os.getpid()}"
                fresh.write_text(code)
                fresh.replace(file)
        for file in self.path.glob("*.py"):
            if file.name not in wanted:
                file.unlink(missing_ok=True)

    def get_current_version(self) -> None:
        return None


def loader(path: Path) -> str:
    """The Python file of one pattern; it holds the pattern's text, so Airflow sees and shows a change. A link out of
    the folder is not followed, because its target may not be meant for Airflow's pages."""
    inside = path.resolve().is_relative_to(path.parent.resolve())
    lines = path.read_text(errors="replace").splitlines() if inside else []
    text = "\n".join(f"# {line}".rstrip() for line in lines)
    return LOADER.format(path=str(path.absolute()), text=text)
