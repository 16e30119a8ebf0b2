"""Shell completion of pattern and source names, from the names of their files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trendlake.pipelines.project.paths import Project


def patterns(incomplete: str) -> list[str]:
    """Names of patterns that begin with `incomplete`; none outside a project."""
    return _names(lambda project: project.pattern_files(), incomplete)


def sources(incomplete: str) -> list[str]:
    """Names of sources that begin with `incomplete`; none outside a project."""
    return _names(lambda project: project.source_contracts(), incomplete)


def _names(files: Callable[[Project], list[Path]], incomplete: str) -> list[str]:
    from trendlake.cep_core.errors import TrendlakeError
    from trendlake.pipelines.project.paths import find_project

    try:
        return [path.stem for path in files(find_project()) if path.stem.startswith(incomplete)]
    except TrendlakeError:
        return []
