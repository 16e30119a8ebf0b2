"""Checks staged rows against the results contract."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pipelines.check import Check
from pipelines.contracts.rules import Rule
from pipelines.errors import ChecksFailedError
from pipelines.quality.great_expectations import FEW, judge, judge_here
from pipelines.results.staging import staged_folder
from pipelines.runs.run import Run
from pipelines.spark.session import uncompiled


def judged(
    staged: DataFrame, rules: Sequence[Rule], name: str, rows: int, inside: Column
) -> tuple[list[Check], int, int]:  # fmt: skip
    """The check of each rule, the number of staged rows (some `rows` are expected), and of those not `inside`."""
    if rows <= FEW:
        with uncompiled(staged.sparkSession):
            checks, table = judge_here(staged, rules, name, [inside.alias("row_inside")])
        return checks, table.num_rows, pc.sum(pc.invert(table["row_inside"])).as_py() or 0
    staged = staged.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        checks = judge(staged, rules, name)
        counted, outside = staged.agg(sf.count(sf.lit(1)), sf.count_if(~inside)).collect()[0]
        return checks, counted, outside
    finally:
        staged.unpersist()


def refuse_failed(run: Run, staged_version: int, checks: Sequence[Check], rules: Sequence[Rule]) -> None:
    """Raises ChecksFailedError if a check of the staged rows fails, unless it is of a rule of severity warning."""
    warnings = {rule.name for rule in rules if rule.warning}
    failed = [check.name for check in checks if not check.success and check.name not in warnings]
    if failed:
        raise ChecksFailedError(
            f"staged results of {run.name} break the results contract: {', '.join(failed)}",
            hint=f"the rows are in {staged_folder(run, staged_version)}; nothing was published",
        )
