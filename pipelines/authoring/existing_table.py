"""A Delta table that other programs write, taken on as a source: its contract to begin with."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql.pandas.types import to_arrow_schema

from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.authoring.scaffold import Roles, new_source, usable_columns
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.errors import ProjectError, SourceMissingError
from trendlake.pipelines.lake.lake import Lake, exists
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.quality.quarantine import check_columns


def adopt(lake: Lake, project: Project, name: str, place: str, roles: Roles) -> tuple[Path, list[str]]:
    """A contract for the source `name`, with the columns of the table at `place`; its file, and the names of the
    columns left out, of types that contracts do not know. Nothing is written where the table cannot be a source.

    Raises ProjectError, SourceMissingError, SourceSchemaError (an id that is neither text nor a whole number, a time
    that is no timestamp), ContractErrors.
    """
    if roles.made_id:
        of = "the time" if len(roles.id_columns) == 1 else ", ".join(roles.id_columns)
        raise ProjectError(
            f"--event-id takes one column of a table that other programs write, not {of}",
            hint="the table is read in place: let the program that writes it add a column with the id",
        )
    if not exists(lake, place):
        raise SourceMissingError(f"there is no Delta table at {place}", hint="events in files: --from FILE")
    table = lake.spark.read.format("delta").load(place)
    columns, left_out = usable_columns(to_arrow_schema(table.schema, timezone="UTC"))
    path = new_source(project, name, columns, roles)
    try:
        check_columns(table.schema, load_contract(path))
    except TrendlakeError:
        path.unlink()
        raise
    return path, left_out
