"""Great Expectations as the judge of a table: the suite comes from the contract's rules, the verdicts go to the record.

There are two ways. Staged results are judged by expectations on the real columns (`judge`), where those give the
verdict of `pipelines.rules.keep`: `NATIVE`, held by test_native_expectations.py. Sources, and any other rule, are
judged on a column of truth values a rule, which says whether each row keeps it (`judge_truth_values`). Nothing is sent
anywhere, nothing is stored: the context is ephemeral.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.events.arrays import arrow, repeated
from trendlake.cep_core.events.names import same_name
from trendlake.pipelines.check import Check
from trendlake.pipelines.contracts.rule_text import expected_of
from trendlake.pipelines.contracts.rules import Rule
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.rules.keep import keep
from trendlake.pipelines.rules.unique import not_repeating

WHOLE = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
NATIVE: Mapping[str, Sequence[pa.DataType] | None] = {
    "unique": None,
    "not_null": None,
    "in_set": (pa.string(), *WHOLE),
    "range": WHOLE,
    "length": (pa.string(),),
}
"""Kinds of rules that Great Expectations judges on the column itself, of columns of these types (None: of all)."""
LATER = ("altair", "scipy.stats")
"""Modules that Great Expectations imports for drawings and distributions: a third of the time that its import takes."""
PIECE = 4_000_000
"""Rows whose truth values are judged together: Great Expectations needs some 60 bytes for each."""


def judge_without(table: pa.Table, rules: Sequence[Rule]) -> list[Check]:
    """The verdicts that Great Expectations gives, without it: to import it takes longer than a small revision."""
    truth = truth_values(table, rules, [0])
    broken = {name: int(np.count_nonzero(~good)) for name, good in truth.items()}
    return [rule_check(rule, table.num_rows, broken.get(rule.name, 0)) for rule in rules]


def truth_values(table: pa.Table, rules: Sequence[Rule], starts: Sequence[int]) -> dict[str, Bools]:
    """Which rows of `table` keep each rule, by its name; a rule that counts rows is none of them. `table` is several
    tables joined end to end, whose keys are compared within each table only; `starts`: where the rows of each begin."""
    return {
        rule.name: not_repeating(rule, table, starts) if rule.kind == "unique" else keep(rule, table)
        for rule in rules
        if rule.kind != "row_count"
    }


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


def judge_truth_values(truth: Mapping[str, Bools], rules: Sequence[Rule], suite_name: str, rows: int) -> list[Check]:
    """As `judge`, of `rows` rows in this process: of each rule that speaks of rows, by its name, which rows keep it
    (bool, length `rows`). Rules that no row breaks are judged by one expectation: each row keeps all of them. Great
    Expectations takes some 20 ms for an expectation, however few the rows."""
    unbroken = [name for name, good in truth.items() if good.all()]
    if len(unbroken) > 1:
        united = {name: good for name, good in truth.items() if name not in unbroken[1:]}
        asked = [rule for rule in rules if rule.name not in unbroken[1:]]
        checks = {check.name: check for check in _judged_one_by_one(united, asked, suite_name, rows)}
        together = checks[unbroken[0]].data
        if together["broken"] == 0:
            return [checks.get(rule.name) or rule_check(rule, together["rows"], 0) for rule in rules]
    return _judged_one_by_one(truth, rules, suite_name, rows)


def _judged_one_by_one(truth: Mapping[str, Bools], rules: Sequence[Rule], suite_name: str, rows: int) -> list[Check]:
    """As `judge_truth_values`, by an expectation for each rule."""
    names = {f"rule {name}": f"rule_{number}" for number, name in enumerate(truth)}
    columns = {f"rule_{number}": arrow(values) for number, values in enumerate(truth.values())}
    # Great Expectations reads the whole table to give it a name: it has no column that is not asked about
    return _judged(pa.table(columns or {"row_there": repeated(True, rows)}), rules, names, suite_name)


def judge_truth_values_of(
    tables: Sequence[tuple[Mapping[str, Bools], Sequence[Rule], int]], suite_name: str
) -> list[list[Check]]:
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


def judge_counts(
    masks: Sequence[tuple[Bools, int]],
    names: Sequence[str],
    sharing: Mapping[str, int],
    rules: Sequence[Rule],
    suite_name: str,
) -> list[Check]:
    """As `judge_truth_values`, of rows that are counted by the rules that they keep: each of `masks` says which of the
    rules `names` so many rows keep. `sharing`: how many rows break each rule of uniqueness. A row is a row to Great
    Expectations: many are judged `PIECE` after `PIECE`."""
    keeping = np.array([mask for mask, _ in masks], np.bool_).reshape(len(masks), len(names))
    ends: Int64s = np.cumsum([count for _, count in masks], dtype=np.int64)
    rows = int(ends[-1]) if len(ends) else 0
    pieces = []
    for start in range(0, max(rows, 1), PIECE):
        stop = min(rows, start + PIECE)
        sizes = np.diff(np.clip(ends, start, stop), prepend=np.int64(start)).astype(np.int64)
        every = np.ones(stop - start, np.bool_)
        truth = {
            name: every if keeping[sizes > 0, at].all() else np.repeat(keeping[:, at], sizes)
            for at, name in enumerate(names)
        }
        for name, count in sharing.items():
            truth[name] = np.arange(start, stop) >= count if count else every
        pieces.append(judge_truth_values(truth, rules, suite_name, stop - start))
    if len(pieces) == 1:
        return pieces[0]
    broken = [sum(piece[at].data.get("broken", 0) for piece in pieces) for at in range(len(rules))]
    return [rule_check(rule, rows, count) for rule, count in zip(rules, broken, strict=True)]


def judge(table: pa.Table, rules: Sequence[Rule], suite_name: str) -> list[Check]:
    """A check for every rule, in the order of `rules`, of rows in this process. Raises RuntimeError when Great
    Expectations could not judge a rule."""
    judged, names = renamed(table, rules, NATIVE)
    return _judged(judged, rules, names, suite_name)


def _judged(table: pa.Table, rules: Sequence[Rule], names: Mapping[str, str], suite_name: str) -> list[Check]:
    if not rules:
        return []
    context, gx = quiet_context(), import_package()
    import pandas as pd

    asset = context.data_sources.add_pandas("here").add_dataframe_asset(suite_name)
    batches = asset.add_batch_definition_whole_dataframe("all")
    expectations = [expectation_of(rule, names) for rule in rules]
    suite = context.suites.add(gx.ExpectationSuite(suite_name, expectations=expectations))
    # not by a batch that is validated: Great Expectations would hash the table, to name it, for both
    definition = context.validation_definitions.add(gx.ValidationDefinition(name=suite_name, data=batches, suite=suite))
    outcome: Any = definition.run(
        batch_parameters={"dataframe": table.to_pandas(types_mapper=pd.ArrowDtype)},
        result_format={"result_format": "BASIC", "partial_unexpected_count": 0},
    )
    results = {result.expectation_config.meta["rule"]: result for result in outcome.results}
    return [_check(rule, results[rule.name]) for rule in rules]


class _Later(MetaPathFinder):
    """Finds the modules `LATER`; each is executed when an attribute of it is asked for."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name in LATER else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def import_package() -> Any:
    """Great Expectations, which sends nothing anywhere, and without `LATER` until it needs them."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # it asks when it is imported
    finder = _Later()
    sys.meta_path.insert(0, finder)
    try:
        import_module("great_expectations.expectations")
        return import_module("great_expectations")
    finally:
        sys.meta_path.remove(finder)


def quiet_context() -> Any:
    """A context of Great Expectations that keeps nothing, sends nothing, and shows no progress."""
    gx = import_package()
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    return context


def native(rule: Rule, types: Mapping[str, pa.DataType], judged: Mapping[str, Sequence[pa.DataType] | None]) -> bool:
    """Whether a rule is judged on its column itself, where the kinds and types of `judged` are. `types`: of columns."""
    if rule.kind == "row_count":
        return True
    if rule.kind not in judged:
        return False
    wanted, kind = judged[rule.kind], types[rule.columns[0]]
    if wanted is not None and kind not in wanted:
        return False
    values = rule.values if rule.kind == "in_set" else (rule.low, rule.high) if rule.kind == "range" else ()
    plain = str if kind == pa.string() else int
    return all(value is None or type(value) is plain for value in values)


def renamed(
    table: pa.Table, rules: Sequence[Rule], judged: Mapping[str, Sequence[pa.DataType] | None]
) -> tuple[pa.Table, dict[str, str]]:
    """The columns that rules are judged on, under names that need no quoting (Great Expectations quotes none), with
    those by `column NAME` and by `rule NAME`: of rules that are `native`, the columns that they speak of; of others
    truth values. So too where a text is not UTF-8, which pandas refuses."""
    types = {field.name: field.type for field in table.schema}
    names: dict[str, str] = {}
    columns: dict[str, Any] = {"row_there": repeated(True, table.num_rows)}
    for rule in rules:
        if not native(rule, types, judged) or not all(_utf_8(table.column(name)) for name in rule.columns):
            alias = names[f"rule {rule.name}"] = f"rule_{len(names)}"
            columns[alias] = arrow(truth_values(table, [rule], [0])[rule.name])
            continue
        for name in rule.columns:
            if f"column {name}" not in names:
                reserved = same_name(name).startswith(("rule_", "column_", "row_"))
                plain = re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) and not reserved
                alias = names[f"column {name}"] = name if plain else f"column_{len(names)}"
                columns[alias] = table.column(name)
    return pa.table(columns), names


def _utf_8(column: pa.ChunkedArray) -> bool:
    """Whether every text of a column is UTF-8: a substitute for another would be another text."""
    try:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


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
