"""The open rows of a source's quarantine for people: how many by rule, and the first of them.

Of a table on this machine's disk they are judged in this process, so that no Spark has to start; of any other by Spark
(`pipelines.ingest.replay.open_rows`). Both give the same rows in the same order.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from cep_core.events.arrays import arrow
from pipelines.contracts.contract import Contract
from pipelines.contracts.rule_text import reason_of
from pipelines.contracts.rules import Rule
from pipelines.delta.local_log import local_errors
from pipelines.delta.local_reader import ROWS, table_here
from pipelines.delta.tables import Warehouse, exists
from pipelines.errors import LocalUnsupportedError
from pipelines.ingest.replay import open_rows
from pipelines.quality.local_rules import kept_rows
from pipelines.quality.local_uniqueness import exact_codes
from pipelines.quality.quarantine import ID, RUNS, SINCE, check_columns

FEW = 50_000
"""Rows of a quarantine that are read in this process."""
PLAIN_DOUBLES = 1e7
"""Java writes whole doubles below it as digits and `.0`."""


@dataclass(frozen=True)
class OpenRows:
    """`counts`: of all open rows, by rule; `rows`: the first, by rule and `ID`, with the columns of `open_rows`."""

    counts: Counter[str]
    rows: pa.Table


def look(
    spark: SparkSession, warehouse: Warehouse, contract: Contract, version: int,
    run_id: str | None, rule: str | None, limit: int | None,
) -> OpenRows:  # fmt: skip
    """Those of `run_id`, else of any run, that break `rule`, else any; of the rows `limit`, else all. Raises
    SourceSchemaError, ContractRuleError."""
    try:
        return _picked(open_rows_here(spark, warehouse, contract, version, run_id), rule, limit)
    except LocalUnsupportedError:
        return _by_spark(spark, warehouse, contract, version, run_id, rule, limit)


def _picked(rows: pa.Table, rule: str | None, limit: int | None) -> OpenRows:
    if rule is not None:
        rows = rows.filter(pc.equal(rows["rule"], rule))
    counts = Counter(rows["rule"].to_pylist())
    ordered = rows.sort_by([("rule", "ascending"), (ID, "ascending")])
    return OpenRows(_by_name(counts), ordered if limit is None else ordered.slice(0, limit))


def _by_spark(
    spark: SparkSession, warehouse: Warehouse, contract: Contract, version: int,
    run_id: str | None, rule: str | None, limit: int | None,
) -> OpenRows:  # fmt: skip
    rows = open_rows(spark, warehouse, contract, version, run_id)
    if rule is not None:
        rows = rows.where(sf.col("rule") == rule)
    rows.persist()  # the count and the rows both read it
    try:
        counts = Counter({row["rule"]: row["count"] for row in rows.groupBy("rule").count().collect()})
        ordered = rows.orderBy("rule", ID)
        return OpenRows(_by_name(counts), (ordered if limit is None else ordered.limit(limit)).toArrow())
    finally:
        rows.unpersist()


def _by_name(counts: Counter[str]) -> Counter[str]:
    return Counter(dict(sorted(counts.items())))


def open_rows_here(
    spark: SparkSession, warehouse: Warehouse, contract: Contract, version: int, run_id: str | None = None
) -> pa.Table:
    """As `open_rows`, in some order. Raises LocalUnsupportedError where it is not certain of them, and
    SourceSchemaError."""
    source = table_here(spark, warehouse.source(contract.name), version)
    check_columns(source.schema, contract)
    if contract.documents is not None:
        source.refuse_large()
    names = [item.name for item in contract.columns]
    with local_errors():
        quarantined = _quarantined(spark, warehouse.quarantine(contract.name), names, run_id)
        rows = source.every(names, ROWS).combine_chunks()
        bad, rules, reasons = _broken(rows, contract)
        rows = rows.take(arrow(bad))
        identities = _identities(rows, names)
        places = [place for place, identity in enumerate(identities) if identity in quarantined]
        about = [quarantined[identities[place]] for place in places]
        columns = {
            ID: pa.array([identities[place] for place in places], pa.string()),
            **{name: rows[name].take(pa.array(places, pa.int64())) for name in names},
            "rule": pa.array([rules[place] for place in places], pa.string()),
            "reason": pa.array([reasons[place] for place in places], pa.string()),
            RUNS: pa.array([len(runs) for runs, _ in about], pa.int64()),
            SINCE: pa.array([since for _, since in about], pa.timestamp("us", "UTC")),
        }
        return pa.table(columns)


def _quarantined(
    spark: SparkSession, path: str, names: Sequence[str], run_id: str | None
) -> dict[str, tuple[set[str], datetime]]:
    """Of each row that was set apart, by its identity: the runs that did it, and when the first of them did."""
    if not exists(spark, path):
        return {}
    rows = table_here(spark, path).every([*names, "run_id", "quarantined_at"], FEW)
    if run_id is not None:
        rows = rows.filter(pc.equal(rows["run_id"], run_id))
    if rows["run_id"].null_count or rows["quarantined_at"].null_count:
        raise LocalUnsupportedError("rows that no run wrote")
    quarantined: dict[str, tuple[set[str], datetime]] = {}
    about = zip(rows["run_id"].to_pylist(), rows["quarantined_at"].to_pylist(), strict=True)
    for identity, (run, moment) in zip(_identities(rows, names), about, strict=True):
        runs, since = quarantined.get(identity, (set[str](), moment))
        quarantined[identity] = (runs | {run}, min(since, moment))
    return quarantined


def _broken(rows: pa.Table, contract: Contract) -> tuple[np.ndarray[Any, Any], list[str], list[str]]:
    """The places of the rows that break a rule of single rows; of each the first rule, and all reasons. Raises
    LocalUnsupportedError where a key is repeated by others."""
    truth: list[tuple[Rule, np.ndarray[Any, Any]]] = []
    for rule in contract.rules:
        if rule.quarantines and rule.kind != "unique":
            keeps = kept_rows(rule, rows, contract)
            if keeps is None:
                raise LocalUnsupportedError(f"a rule that Spark judges: {rule.name}")
            truth.append((rule, keeps))
    good = np.ones(rows.num_rows, np.bool_)
    for _, keeps in truth:
        good &= keeps
    _refuse_repeated(rows.filter(arrow(good)), contract)
    bad = np.flatnonzero(~good)
    broken = [[rule for rule, keeps in truth if not keeps[place]] for place in bad]
    return bad, [rules[0].name for rules in broken], ["; ".join(map(reason_of, rules)) for rules in broken]


def _refuse_repeated(rows: pa.Table, contract: Contract) -> None:
    for rule in contract.rules:
        if rule.quarantines and rule.kind == "unique":
            keyed = rows
            if len(rule.columns) == 1:  # a single column's NULL is no key
                keyed = rows.filter(rows[rule.columns[0]].is_valid())
            if len(np.unique(exact_codes(keyed, rule.columns))) < keyed.num_rows:
                raise LocalUnsupportedError("a key is repeated")


def _identities(rows: pa.Table, names: Sequence[str]) -> list[str]:
    """As `ID` of Spark's: 16 hex digits of a hash of the values as texts, each with its length, NULL told apart."""
    columns = [_texts(rows[name]) for name in names]
    identities = []
    for values in zip(*columns, strict=True):
        marked = "".join("-" if text is None else f"{len(text)}:{text}" for text in values)
        identities.append(hashlib.sha256(marked.encode()).hexdigest()[:16])
    return identities


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    """The values as Spark casts them to texts. Raises LocalUnsupportedError."""
    text_of = next((text for is_one, text in _TEXTS if is_one(column.type)), None)
    if text_of is None:
        raise LocalUnsupportedError(f"values of type {column.type} as texts")
    return [None if value is None else text_of(value) for value in column.to_pylist()]


def _text_of_double(value: float) -> str:
    if not abs(value) < PLAIN_DOUBLES or value != int(value) or (value == 0 and str(value) != "0.0"):
        raise LocalUnsupportedError("doubles that Java writes in its own way")
    return f"{int(value)}.0"


def _text_of_moment(value: datetime) -> str:
    return re.sub(r"(\.\d*?)0+$", r"\1", value.replace(tzinfo=None).isoformat(" "))


def _is_timestamp(kind: pa.DataType) -> bool:
    return bool(kind == pa.timestamp("us", "UTC"))


_TEXTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], str]], ...] = (
    (pa.types.is_string, str),
    (pa.types.is_integer, str),
    (pa.types.is_boolean, lambda value: str(value).lower()),
    (pa.types.is_date32, date.isoformat),
    (pa.types.is_float64, _text_of_double),
    (_is_timestamp, _text_of_moment),
)
