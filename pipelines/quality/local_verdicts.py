"""The verdicts of a contract's rules on a table in this process: those that Great Expectations gives, without it.

A small revision judges a few rows; to import Great Expectations for them takes longer than all else that it does. The
rows are counted by the same evaluator that decides the quarantine. test_great_expectations.py holds the verdicts
equal to those of Great Expectations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from cep_core.events.array_types import Bools
from cep_core.events.arrays import valid
from pipelines.check import Check
from pipelines.contracts.contract import Contract
from pipelines.contracts.rule_text import expected_of
from pipelines.contracts.rules import Rule
from pipelines.error_text import plural
from pipelines.quality.local_rules import kept_rows
from pipelines.quality.local_uniqueness import exact_codes
from pipelines.quality.quarantine import is_good
from pipelines.spark.frames import frame_of


def judge_local(spark: SparkSession, table: pa.Table, contract: Contract) -> list[Check]:
    """A check for every rule of `contract`, as `great_expectations.judge`. Spark is asked about the rules that are only
    its to judge. Raises ArrowException where keys cannot be compared."""
    truth = truth_values(spark, table, contract, [0])
    broken = {name: int(np.count_nonzero(~good)) for name, good in truth.items()}
    return [rule_check(rule, table.num_rows, broken.get(rule.name, 0)) for rule in contract.rules]


def truth_values(
    spark: SparkSession, table: pa.Table, contract: Contract, starts: Sequence[int]
) -> dict[str, Bools]:  # fmt: skip
    """Which rows of `table` keep each rule, by its name; a rule that counts rows is none of them. `starts`: where the
    rows of each table begin that lie end to end in `table`, whose keys are compared with their own table's only.
    Raises as `judge_local`."""
    truth: dict[str, Bools] = {}
    sparks: list[Rule] = []
    for rule in contract.rules:
        if rule.kind == "unique":
            truth[rule.name] = not_repeating(rule, table, starts)
        elif rule.kind != "row_count":
            good = kept_rows(rule, table, contract)
            if good is None:
                sparks.append(rule)
            else:
                truth[rule.name] = good
    return truth | _kept_by_spark(spark, table, sparks)


def rule_check(rule: Rule, rows: int, broken: int) -> Check:
    """The check of a rule that `broken` of `rows` rows break. Its data: `rows` and, unless it counts rows, `broken`."""
    data = {"rows": rows}
    if rule.kind == "row_count":
        value, observed = float(rows), plural(rows, "row")
    else:
        value = 100 * broken / rows if rule.limit.percent and rows else float(broken)
        of = plural(rows, "row")
        observed = f"{broken} of {of} break it" if broken else f"none of {of} breaks it"
        data["broken"] = broken
    return Check(rule.name, rule.limit.holds(value), observed, expected_of(rule), ", ".join(rule.columns) or None, data)


def not_repeating(rule: Rule, table: pa.Table, starts: Sequence[int]) -> Bools:
    """The rows that share their key with no other of their table, which begin in `table` at `starts`; whatever other
    rules they break."""
    codes = exact_codes(table, rule.columns)
    if len(starts) > 1:
        parts = np.searchsorted(np.asarray(starts), np.arange(table.num_rows), side="right")
        codes = codes + parts * (int(codes.max(initial=0)) + 1)
    _, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    good: Bools = counts[places] == 1
    if len(rule.columns) == 1:  # a single column's NULL is no key
        good |= ~valid(table.column(rule.columns[0]).combine_chunks())
    return good


def _kept_by_spark(spark: SparkSession, table: pa.Table, rules: list[Rule]) -> dict[str, Bools]:
    """Of a small table Spark's optimizer computes the answer itself, without a job: so it is collected as rows."""
    if not rules or not table.num_rows:
        return {rule.name: np.ones(table.num_rows, np.bool_) for rule in rules}
    wanted = frame_of(spark, table).select(*[is_good(rule).alias(f"rule_{at}") for at, rule in enumerate(rules)])
    answers = wanted.collect()
    return {rule.name: np.array([bool(row[at]) for row in answers]) for at, rule in enumerate(rules)}
