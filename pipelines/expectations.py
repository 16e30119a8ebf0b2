"""Great Expectations as the judge of a table: the suite comes from the contract's rules, the verdicts go to the record.

A rule that Great Expectations has no expectation for (a condition over several columns) is judged on a column that
holds whether each row keeps it. Nothing is sent anywhere, nothing is stored: the context is ephemeral.

On Spark the judge asks for some ten jobs, however few the rows. A small table is brought here by one: with a column of
truth values for each rule of single rows, so that Spark's own comparisons say who keeps it, as in the split. A large
one of which the split has set nothing apart is judged on such columns too, which are small enough to be held.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from cep_core.buffers import arrow, repeated
from pipelines.contract import Contract
from pipelines.contract_rules import Rule
from pipelines.frames import frame_of
from pipelines.quarantine import column as column_of
from pipelines.quarantine import is_good
from pipelines.rule_text import expected_of
from pipelines.split_here import kept_rows

DERIVED = ("row", "multiple", "not_missing", "items", "distinct_items")
"""Kinds of rules that are judged on a column of truth values."""
DERIVED_HERE = (*DERIVED, "not_null", "in_set", "range", "length", "pattern")
"""Those of a table that is brought here. Great Expectations hashes each table it is given, every column, twice."""
DERIVED_ALONE = (*DERIVED_HERE, "unique")
"""Those of a table of which it is known that no row repeats a key."""
FEW = 500_000
"""So many rows, of the columns that rules speak of, this process can hold."""


def verdicts(frame: DataFrame, rules: Sequence[Rule], suite_name: str, rows: int) -> list[dict[str, Any]]:
    """As `judge`, where it costs least: a table of `rows` rows is judged here where those are `FEW`."""
    return judge_here(frame, rules, suite_name)[0] if rows <= FEW else judge(frame, rules, suite_name)


def flags_of(frame: DataFrame, rules: Sequence[Rule], others: Sequence[Column]) -> tuple[DataFrame, dict[str, str]]:
    """As `renamed`: the truth values of a table without a repeated key, for `judge_flags`."""
    return renamed(frame, rules, DERIVED_ALONE, others)


def judge_flags(
    flags: DataFrame, names: Mapping[str, str], rules: Sequence[Rule], suite_name: str, rows: int
) -> list[dict[str, Any]]:
    """As `judge`, of what `flags_of` has made."""
    if rows > FEW:
        return _on_spark(flags, rules, names, suite_name)
    return _here(flags.toArrow(), rules, names, suite_name)


def judge(frame: DataFrame, rules: Sequence[Rule], suite_name: str) -> list[dict[str, Any]]:
    """The verdict on every rule: `{check, column, success, observed, expected}`, in the order of `rules`.

    `frame` is read several times: persist it. Raises RuntimeError when Great Expectations could not judge a rule.
    """
    judged, names = renamed(frame, rules, DERIVED)
    return _on_spark(judged, rules, names, suite_name)


def judge_here(
    frame: DataFrame, rules: Sequence[Rule], suite_name: str, others: Sequence[Column] = ()
) -> tuple[list[dict[str, Any]], pa.Table]:
    """As `judge`, for a table that this process can hold, which is read once; and that table: a row for each row, with
    the columns `others`."""
    judged, names = renamed(frame, rules, DERIVED_HERE, others)
    table = judged.toArrow()
    return _here(table, rules, names, suite_name), table


def _on_spark(
    judged: DataFrame, rules: Sequence[Rule], names: Mapping[str, str], suite_name: str
) -> list[dict[str, Any]]:
    return _judged(lambda sources: sources.add_spark("spark", persist=False), judged, rules, names, suite_name)


def _here(table: pa.Table, rules: Sequence[Rule], names: Mapping[str, str], suite_name: str) -> list[dict[str, Any]]:
    import pandas as pd

    here = table.to_pandas(types_mapper=pd.ArrowDtype)
    return _judged(lambda sources: sources.add_pandas("here"), here, rules, names, suite_name)


def _judged(
    add_source: Callable[[Any], Any], data: Any, rules: Sequence[Rule], names: Mapping[str, str], suite_name: str
) -> list[dict[str, Any]]:
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
    return [_verdict(rule, results[rule.name]) for rule in rules]


def quiet_context() -> Any:
    """A context of Great Expectations that keeps nothing, tells nobody, and shows no progress."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    return context


def judge_table(
    spark: SparkSession, table: pa.Table, contract: Contract, suite_name: str
) -> list[dict[str, Any]]:  # fmt: skip
    """As `judge_here`, of a table that is here already: Spark is asked for the truth of those rules only that mean
    something of its own to it."""
    names: dict[str, str] = {}
    columns: dict[str, Any] = {"row_there": repeated(True, table.num_rows)}
    sparks: dict[str, Rule] = {}
    for kind, what, alias in _aliases(contract.rules, DERIVED_HERE):
        names[f"{kind} {what if isinstance(what, str) else what.name}"] = alias
        if isinstance(what, str):
            columns[alias] = table[what]
        elif (kept := kept_rows(what, table, contract)) is not None:
            columns[alias] = arrow(kept)
        else:
            sparks[alias] = what
    if sparks:
        told = frame_of(spark, table).select(*[is_good(rule).alias(alias) for alias, rule in sparks.items()])
        columns |= dict(zip(sparks, told.toArrow().columns, strict=True))
    return _here(pa.table(columns), contract.rules, names, suite_name)


def _aliases(rules: Sequence[Rule], derived: Sequence[str]) -> Iterator[tuple[str, Rule | str, str]]:
    """What a judge of `rules` is given, under names that need no quoting (Great Expectations quotes none): `rule`, the
    rule whose truth values are a column, or `column` and its name; and the alias."""
    told: set[str] = set()
    for rule in rules:
        if rule.kind in derived:
            yield "rule", rule, f"rule_{len(told)}"
            told.add(f"rule {rule.name}")
            continue
        for name in rule.columns:
            if f"column {name}" not in told:
                plain = re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) and not name.startswith(
                    ("rule_", "column_", "row_")
                )
                yield "column", name, name if plain else f"column_{len(told)}"
                told.add(f"column {name}")


def renamed(
    frame: DataFrame, rules: Sequence[Rule], derived: Sequence[str], others: Sequence[Column] = ()
) -> tuple[DataFrame, dict[str, str]]:
    """The columns the rules speak of, those of truth values for rules of the kinds `derived`, and `others`, under
    aliases, with those by column and by rule. Where `unique` is among `derived`, no row may repeat a key."""
    names: dict[str, str] = {}
    columns: list[Column] = [sf.lit(True).alias("row_there"), *others]
    for kind, what, alias in _aliases(rules, derived):
        if isinstance(what, str):
            names[f"{kind} {what}"], value = alias, column_of(what)
        else:
            names[f"{kind} {what.name}"] = alias
            value = sf.lit(True) if what.kind == "unique" else is_good(what)
        columns.append(value.alias(alias))
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


def _verdict(rule: Rule, outcome: Any) -> dict[str, Any]:
    raised = _exception(outcome.exception_info)
    if raised:
        raise RuntimeError(f"Great Expectations could not judge rule '{rule.name}': {raised}")
    found = outcome.result
    if rule.kind == "row_count":
        value, observed = float(found["observed_value"]), f"{found['observed_value']} rows"
    else:
        rows, broken = int(found.get("element_count") or 0), int(found.get("unexpected_count") or 0)
        value = 100 * broken / rows if rule.limit.percent and rows else float(broken)
        observed = f"{broken} of {rows} rows break it" if broken else f"none of {rows} rows breaks it"
    return {
        "check": rule.name,
        "column": ", ".join(rule.columns) or None,
        "success": rule.limit.holds(value),
        "observed": observed,
        "expected": expected_of(rule),
    }


def _exception(info: Any) -> str | None:
    """The message of an exception that Great Expectations caught, in either shape it reports one."""
    if not info:
        return None
    if "raised_exception" in info:
        return str(info["exception_message"]) if info["raised_exception"] else None
    return next((text for part in info.values() if (text := _exception(part))), None)
