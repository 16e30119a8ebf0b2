"""Step 3: the staged rows before the results contract. What fails here is not published."""

from __future__ import annotations

from pyspark import StorageLevel
from pyspark.sql import functions as sf

from pipelines.errors import ChecksFailedError
from pipelines.expectations import judge
from pipelines.quarantine import column
from pipelines.results_contract import contract_name, results_contract
from pipelines.runs import Record, moment, recorded
from pipelines.steps.check_source import verdict
from pipelines.steps.run import Run
from pipelines.stretches import narrowed
from pipelines.warehouse import read_at


def check_results(run: Run) -> Record:
    """Judge the staged version by `data_contracts/results_<kind>.yaml` filled in for the pattern.

    Raises ChecksFailedError naming the checks that fail; rules of severity warning are recorded only.
    """
    record = run.record("check_results")
    with recorded(run.spark, run.warehouse, record):
        computed = run.need("compute")
        run, left_alone = narrowed(run, computed)
        record.source_version = computed["source_version"]
        record.staged_version = computed["staged_version"]
        path = run.warehouse.staging(run.name, run.run_id)
        contract = results_contract(run.project.contract_path(contract_name(run.plan)), run.plan, run.name)
        staged = read_at(run.spark, path, int(computed["staged_version"])).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            record.checks = judge(staged, contract.rules, f"results_{run.name}")
            owner, low, high = run.owned
            stray = sf.count_if(~column(owner).between(moment(low), moment(high - 1)))
            rows, outside = staged.agg(sf.count(sf.lit(1)), stray).collect()[0]
        finally:
            staged.unpersist()
        record.rows_in = record.rows_out = rows
        asked = f"{owner} from {moment(low):%Y-%m-%d %H:%M:%S}, before {moment(high):%Y-%m-%d %H:%M:%S}"
        record.checks.append(verdict("windows_of_the_run", outside == 0, f"{outside} rows outside", asked))
        record.checks += left_alone
        warnings = {rule.name for rule in contract.rules if rule.warning}
        failed = [item["check"] for item in record.checks if not item["success"] and item["check"] not in warnings]
        if failed:
            raise ChecksFailedError(
                f"staged results of {run.name} break the results contract: {', '.join(failed)}",
                hint=f"the rows are in {path}, version {record.staged_version}; nothing was published",
            )
    return record
