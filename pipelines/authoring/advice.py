"""Notes on expressions of a pattern or contract that are rarely meant, as `validate`, `explain` and `try` show them.

The source's table shows whether texts look like numbers, if it is on this machine's disk: delta-rs and Arrow read the
first rows of its newest file, without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.events.number_texts import MOST, NumberTexts, number_texts
from trendlake.cep_core.expressions.advice import Advice, in_words
from trendlake.pipelines.errors import ProfileError
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import load_profile


def certain(advice: Iterable[Advice]) -> list[str]:
    """The advice that no values make needless, as it is shown."""
    return [str(one) for one in advice if not one.columns]


def notes_on(project: Project, source: str, advice: Iterable[Advice]) -> list[str]:
    """Advice on a pattern or contract of a source, as it is shown. Where the table cannot be read, advice on the order
    of texts reports that."""
    advice = list(advice)
    if not any(one.columns for one in advice):
        return certain(advice)
    first = _first_rows(project, source)
    if first is not None:
        return list(in_words(advice, cache(first), f" in the table of {source}"))
    unseen = f"; no table of {source} shows whether its texts look like numbers"
    return [str(replace(one, message=f"{one.message}{unseen}") if one.columns else one) for one in advice]


def newest_file(project: Project, source: str) -> pq.ParquetFile | None:
    """The newest file of a source's table; None where this process cannot read the table."""
    try:
        from deltalake import DeltaTable

        from trendlake.pipelines.lake.warehouse import Warehouse
    except ImportError:  # installed without Spark
        return None
    from deltalake.exceptions import DeltaError

    try:
        folder = Path(Warehouse.of(load_profile(project), project).source(source).removeprefix("file://"))
        if not (folder / "_delta_log").is_dir():
            return None
        files = sorted(map(Path, DeltaTable(folder).file_uris()), key=lambda path: path.stat().st_mtime)
        return pq.ParquetFile(files[-1])
    except (ProfileError, TrendlakeError, DeltaError, pa.ArrowException, OSError, ValueError, IndexError):
        return None


def _first_rows(project: Project, source: str) -> Callable[[str], NumberTexts | None] | None:
    """A function that says what the texts of a column of the table look like; None where this process cannot read the
    table."""
    file = newest_file(project, source)
    if file is None:
        return None

    def texts(name: str) -> NumberTexts | None:
        if name not in file.schema_arrow.names:
            return None
        rows = next(file.iter_batches(MOST, columns=[name]), None)
        return None if rows is None else number_texts(rows.column(0))

    return texts
