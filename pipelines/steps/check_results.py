"""Step 3: the staged rows before the results contract, and what the pattern expects of them. What fails here is not
published."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cep_core.events.windows import moment
from pipelines.check import Check
from pipelines.contracts.results import contract_name, results_contract
from pipelines.contracts.rules import Rule
from pipelines.error_text import plural
from pipelines.errors import ChecksFailedError
from pipelines.history_checks import checks as history_checks
from pipelines.quality.great_expectations import FEW, judge, judge_here
from pipelines.results.reuse import narrowed
from pipelines.results.staging import read_staged
from pipelines.runs.record import recorded
from pipelines.runs.run import Run
from pipelines.runs.stage import Record
from pipelines.spark.columns import column
from pipelines.spark.session import uncompiled


def check_results(run: Run) -> Record:
    """Judge the staged rows by `data_contracts/results_<kind>.yaml` filled in for the pattern, and, where they keep it,
    by what the pattern expects beside the windows before (`expect`).

    Raises ChecksFailedError naming the checks that fail; rules of severity warning, and expectations that warn, are
    recorded only.
    """
    record = run.record("check_results")
    with recorded(run.spark, run.warehouse, record):
        computed = run.need("compute")
        run, reuse_checks = narrowed(run, computed)
        record.source_version, record.basis = computed["source_version"], computed["basis"]
        record.staged_version = computed["staged_version"]
        contract = results_contract(run.project.contract_path(contract_name(run.plan)), run.plan, run.name)
        staged = read_staged(run, int(computed["staged_version"]))
        owner, low, high = run.owned
        inside = column(owner).between(moment(low), moment(high - 1))
        rules = contract.rules
        record.checks, rows, outside = judged(staged, rules, f"results_{run.name}", computed["rows_out"] or 0, inside)
        record.rows_in = record.rows_out = rows
        asked = f"{owner} from {moment(low):%Y-%m-%d %H:%M:%S}, before {moment(high):%Y-%m-%d %H:%M:%S}"
        data = {"rows_outside": outside, "column": owner, "from": low, "before": high}
        observed = f"{plural(outside, 'row')} outside"
        record.checks.append(Check("windows_of_the_run", outside == 0, observed, asked, data=data))
        record.checks += reuse_checks
        refuse_failed(run, record, record.checks, rules)
        expectations = history_checks.of_run(run, staged, int(computed["source_version"]))
        record.checks += expectations
        refuse_unexpected(run, record, expectations)
    return record


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


def refuse_failed(run: Run, record: Record, checks: Sequence[Check], rules: Sequence[Rule]) -> None:
    """Raises ChecksFailedError if a check of the staged rows fails, unless it is of a rule of severity warning."""
    warnings = {rule.name for rule in rules if rule.warning}
    failed = [check.name for check in checks if not check.success and check.name not in warnings]
    if failed:
        raise ChecksFailedError(
            f"staged results of {run.name} break the results contract: {', '.join(failed)}",
            hint=f"{_where(run, record)}; nothing was published",
        )


def refuse_unexpected(run: Run, record: Record, checks: Sequence[Check]) -> None:
    """Raises ChecksFailedError if staged rows break an expectation, unless it only warns."""
    warnings = history_checks.warned_only(run)
    failed = [check for check in checks if check.failed and check.name not in warnings]
    if failed:
        reasons = ", ".join(f"{check.name} ({check.observed})" for check in failed)
        raise ChecksFailedError(
            f"staged results of {run.name} are not as it expects: {reasons}",
            hint=f"{_where(run, record)}; nothing was published. Where they are right: on_break: warn",
        )


def _where(run: Run, record: Record) -> str:
    return f"the rows are in {run.warehouse.staging(run.name, run.run_id)}/{record.staged_version}"
