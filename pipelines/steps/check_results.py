"""Step 3: the staged rows before the results contract, and what the pattern expects of them. What fails here is not
published."""

from __future__ import annotations

from collections.abc import Sequence

from cep_core.events.windows import moment
from pipelines.check import Check
from pipelines.contracts.results import contract_name, results_contract
from pipelines.error_text import plural
from pipelines.history_checks import checks as history_checks
from pipelines.results.reuse import narrowed
from pipelines.results.staged_checks import judged, refuse_failed
from pipelines.results.staging import read_staged
from pipelines.runs.record import Attempt, recorded_together
from pipelines.runs.run import Run
from pipelines.runs.stage import Record
from pipelines.spark.columns import column


def check_results(run: Run) -> Record:
    """Judge the staged rows by `data_contracts/results_<kind>.yaml` filled in for the pattern, and, where they keep it,
    by what the pattern expects beside the windows before (`expect`).

    Raises ChecksFailedError naming the checks that fail; rules of severity warning, and expectations that warn, are
    recorded only.
    """
    (attempt,) = check_results_together([run])
    if attempt.error is not None:
        raise attempt.error
    return attempt.record


def check_results_together(runs: Sequence[Run]) -> list[Attempt]:
    """As `check_results` of several runs. An error of one stops no other. Raises whatever ends Spark."""
    spark, warehouse = runs[0].spark, runs[0].warehouse
    with recorded_together(spark, warehouse, [run.record("check_results") for run in runs]) as attempts:
        for run, attempt in zip(runs, attempts, strict=True):
            with attempt.going_on() as record:
                _check(run, record)
            attempt.raise_if_ended(spark)
    return attempts


def _check(run: Run, record: Record) -> None:
    computed = run.need("compute")
    run, reuse_checks = narrowed(run, computed)
    record.source_version, record.basis = computed["source_version"], computed["basis"]
    record.staged_version = int(computed["staged_version"])
    contract = results_contract(run.project.contract_path(contract_name(run.plan)), run.plan, run.name)
    staged = read_staged(run, record.staged_version)
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
    refuse_failed(run, record.staged_version, record.checks, rules)
    expectations = history_checks.of_run(run, staged, int(computed["source_version"]))
    record.checks += expectations
    history_checks.refuse_unexpected(run, record.staged_version, expectations)
