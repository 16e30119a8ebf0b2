"""A DAG bundle that presents a folder of pattern files to Airflow: a Python file for each pattern.

Airflow records one import error for a DAG *file*, and a file that raises gives no DAG at all. An error of one
pattern must not affect the others: this bundle writes a small Python file for each YAML file, which calls
`trendlake_dags.pattern_dags`. Airflow's DAG processor refreshes the bundle, hence
a pattern added, changed or removed is seen without a restart; a task parses only its own pattern's file. A batch of
patterns is a Python file too; the files of its patterns give no DAG, only their own errors.
(Airflow 3.4 brings importers for other formats than Python; in 3.3 the DAG processor looks for Python only.)
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path

from airflow.dag_processing.bundles.base import BaseDagBundle

from cep_core import Pattern, PatternErrors
from cep_core.errors import TrendlakeError
from cep_core.load import read_pattern
from pipelines.contracts.pattern_source import source_contract
from pipelines.project.batches import Batch, batches_of
from pipelines.project.paths import find_project, upstream
from pipelines.project.profile import load_profile, profile_path

LOADER = '''\
"""The Airflow DAGs of one pattern. Written by Trendlake from {path}, whose text follows."""
{text}
from trendlake_dags import pattern_dags

globals().update(pattern_dags({path!r}{more}))
'''
MEMBER = ", in_batch=True"
MISTAKEN = """\
from trendlake_bundle import refuse_member

refuse_member({patterns!r}, {batch!r}, {path!r})
"""
BATCH = '''\
"""The Airflow DAGs of a batch of patterns. Written by Trendlake; their texts have the digest {digest}."""
from trendlake_batches import batch_dags

globals().update(batch_dags({batch!r}, {paths!r}))
'''
SOURCES = "sources_of_the_project.py"
INGESTION = '''\
"""The Airflow DAGs that ingest files into the sources that the project's patterns read. Written by Trendlake."""
from trendlake_dags import ingest_dags

globals().update(ingest_dags({read!r}))
'''
STAMP = "seen.txt"
"""Which files the present ones were written from. A task need not read the patterns of all others to find its own."""


class PatternsBundle(BaseDagBundle):
    """A DAG bundle of pattern files; `patterns` is their folder."""

    supports_versioning = False

    def __init__(self, *, patterns: str, **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self.patterns = Path(patterns)
        self._prepared = ""

    @property
    def path(self) -> Path:
        return self.base_dir / "dags"

    def initialize(self) -> None:
        """What a task asks for, too, which parses one file only."""
        self._write(_seen(self.patterns))
        super().initialize()

    def refresh(self) -> None:
        """As the DAG processor does again and again, which copies itself for each file that it parses. What every copy
        needs is therefore loaded by now."""
        seen = _seen(self.patterns)
        self._write(seen)
        if self._prepared != seen:
            with suppress(Exception):  # each DAG file then fails for the same reason, and Airflow's pages show it
                prepare(self.patterns)
            self._prepared = seen

    def _write(self, seen: str) -> None:
        """Writes changed files and removes deleted ones. Another process may do the same at the same time."""
        self.path.mkdir(parents=True, exist_ok=True)
        stamp = self.path / STAMP
        if stamp.is_file() and stamp.read_text() == seen:
            return
        wanted = loaders(self.patterns)
        for name, code in wanted.items():
            file = self.path / name
            if not file.is_file() or file.read_text() != code:
                fresh = self.path / f".{name}.{os.getpid()}"
                fresh.write_text(code)
                fresh.replace(file)
        for file in self.path.glob("*.py"):
            if file.name not in wanted:
                file.unlink(missing_ok=True)
        fresh = self.path / f".{STAMP}.{os.getpid()}"
        fresh.write_text(seen)
        fresh.replace(stamp)

    def get_current_version(self) -> None:
        return None


def prepare(folder: Path) -> None:
    """Imports what the Python files import, and reads the grammar of patterns and the contracts of their sources."""
    for module in ("trendlake_dags", "trendlake_batches"):
        import_module(module)
    with suppress(TrendlakeError):  # of the project: each pattern's own file tells of it
        project = find_project()
        sources = {str(pattern.source) for path in folder.glob("*.yaml") if (pattern := _read(path, _text(path)))}
        for source in sources:
            with suppress(TrendlakeError):
                source_contract(project, source)


def loaders(folder: Path) -> dict[str, str]:
    """The Python files by name: of each pattern, of each batch, of the sources."""
    texts = {path: _text(path) for path in sorted(folder.glob("*.yaml"))}
    patterns = {path: pattern for path, text in texts.items() if (pattern := _read(path, text)) is not None}
    batches = _batches(patterns.values())
    more: dict[str, str] = {}
    wrong: dict[str, str] = {}
    files: dict[str, str] = {}
    for batch in batches.values():
        members = [folder / f"{name}.yaml" for name in batch.members]
        more |= dict.fromkeys(batch.members, MEMBER)
        wrong |= dict.fromkeys(batch.others, batch.name)
        digest = sha256("\0".join(texts[path] for path in members).encode()).hexdigest()[:16]
        paths = [str(path.absolute()) for path in members]
        files[f"batch-{batch.name}.py"] = BATCH.format(batch=batch.name, digest=digest, paths=paths)
    for path, text in texts.items():
        code = LOADER.format(path=str(path.absolute()), text=_commented(text), more=more.get(path.stem, ""))
        if path.stem in wrong:
            code = MISTAKEN.format(patterns=str(folder), batch=wrong[path.stem], path=str(path)) + code
        files[f"{path.stem}.py"] = code
    read = sorted({str(pattern.source) for pattern in patterns.values() if not upstream(str(pattern.source))})
    files[SOURCES] = INGESTION.format(read=read)
    return files


def _seen(folder: Path) -> str:
    """Each file that the Python files depend on, with size and time; this module too, which writes them."""
    try:
        profiles = [profile_path(find_project())]
    except TrendlakeError:
        profiles = []
    about = ((path, path.stat()) for path in (*sorted(folder.glob("*.yaml")), *profiles, Path(__file__)))
    return "\n".join(f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in about)


def refuse_member(folder: str, batch: str, path: str) -> None:
    """Raises the errors of a pattern whose source or schedule is not that of its batch."""
    patterns = [_read(item, _text(item)) for item in sorted(Path(folder).glob("*.yaml"))]
    mistakes = _batches(item for item in patterns if item is not None)[batch].others.get(Path(path).stem)
    if mistakes:
        raise PatternErrors(list(mistakes))


def _batches(patterns: Iterable[Pattern]) -> dict[str, Batch]:
    try:
        rule = load_profile(find_project()).batches
    except TrendlakeError:  # which each pattern's own file tells of
        rule = None
    return batches_of({pattern.name: pattern for pattern in patterns}, rule)


def _text(path: Path) -> str:
    """Of a link out of the folder nothing: its target may not be meant for Airflow's pages."""
    inside = path.resolve().is_relative_to(path.parent.resolve())
    return path.read_text(errors="replace") if inside else ""


@lru_cache(maxsize=10_000)
def _read(path: Path, text: str) -> Pattern | None:
    """The pattern of a file with that text; None if it cannot be read, or does not say its source."""
    pattern = read_pattern(path)[0] if text else None
    return None if pattern is None or pattern.source is None or pattern.name != path.stem else pattern


def _commented(text: str) -> str:
    """A pattern's text in the Python file of its DAGs, so Airflow sees and shows a change."""
    return "\n".join(f"# {line}".rstrip() for line in text.splitlines())
