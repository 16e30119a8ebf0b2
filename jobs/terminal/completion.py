"""Shell completion of pattern and source names, from the names of their files."""

from __future__ import annotations


def patterns(incomplete: str) -> list[str]:
    """Names of patterns that begin with `incomplete`; none outside a project."""
    return [name for name in _stems("conf/patterns") if name.startswith(incomplete)]


def sources(incomplete: str) -> list[str]:
    """Names of sources that begin with `incomplete`; none outside a project."""
    names = _stems("data_contracts")
    return [name for name in names if name.startswith(incomplete) and not name.startswith("results_")]


def _stems(folder: str) -> list[str]:
    from cep_core.errors import TrendlakeError
    from pipelines.project.paths import find_project

    try:
        return sorted(path.stem for path in (find_project().root / folder).glob("*.yaml"))
    except TrendlakeError:
        return []
