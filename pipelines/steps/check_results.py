"""Step 3: the staged rows before the results contract, and what the pattern expects of them. What fails here is not
published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cep_core.events.windows import moment
from pipelines.contracts.results import contract_name, results_contract
from pipelines.contracts.rules import Rule
from pipelines.error_text import plural
from pipelines.errors import ChecksFailedError
from pipelines.history_checks import checks
from pipelines.quality.great_expectations import FEW, judge, judge_here
from pipelines.results.reuse import narrowed
from pipelines.results.staging import read_staged
from pipelines.runs.record import recorded
from pipelines.runs.run import Run
from pipelines.runs.stage import Record
from pipelines.spark.columns import column
from pipelines.spark.session import uncompiled
from pipelines.steps.check_source import verdict


def check_results(run: Run) -> Record:
    """Judge the staged rows by `data_contracts/results_<kind>.yaml` filled in for the pattern, and, where they keep it,
    by what the pattern expects beside the windows before (`expect`).

    Raises ChecksFailedError naming the checks that fail; rules of severity warning, and expectations that warn, are
    recorded only.
    """
    record = run.record("check_results")
    with recorded(run.spark, run.warehouse, record):
        computed = run.need("compute")
        run, left_alone = narrowed(run, computed)
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
        record.checks.append(verdict("windows_of_the_run", outside == 0, f"{plural(outside, 'row')} outside", asked))
        record.checks += left_alone
        refuse_failed(run, record, record.checks, rules)
        expected = checks.of_run(run, staged, int(computed["source_version"]))
        record.checks += expected
        refuse_unexpected(run, record, expected)
    return record


def judged(
    staged: DataFrame, rules: Sequence[Rule], name: str, rows: int, inside: Column
) -> tuple[list[dict[str, Any]], int, int]:  # fmt: skip
    """The verdict on each rule, the number of staged rows (some `rows` are expected), and of those not `inside`."""
    if rows <= FEW:
        with uncompiled(staged.sparkSession):
            found, table = judge_here(staged, rules, name, [inside.alias("row_inside")])
        return found, table.num_rows, pc.sum(pc.invert(table["row_inside"])).as_py() or 0
    staged = staged.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        found = judge(staged, rules, name)
        counted, outside = staged.agg(sf.count(sf.lit(1)), sf.count_if(~inside)).collect()[0]
        return found, counted, outside
    finally:
        staged.unpersist()


def refuse_failed(run: Run, record: Record, found: Sequence[Mapping[str, Any]], rules: Sequence[Rule]) -> None:
    """Raises ChecksFailedError when a verdict on the staged rows is bad, and its rule more than a warning."""
    warnings = {rule.name for rule in rules if rule.warning}
    failed = [item["check"] for item in found if not item["success"] and item["check"] not in warnings]
    if failed:
        raise ChecksFailedError(
            f"staged results of {run.name} break the results contract: {', '.join(failed)}",
            hint=f"{_where(run, record)}; nothing was published",
        )


def refuse_unexpected(run: Run, record: Record, found: Sequence[Mapping[str, Any]]) -> None:
    """Raises ChecksFailedError when staged rows break an expectation that does not only warn."""
    warnings = checks.warned_only(run)
    failed = [item for item in found if item["success"] is False and item["check"] not in warnings]
    if failed:
        told = ", ".join(f"{item['check']} ({item['observed']})" for item in failed)
        raise ChecksFailedError(
            f"staged results of {run.name} are not as it expects: {told}",
            hint=f"{_where(run, record)}; nothing was published. Where they are right: on_break: warn",
        )


def _where(run: Run, record: Record) -> str:
    return f"the rows are in {run.warehouse.staging(run.name, run.run_id)}/{record.staged_version}"
