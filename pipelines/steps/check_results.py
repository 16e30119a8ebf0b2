"""Step 3: the staged rows are checked by the results contract and by the pattern's expectations. Rows that fail are not
published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from trendlake.cep_core.events.windows import clock_text
from trendlake.pipelines.check import Check
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.results import contract_name, results_contract
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.history_checks import checks as history_checks
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.road import HERE, NotHere, tried
from trendlake.pipelines.results.reuse import narrowed
from trendlake.pipelines.results.staged_checks import (
    StagedRows,
    judged,
    judged_by_file,
    judged_here,
    refuse_failed,
    staged_rows,
)
from trendlake.pipelines.results.staging import read_staged, refuse_lost, staged_columns, staged_files
from trendlake.pipelines.runs.record import Attempt, recorded_together
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record

Judged: TypeAlias = tuple[list[Check], int, int]
"""The check of each rule, how many rows are staged, and how many of these are outside of the run's windows."""


def check_results(run: Run) -> Record:
    """Judge the staged rows by `data_contracts/results_<kind>.yaml` filled in for the pattern, and, where they keep it,
    by the pattern's expectations, compared with the windows before (`expect`).

    Raises ChecksFailedError naming the checks that fail; rules of severity warning, and expectations that warn, are
    recorded only.
    """
    (attempt,) = check_results_together([run])
    if attempt.error is not None:
        raise attempt.error
    return attempt.record


def check_results_together(runs: Sequence[Run]) -> list[Attempt]:
    """As `check_results` of several runs. An error of one stops no other. Raises whatever ends Spark."""
    lake = runs[0].lake
    with recorded_together(lake, [run.record("check_results") for run in runs]) as attempts:
        tasks, left = dict[int, _Task](), limits.CHECKED
        for number, (run, attempt) in enumerate(zip(runs, attempts, strict=True)):
            with attempt.going_on() as record:
                tasks[number] = _task(run, record, left)
                left -= 0 if tasks[number].local is None else record.rows_out or 0
        checks = _judged_here(tasks, attempts)
        for number, task in tasks.items():
            if attempts[number].error is not None:
                continue
            with attempts[number].going_on() as record:
                _check(task, record, checks.get(number))
            attempts[number].raise_if_ended(lake)
    return attempts


def _in_files(task: _Task, number: int) -> Judged | NotHere:
    """Of rows that are too many to hold; those that are held and could not be compared, cannot be by file either."""
    if task.local is not None:
        return NotHere("rows that this process cannot compare")
    files, rules = staged_files(task.run, number), task.contract.rules
    if isinstance(files, NotHere):
        return files
    return judged_by_file(files, staged_columns(task.run.plan), rules, f"results_{task.run.name}", task.run.owned)


def _by_spark(task: _Task, number: int) -> Judged:
    run, rules = task.run, task.contract.rules
    return judged(read_staged(run, number), rules, f"results_{run.name}", task.computed.rows_out or 0, run.owned)


@dataclass(frozen=True)
class _Task:
    """A run, of the windows that have been computed; the record of that; the contract of its results; the staged rows,
    if this process may hold them all; and checks of what was left alone."""

    run: Run
    computed: Record
    contract: Contract
    local: StagedRows | None
    reused: Sequence[Check]


def _judged_here(tasks: Mapping[int, _Task], attempts: Sequence[Attempt]) -> dict[int, list[Check]]:
    """As `judged_here`; where that fails, each is judged by itself, and who fails, fails alone. If none does, the
    mistake is in judging them together, and is raised."""
    local = {number: task.local for number, task in tasks.items() if task.local is not None}
    try:
        return judged_here(local)
    except Exception:
        checks: dict[int, list[Check]] = {}
        for number, rows in local.items():
            with attempts[number].going_on():
                checks |= judged_here({number: rows})
        if all(attempts[number].error is None for number in local):
            raise
        return checks


def _task(run: Run, record: Record, most: int) -> _Task:
    """`most`: the rows that this process may hold of it."""
    computed = run.need("compute")
    run, reused = narrowed(run, computed)
    record.source_version, record.basis = computed.source_version, computed.basis
    record.sources = computed.sources
    record.staged_version = computed.staged_version
    contract = results_contract(run.project.contract_path(contract_name(run.plan)), run.plan, run.name)
    record.rows_out = computed.rows_out or 0
    held = partial(staged_rows, run, int(record.staged_version or 0), record.rows_out, contract, most)
    local = NotHere(run.roads.always_spark) if run.roads.always_spark else tried(held)
    return _Task(run, computed, contract, None if isinstance(local, NotHere) else local, reused)


def _check(task: _Task, record: Record, checks: list[Check] | None) -> None:
    """`checks`: of the rows that this process holds."""
    run, number, rules = task.run, int(record.staged_version or 0), task.contract.rules
    owner, low, high = run.owned
    if checks is not None and task.local is not None:
        record.checks, rows, outside, road = checks, task.local.rows.num_rows, task.local.outside, HERE
    else:
        (record.checks, rows, outside), road = run.roads.take(
            "check-results", partial(_in_files, task, number), partial(_by_spark, task, number)
        )
    record.took(road)
    refuse_lost(run, number, task.computed.rows_out, rows)
    record.rows_in = record.rows_out = rows
    asked = f"{owner} from {clock_text(low, ' ')}, before {clock_text(high, ' ')}"
    data = {"rows_outside": outside, "column": owner, "from": low, "before": high}
    observed = f"{plural(outside, 'row')} outside"
    record.checks.append(Check("windows_of_the_run", outside == 0, observed, asked, data=data))
    if run.outside:
        observed = f"{plural(run.outside, 'window')} of the interval not computed"
        between = "windows between the years 1 and 9999"
        record.checks.append(Check("windows_outside", True, observed, between, data={"windows_outside": run.outside}))
    record.checks += task.reused
    refuse_failed(run, number, record.checks, rules)
    if run.pattern.expect:
        expectations = history_checks.of_run(run, read_staged(run, number), (task.computed.basis or run.basis()).read)
        record.checks += expectations
        history_checks.refuse_unexpected(run, number, expectations)
