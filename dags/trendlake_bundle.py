"""A DAG bundle that presents a folder of pattern files to Airflow: a Python file for each pattern.

Airflow records one import error for a DAG *file*, and a file that raises gives no DAG at all. An error of one
pattern must not affect the others: this bundle writes a small Python file for each YAML file, which calls
`trendlake_dags.pattern_dags`. Airflow's DAG processor refreshes the bundle, so a pattern added, changed or removed is
seen without a restart; a task parses only its own pattern's file. A batch of patterns is a Python file too; the files
of its patterns give no DAG, only their own errors.
(Airflow 3.4 brings importers for other formats than Python; in 3.3 the DAG processor looks for Python only.)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path

from airflow.dag_processing.bundles.base import BaseDagBundle

from trendlake.cep_core import Pattern, PatternErrors
from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.load import read_pattern
from trendlake.cep_core.yaml.limits import MAX_FILE
from trendlake.pipelines.contracts.pattern_source import source_contract
from trendlake.pipelines.project.dag_names import DagNames
from trendlake.pipelines.project.paths import files_of, find_project, odd_entries
from trendlake.pipelines.project.profile import Profile, profile_or_default, profile_path

LOADER = '''\
"""The Airflow DAGs of one pattern. Written by Trendlake from its file, whose text follows."""
{text}
from trendlake_dags import pattern_dags

globals().update(pattern_dags({path!r}{more}))
'''
"""A file's name and text are data: they stand here as a literal of Python and as comments. The docstring is the first
line, for Python would obey a comment about the encoding there."""
MEMBER = ", in_batch=True"
REFUSED = """\
from trendlake_bundle import refuse

refuse({folder!r}, {path!r})
"""
BATCH = '''\
"""The Airflow DAGs of a batch of patterns. Written by Trendlake; their texts have the digest {digest}."""
from trendlake_batches import batch_dags

globals().update(batch_dags({batch!r}, {paths!r}))
'''
REVISIONS = '''\
"""The Airflow DAG that revises the results over a source. Written by Trendlake; digest of the texts: {digest}."""
from trendlake_revisions import revision_dags

globals().update(revision_dags({source!r}, {paths!r}))
'''
SOURCES = "sources-of-the-project.py"
"""No pattern has such a name, as none has `-`."""
INGESTION = '''\
"""The Airflow DAGs that ingest files into the sources that the project's patterns read. Written by Trendlake."""
from trendlake_dags import ingest_dags

globals().update(ingest_dags({read!r}))
'''
ODD_ENTRIES = "odd-entries.py"
ODD = '''\
"""No Airflow DAG: raises the errors of files that look like patterns and are none. Written by Trendlake."""
from trendlake_bundle import refuse_odd_entries

refuse_odd_entries({folder!r})
'''
STAMP = "seen.txt"
"""Which files the present ones were written from. A task does not have to read the patterns of all others to find its
own."""


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
        """Airflow calls this in a task too, which parses one file only."""
        self._write(_seen(self.patterns))
        super().initialize()

    def refresh(self) -> None:
        """The DAG processor calls this again and again, and copies itself for each file that it parses. Modules that
        every copy needs are therefore loaded by now."""
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
        if stamp.is_file() and stamp.read_bytes() == os.fsencode(seen):
            return
        wanted = loaders(self.patterns)
        for name, code in wanted.items():
            file = self.path / name
            if not file.is_file() or file.read_bytes() != code.encode():
                self._replace(file, code.encode())
        for file in self.path.glob("*.py"):
            if file.name not in wanted:
                file.unlink(missing_ok=True)
        self._replace(stamp, os.fsencode(seen))

    def _replace(self, file: Path, content: bytes) -> None:
        """Others see the former file or the whole new one."""
        fresh = self.path / f".{os.getpid()}.new"
        fresh.write_bytes(content)
        fresh.replace(file)

    def get_current_version(self) -> None:
        return None


def prepare(folder: Path) -> None:
    """Imports what the Python files import, and reads the grammar of patterns and the contracts of their sources."""
    for module in ("trendlake_dags", "trendlake_batches", "trendlake_revisions"):
        import_module(module)
    with suppress(TrendlakeError):  # of the project: each pattern's own file reports it
        project = find_project()
        read = (_read(path, _text(path)) for path in _files(folder))
        sources = {table for pattern in read if pattern is not None for table in pattern.tables_read}
        for source in sources:
            with suppress(TrendlakeError):
                source_contract(project, source)


def loaders(folder: Path) -> dict[str, str]:
    """The Python files by name: of each pattern, of each batch, of the sources, of entries that are no patterns."""
    texts = {path: _text(path) for path in _files(folder)}
    patterns = {path.stem: pattern for path, text in texts.items() if (pattern := _read(path, text)) is not None}
    names = _names(patterns)
    more: dict[str, str] = {}
    files: dict[str, str] = {}
    for batch in names.batches.values():
        more |= dict.fromkeys(batch.members, MEMBER)
        digest, paths = _together(texts, set(batch.members) - names.mistakes.keys())
        if paths:
            files[f"batch-{batch.name}.py"] = BATCH.format(batch=batch.name, digest=digest, paths=paths)
    for source, revised in names.revised.items():
        digest, paths = _together(texts, set(revised))
        if paths:
            file = f"revise-{source.replace('/', '_')}.py"
            files[file] = REVISIONS.format(source=source, digest=digest, paths=paths)
    for path, text in texts.items():
        code = LOADER.format(path=str(path.absolute()), text=_commented(text), more=more.get(path.stem, ""))
        if path.stem in names.mistakes:
            code = REFUSED.format(folder=str(folder.absolute()), path=str(path.absolute())) + code
        files[f"{path.stem}.py"] = code
    files[SOURCES] = INGESTION.format(read=list(names.ingested))
    if odd_entries(folder, _root(folder)):
        files[ODD_ENTRIES] = ODD.format(folder=str(folder.absolute()))
    return files


def _together(texts: Mapping[Path, str], names: set[str]) -> tuple[str, list[str]]:
    """The digest of the patterns' texts, by which Airflow sees a change of one, and the paths of their files."""
    members = [path for path in texts if path.stem in names]
    digest = sha256("\0".join(texts[path] for path in members).encode()).hexdigest()[:16]
    return digest, [str(path.absolute()) for path in members]


def _seen(folder: Path) -> str:
    """Each file that the Python files depend on, with size and time; this module too, which writes them. Another
    program may remove a file meanwhile."""
    try:
        profiles = [profile_path(find_project())]
    except TrendlakeError:
        profiles = []
    odd = [f"odd {path}" for path, _ in odd_entries(folder, _root(folder))]
    return "\n".join([*map(_state, (*_files(folder), *profiles, Path(__file__))), *odd])


def _state(path: Path) -> str:
    try:
        stat = path.stat()
    except OSError:
        return f"{path} -"
    return f"{path} {stat.st_size} {stat.st_mtime_ns}"


def refuse(folder: str, path: str) -> None:
    """Raises the errors of a pattern whose source or schedule is not that of its batch, or whose DAG another file
    makes."""
    patterns = {item.stem: pattern for item in _files(Path(folder)) if (pattern := _read(item, _text(item)))}
    mistakes = _names(patterns).mistakes.get(Path(path).stem)
    if mistakes:
        raise PatternErrors(list(mistakes))


def refuse_odd_entries(folder: str) -> None:
    """Raises an error for each entry that looks like a pattern's file and is none."""
    errors = [error for _, error in odd_entries(Path(folder), _root(Path(folder)))]
    if errors:
        raise PatternErrors(errors)


def _files(folder: Path) -> list[Path]:
    return files_of(folder, _root(folder))


def _root(folder: Path) -> Path:
    """The project's folder, which links may lead into; the folder of patterns itself where there is no project."""
    try:
        return find_project().root
    except TrendlakeError:
        return folder


def _names(patterns: Mapping[str, Pattern]) -> DagNames:
    try:
        profile = profile_or_default(find_project())
    except TrendlakeError:  # there is no project, which each pattern's own file reports
        profile = Profile()
    return DagNames.of(patterns, profile.batches, profile.sources)


def _text(path: Path) -> str:
    """The text of a file; none of one that cannot be read, whose own error says why. No pattern is longer than this."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE).decode("utf-8", errors="replace")
    except OSError:
        return ""


@lru_cache(maxsize=10_000)
def _read(path: Path, text: str) -> Pattern | None:
    """The pattern of a file with that text; None if it cannot be read, or does not say its tables."""
    pattern = read_pattern(path)[0] if text else None
    return None if pattern is None or not pattern.tables or pattern.name != path.stem else pattern


def _commented(text: str) -> str:
    """A pattern's text in the Python file of its DAGs, so Airflow sees and shows a change. Python reads no file with a
    NUL, and the pattern's own error would not be seen."""
    return "\n".join(f"# {line}".rstrip() for line in text.replace("\0", "\ufffd").splitlines())
