"""Great Expectations as the judge of a table: the suite comes from the contract's rules, the verdicts go to the record.

A rule is judged by an expectation on the column itself where that gives the verdict of the quarantine, on Spark
(`ON_SPARK`) and on a table that is brought here (`HERE`): test_native_expectations.py. Any other rule
(conditions over several columns, Java's regular expressions, doubles with NaN) is judged on a column of truth values,
which says whether Spark finds that each row keeps it. Nothing is sent anywhere, nothing is stored: the context is
ephemeral.

On Spark the judge asks for some ten jobs, however few the rows. A small table is brought here by one. A large one of
which the split has set nothing apart is judged on truth values alone, which are small enough to be held.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from cep_core.events.array_types import Bools
from cep_core.events.arrays import arrow, repeated
from cep_core.events.names import same_name
from pipelines.check import Check
from pipelines.contracts.rules import Rule
from pipelines.quality.local_verdicts import rule_check
from pipelines.quality.quarantine import is_good
from pipelines.spark.columns import column as column_of

WHOLE = ("tinyint", "smallint", "int", "bigint")
ON_SPARK: Mapping[str, Sequence[str] | None] = {
    "unique": None,
    "not_null": None,
    "in_set": ("string", *WHOLE),
    "range": (*WHOLE, "double"),
    "length": ("string",),
    "pattern": ("string",),
}
"""Kinds of rules that Great Expectations judges on the column itself, of columns of these types (None: of all), on
Spark, whose regular expressions are those of the quarantine."""
HERE: Mapping[str, Sequence[str] | None] = {
    "unique": None,
    "not_null": None,
    "in_set": ("string", *WHOLE),
    "range": WHOLE,
    "length": ("string",),
}
"""As `ON_SPARK`, of a table that is brought here."""
ALONE: Mapping[str, Sequence[str] | None] = {}
"""None, of a table of which it is known that no row repeats a key."""
FEW = 500_000
"""So many rows, of the columns that rules speak of, this process can hold."""


def verdicts(frame: DataFrame, rules: Sequence[Rule], suite_name: str, rows: int) -> list[Check]:
    """As `judge`, where it costs least: a table of `rows` rows is judged here where those are `FEW`."""
    return judge_here(frame, rules, suite_name)[0] if rows <= FEW else judge(frame, rules, suite_name)


def flags_of(frame: DataFrame, rules: Sequence[Rule], others: Sequence[Column]) -> tuple[DataFrame, dict[str, str]]:
    """As `renamed`: the truth values of a table without a repeated key, for `judge_flags`."""
    return renamed(frame, rules, ALONE, others)


def judge_flags(
    flags: DataFrame, names: Mapping[str, str], rules: Sequence[Rule], suite_name: str, rows: int
) -> list[Check]:
    """As `judge`, of what `flags_of` has made."""
    if rows > FEW:
        return _on_spark(flags, rules, names, suite_name)
    return _here(flags.toArrow(), rules, names, suite_name)


def judge_truth_values(
    truth: Mapping[str, Bools], rules: Sequence[Rule], suite_name: str, rows: int
) -> list[Check]:  # fmt: skip
    """As `judge`, of `rows` rows in this process: of each rule that speaks of rows, by its name, which rows keep it
    (bool, length `rows`). Rules that no row breaks are judged by one expectation: each row keeps all of them. Great
    Expectations takes some 20 ms for an expectation, however few the rows."""
    unbroken = [name for name, good in truth.items() if good.all()]
    if len(unbroken) > 1:
        united = {unbroken[0]: np.logical_and.reduce([truth[name] for name in unbroken])}
        united |= {name: good for name, good in truth.items() if name not in unbroken}
        asked = [rule for rule in rules if rule.name not in unbroken[1:]]
        checks = {check.name: check for check in _judged_one_by_one(united, asked, suite_name, rows)}
        together = checks[unbroken[0]].data
        if together["broken"] == 0:
            return [checks.get(rule.name) or rule_check(rule, together["rows"], 0) for rule in rules]
    return _judged_one_by_one(truth, rules, suite_name, rows)


def _judged_one_by_one(
    truth: Mapping[str, Bools], rules: Sequence[Rule], suite_name: str, rows: int
) -> list[Check]:  # fmt: skip
    """As `judge_truth_values`, by an expectation for each rule."""
    names = {f"rule {name}": f"rule_{number}" for number, name in enumerate(truth)}
    columns = {f"rule_{number}": arrow(values) for number, values in enumerate(truth.values())}
    return _here(pa.table({"row_there": repeated(True, rows), **columns}), rules, names, suite_name)


def judge_truth_values_of(
    tables: Sequence[tuple[Mapping[str, Bools], Sequence[Rule], int]], suite_name: str
) -> list[list[Check]]:  # fmt: skip
    """As `judge_truth_values` of each of `tables`: its truth values, rules and rows. Those that keep every rule are
    judged by one suite, on their rows laid end to end: where none of these breaks a rule, none of a table's does."""
    keeping = [at for at, (truth, _, _) in enumerate(tables) if all(good.all() for good in truth.values())]
    checks: dict[int, list[Check]] = {}
    if len(keeping) > 1:
        united = _united([tables[at] for at in keeping])
        if all(check.data.get("broken", 0) == 0 for check in judge_truth_values(*united[:2], suite_name, united[2])):
            for at in keeping:
                _, rules, rows = tables[at]
                checks[at] = [rule_check(rule, rows, 0) for rule in rules]
    return [
        checks[at] if at in checks else judge_truth_values(truth, rules, suite_name, rows)
        for at, (truth, rules, rows) in enumerate(tables)
    ]


def _united(
    tables: Sequence[tuple[Mapping[str, Bools], Sequence[Rule], int]],
) -> tuple[dict[str, Bools], list[Rule], int]:
    """The tables as one: a rule that a table does not have, its rows keep."""
    by_name = {rule.name: rule for _, rules, _ in tables for rule in rules}
    names = dict.fromkeys(name for truth, _, _ in tables for name in truth)
    whole = {
        name: np.concatenate([truth.get(name, np.ones(rows, np.bool_)) for truth, _, rows in tables]) for name in names
    }
    return whole, list(by_name.values()), sum(rows for _, _, rows in tables)


def judge(frame: DataFrame, rules: Sequence[Rule], suite_name: str) -> list[Check]:
    """A check for every rule, in the order of `rules`.

    `frame` is read several times: persist it. Raises RuntimeError when Great Expectations could not judge a rule.
    """
    judged, names = renamed(frame, rules, ON_SPARK)
    return _on_spark(judged, rules, names, suite_name)


def judge_here(
    frame: DataFrame, rules: Sequence[Rule], suite_name: str, others: Sequence[Column] = ()
) -> tuple[list[Check], pa.Table]:
    """As `judge`, for a table that this process can hold, which is read once; and that table: a row for each row, with
    the columns `others`. A table with a text that is not UTF-8 is judged by Spark, which compares bytes."""
    judged, names = renamed(frame, rules, HERE, others)
    table = judged.toArrow()
    checks = _here(table, rules, names, suite_name) if _all_utf_8(table) else judge(frame, rules, suite_name)
    return checks, table


def _on_spark(judged: DataFrame, rules: Sequence[Rule], names: Mapping[str, str], suite_name: str) -> list[Check]:
    return _judged(lambda sources: sources.add_spark("spark", persist=False), judged, rules, names, suite_name)


def _here(table: pa.Table, rules: Sequence[Rule], names: Mapping[str, str], suite_name: str) -> list[Check]:
    import pandas as pd

    dataframe = table.to_pandas(types_mapper=pd.ArrowDtype)
    return _judged(lambda sources: sources.add_pandas("here"), dataframe, rules, names, suite_name)


def _all_utf_8(table: pa.Table) -> bool:
    """Whether every text of a table is UTF-8. pandas refuses others, and a substitute for them would be another text:
    `unique` might find it twice, `length` counts its characters otherwise than Spark."""
    try:
        for column in table.columns:
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
                column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _judged(
    add_source: Callable[[Any], Any], data: Any, rules: Sequence[Rule], names: Mapping[str, str], suite_name: str
) -> list[Check]:
    if not rules:
        return []
    context = quiet_context()
    import great_expectations as gx

    batches = (
        add_source(context.data_sources).add_dataframe_asset(suite_name).add_batch_definition_whole_dataframe("all")
    )
    expectations = [expectation_of(rule, names) for rule in rules]
    suite = context.suites.add(gx.ExpectationSuite(suite_name, expectations=expectations))
    batch = batches.get_batch(batch_parameters={"dataframe": data})
    outcome: Any = batch.validate(suite, result_format={"result_format": "BASIC", "partial_unexpected_count": 0})
    results = {result.expectation_config.meta["rule"]: result for result in outcome.results}
    return [_check(rule, results[rule.name]) for rule in rules]


def quiet_context() -> Any:
    """A context of Great Expectations that keeps nothing, tells nobody, and shows no progress."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    return context


def native(rule: Rule, types: Mapping[str, str], judged: Mapping[str, Sequence[str] | None]) -> bool:
    """Whether a rule is judged on its column itself, where the kinds and types of `judged` are. `types`: Spark's, by
    the column's `same_name`."""
    if rule.kind == "row_count":
        return True
    if rule.kind not in judged:
        return False
    wanted = judged[rule.kind]
    kind = types.get(same_name(rule.columns[0]))
    if wanted is not None and kind not in wanted:
        return False
    values = rule.values if rule.kind == "in_set" else (rule.low, rule.high) if rule.kind == "range" else ()
    plain = {"string": (str,), "double": (int, float)}.get(str(kind), (int,))
    return all(value is None or type(value) in plain for value in values)


def renamed(
    frame: DataFrame,
    rules: Sequence[Rule],
    judged: Mapping[str, Sequence[str] | None],
    others: Sequence[Column] = (),
) -> tuple[DataFrame, dict[str, str]]:
    """The columns that rules are judged on, and `others`, under names that need no quoting (Great Expectations quotes
    none), with those by `column NAME` and by `rule NAME`: of rules that are `native`, the columns that they speak of;
    of the others, truth values. Where `unique` is not in `judged`, no row may repeat a key."""
    types = {same_name(field.name): field.dataType.simpleString() for field in frame.schema.fields}
    names: dict[str, str] = {}
    columns: list[Column] = [sf.lit(True).alias("row_there"), *others]

    def add(key: str, value: Column, alias: str) -> None:
        names[key] = alias
        columns.append(value.alias(alias))

    for rule in rules:
        if not native(rule, types, judged):
            add(f"rule {rule.name}", sf.lit(True) if rule.kind == "unique" else is_good(rule), f"rule_{len(names)}")
            continue
        for name in rule.columns:
            if f"column {name}" not in names:
                reserved = same_name(name).startswith(("rule_", "column_", "row_"))
                plain = re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) and not reserved
                add(f"column {name}", column_of(name), name if plain else f"column_{len(names)}")
    return frame.select(*columns), names


def expectation_of(rule: Rule, names: Mapping[str, str]) -> Any:
    """The expectation (an object of Great Expectations) that judges a rule; `names` are those `renamed` gives."""
    gxe: Any = import_module("great_expectations.expectations")

    meta = {"rule": rule.name}
    if f"rule {rule.name}" in names:
        return gxe.ExpectColumnValuesToBeInSet(column=names[f"rule {rule.name}"], value_set=[True], meta=meta)
    if rule.kind == "row_count":
        return gxe.ExpectTableRowCountToBeBetween(min_value=0, meta=meta)
    columns = [names[f"column {name}"] for name in rule.columns]
    if rule.kind == "unique" and len(columns) > 1:
        return gxe.ExpectCompoundColumnsToBeUnique(column_list=columns, ignore_row_if="never", meta=meta)
    column: dict[str, Any] = {"column": columns[0], "meta": meta}
    if rule.kind == "unique":
        return gxe.ExpectColumnValuesToBeUnique(**column)
    if rule.kind == "not_null":
        return gxe.ExpectColumnValuesToNotBeNull(**column)
    if rule.kind == "in_set":
        return gxe.ExpectColumnValuesToBeInSet(value_set=list(rule.values), **column)
    if rule.kind == "pattern":
        return gxe.ExpectColumnValuesToMatchRegex(regex=rule.text, **column)
    bounds: dict[str, Any] = {
        "min_value": rule.low,
        "max_value": rule.high,
        "strict_min": rule.low_strict,
        "strict_max": rule.high_strict,
    }
    if rule.kind == "length":
        return gxe.ExpectColumnValueLengthsToBeBetween(**bounds, **column)
    return gxe.ExpectColumnValuesToBeBetween(**bounds, **column)


def _check(rule: Rule, outcome: Any) -> Check:
    raised = _exception(outcome.exception_info)
    if raised:
        raise RuntimeError(f"Great Expectations could not judge rule '{rule.name}': {raised}")
    counted = outcome.result
    if rule.kind == "row_count":
        return rule_check(rule, int(counted["observed_value"]), 0)
    return rule_check(rule, int(counted.get("element_count") or 0), int(counted.get("unexpected_count") or 0))


def _exception(info: Any) -> str | None:
    """The message of an exception that Great Expectations caught, in either shape it reports one."""
    if not info:
        return None
    if "raised_exception" in info:
        return str(info["exception_message"]) if info["raised_exception"] else None
    return next((text for part in info.values() if (text := _exception(part))), None)
