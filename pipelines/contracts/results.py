"""The results contract of one pattern: `data_contracts/results_<kind>.yaml` with its templates filled in
(`results_compressed.yaml` for matches that are kept as graphs).

A results table has columns that only the pattern knows: groups and measures, variables, a register. In the file a
property stands for all columns of one sort when it carries the custom property `appliesTo`; `{column}` and `{log10}` in
its rules name the column and its companion. The filled-in document is a data contract like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.errors import BadValueError, did_you_mean
from trendlake.cep_core.yaml.source import Source
from trendlake.pipelines.contracts.column_types import LOGICAL_OF, spark_name
from trendlake.pipelines.contracts.contract import Contract, contract_of
from trendlake.pipelines.contracts.document import load_document
from trendlake.pipelines.contracts.odcs import Document, Property, Quality
from trendlake.pipelines.errors import ContractErrors
from trendlake.pipelines.spark.identifiers import quoted

SORTS = (
    "group",
    "window_date",
    "trend_count",
    "trend_count_or_zero",
    "occurrence_count",
    "sum",
    "mean",
    "extreme",
    "length",
    "duration",
    "witness",
    "log10",
    "events",
    "optional_events",
    "measure",
    "end_event",
    "graph",
    "partition",
    "event",
    "match",
    "register",
    "attribute",
    "document",
    "returned",
)
LOG10 = "_log10"
UNIT = " A duration in microseconds."


def contract_name(plan: AnyPlan) -> str:
    """The contract that results of the plan keep."""
    return plan.result_shape.contract


def columns_by_sort(plan: AnyPlan) -> dict[str, list[pa.Field]]:
    """The plan's own result columns, by the words a template's `appliesTo` may use."""
    columns, schema = plan.result_shape.columns, plan.result_schema
    return {sort: [schema.field(name) for name in columns.get(sort, ())] for sort in SORTS}


def results_contract(path: Path, plan: AnyPlan, pattern: str) -> Contract:
    """The contract of `results/<pattern>`. Raises ContractErrors."""
    document, source = load_document(path)
    check_templates(document, source)
    sorts = columns_by_sort(plan)
    filled: list[Property] = list(_parameters(plan))
    for item in document.table.properties:
        sort = item.custom("appliesTo")
        filled.extend([item] if sort is None else _fill(item, sorts[str(sort)], plan.result_shape.durations))
    filled = [*_of_tables(filled, plan)]
    table = document.table.model_copy(update={"properties": tuple(_keyed(filled)), "name": pattern})
    whole: Document = document.model_copy(update={"schema_": (table,)})
    return contract_of(whole, source, events=False)


def _parameters(plan: AnyPlan) -> Iterator[Property]:
    """The first columns of the key of a family's results; no template has them, as a family may be of many kinds."""
    for name in plan.result_shape.columns.get("parameter", ()):
        kind = spark_name(plan.result_schema.field(name).type)
        yield Property.model_validate(
            {
                "name": name,
                "physicalType": kind,
                "logicalType": LOGICAL_OF[kind],
                "primaryKey": True,
                "description": "A parameter of the pattern; NULL is a value of its own.",
            }
        )


def _of_tables(properties: list[Property], plan: AnyPlan) -> Iterator[Property]:
    """The properties of the rows of a pattern with `sources` or `lookup`: of several tables of events no single version
    is required, and each row names those of all. No template has them, as any kind may have them."""
    tables = plan.schema.tables
    for item in properties:
        several = tables is not None and len(tables.tables) > 1 and item.name == "source_version"
        yield item.model_copy(update={"required": False}) if several else item
    if plan.schema.reads_several:
        about = {"name": "source_versions", "logicalType": "string", "physicalType": "string", "required": True}
        yield Property.model_validate(
            {**about, "description": "The versions of the tables the row was computed from, by name."}
        )


def check_templates(document: Document, source: Source) -> None:
    """Raises ContractErrors where a property applies to columns of a sort there is not."""
    errors = [
        BadValueError(
            f"unknown sort of columns '{sort}'",
            place=source.place(("schema", 0, "properties", index, "customProperties")),
            hint=did_you_mean(str(sort), SORTS),
        )
        for index, item in enumerate(document.table.properties)
        if (sort := item.custom("appliesTo")) is not None and sort not in SORTS
    ]
    if errors:
        raise ContractErrors(errors)


def _keyed(properties: list[Property]) -> Iterator[Property]:
    """Primary key positions in the order of the columns."""
    position = 0
    for item in properties:
        position += item.primary_key
        yield item.model_copy(update={"primary_key_position": position if item.primary_key else -1})


def _fill(item: Property, fields: list[pa.Field], durations: tuple[str, ...]) -> Iterator[Property]:
    for field in fields:
        unit = UNIT if field.name in durations else ""
        words = {"{column}": quoted(field.name), "{log10}": quoted(field.name + LOG10)}
        kind = spark_name(field.type)
        quality = tuple(_fill_rule(rule, field.name, words) for rule in item.quality)
        logical = LOGICAL_OF[re.split(r"[(<]", kind)[0]]
        update: dict[str, Any] = {
            "name": field.name,
            "physical_type": kind,
            "logical_type": logical,
            "quality": quality,
            "description": f"{item.description or ''}{unit}".strip(),
        }
        yield item.model_copy(update=update)


def _fill_rule(rule: Quality, column: str, words: Mapping[str, str]) -> Quality:
    text = str(rule.implementation)
    for word, identifier in words.items():
        text = text.replace(word, identifier)
    name = f"{column}_{rule.name}" if rule.name else None
    return rule.model_copy(update={"implementation": text if rule.implementation else None, "name": name})
