"""Step 1: pin the source's version, set apart the rows that break its contract, judge the rest of the run by it."""

from __future__ import annotations

from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pipelines import quarantine as q
from pipelines.contract import Contract
from pipelines.errors import SourceMissingError, ToleranceError
from pipelines.expectations import verdicts
from pipelines.runs import Record, recorded
from pipelines.steps.run import Run
from pipelines.upstream import how_to_make
from pipelines.warehouse import exists, latest_version, read_at, with_retries

REPEATED = "repeated_rows"
"""The verdict that says whether a row of the run's windows repeats a key of another row of the table."""


def check_source(run: Run) -> Record:
    """Rows of the pinned version in the time range of the run's windows are split; the bad ones go to quarantine.

    Every run of this step pins anew, so a run cleared and started again sees what has arrived since. The record holds
    the version, the rows in (good and bad together) and quarantined, and the verdict on each rule.
    Raises SourceMissingError, SourceSchemaError, ContractRuleError, ToleranceError.
    """
    record = run.record("check_source")
    with recorded(run.spark, run.warehouse, record):
        path = run.warehouse.source(run.contract.name)
        if not exists(run.spark, path):
            raise SourceMissingError(
                f"the source '{run.contract.name}' is not in the warehouse: {path}",
                hint=how_to_make(run.contract.name),
            )
        record.source_version = latest_version(run.spark, path)
        source = read_at(run.spark, path, record.source_version)
        q.check_columns(source, run.contract)
        inside = q.in_range(run.contract, *run.span)
        annotated = q.annotate(source.where(inside), run.contract.rules, rest=source.where(~inside))
        annotated = annotated.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            _split_and_judge(run, annotated, record)
        finally:
            annotated.unpersist()
        _within_tolerance(run, record)
    return record


def _split_and_judge(run: Run, annotated: DataFrame, record: Record) -> None:
    counted = annotated.agg(sf.count(sf.lit(1)), *broken_rows(run.contract)).collect()[0]
    record.rows_in, record.rows_quarantined = counted[0], counted[1]
    record.rows_out = counted[0] - counted[1]
    version = int(record.source_version or 0)
    if record.rows_quarantined:
        key = f"{run.span[0]} {run.span[1]} {run.contract.fingerprint}"
        with_retries(
            lambda: q.write_quarantine(
                q.bad_rows(annotated, run.run_id, version), run.warehouse.quarantine(run.contract.name),
                run_id=run.run_id, source_version=version, key=key,
            ),
            "writing the quarantine",
        )  # fmt: skip
    record.checks = [
        verdict("contract", True, f"{run.contract.name} {run.contract.version}", run.contract.fingerprint),
        verdict(REPEATED, counted[2] == 0, f"{counted[2]} rows", "0 rows"),
        *verdicts(annotated.drop(q.BROKEN), run.contract.rules, run.contract.name, record.rows_in),
    ]


def broken_rows(contract: Contract) -> tuple[Column, Column]:
    """Of annotated rows the number of bad ones, and of those that repeat a key."""
    keyed = [rule.name for rule in contract.rules if rule.kind == "unique" and rule.quarantines]
    again = sf.count_if(sf.exists(q.BROKEN, lambda broken: broken["rule"].isin(keyed))) if keyed else sf.lit(0)
    return sf.count_if(sf.size(q.BROKEN) > 0), again


def _within_tolerance(run: Run, record: Record) -> None:
    rows, bad, most = record.rows_in or 0, record.rows_quarantined or 0, run.contract.tolerance
    within = bad <= most * rows
    observed = f"{bad} of {rows} rows"
    record.checks.append(verdict("quarantine_tolerance", within, observed, f"at most {most:.2%} of the rows"))
    if not within:
        raise ToleranceError(
            f"{observed} of '{run.contract.name}' break its contract; it tolerates {most:.2%}",
            hint=f"see why in {run.warehouse.quarantine(run.contract.name)}, run_id {run.run_id}",
        )


def verdict(check: str, success: bool, observed: str, expected: str) -> dict[str, Any]:
    """A verdict that is not a rule's, in the shape of `runs.checks`."""
    return {"check": check, "column": None, "success": success, "observed": observed, "expected": expected}
