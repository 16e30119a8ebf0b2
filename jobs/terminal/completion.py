"""What a shell offers after TAB: names of the project's patterns and sources, by their files alone."""

from __future__ import annotations


def patterns(incomplete: str) -> list[str]:
    """Names under conf/patterns that begin so; none where there is no project."""
    return [name for name in _stems("conf/patterns") if name.startswith(incomplete)]


def sources(incomplete: str) -> list[str]:
    """Names of sources that begin so."""
    names = _stems("data_contracts")
    return [name for name in names if name.startswith(incomplete) and not name.startswith("results_")]


def _stems(folder: str) -> list[str]:
    from cep_core.errors import TrendlakeError
    from pipelines.project.paths import find_project

    try:
        return sorted(path.stem for path in (find_project().root / folder).glob("*.yaml"))
    except TrendlakeError:
        return []
