"""Rows of a source deleted in one commit, by their key or by a condition: the change feed shows each as a DELETE, and a
revision retracts what they had contributed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import Column
from pyspark.sql import functions as sf

from trendlake.cep_core.errors import Place, TextError, TrendlakeError
from trendlake.cep_core.events.schema import family
from trendlake.cep_core.expressions.advice import Advice, Adviser
from trendlake.cep_core.expressions.types import infer
from trendlake.cep_core.language.syntax import Attribute
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.row_conditions import parse_row_condition
from trendlake.pipelines.contracts.rules import Rule
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import DeliveryError, ProjectError
from trendlake.pipelines.ingest.commits import own_commit, writing_lake
from trendlake.pipelines.ingest.compare import key_of, keys_in_words
from trendlake.pipelines.ingest.existing_rows import rows_sharing
from trendlake.pipelines.ingest.readers.files import read_file
from trendlake.pipelines.ingest.write.here import Target, count_where_here, delete_here, delete_where_here
from trendlake.pipelines.lake.commits import commit_token
from trendlake.pipelines.lake.lake import Lake, exists, latest_version, read_at
from trendlake.pipelines.lake.road import NotHere, either, tried
from trendlake.pipelines.lake.versions import schema_of, table_id
from trendlake.pipelines.lake.warehouse import with_retries
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.rules.unique import exact_codes
from trendlake.pipelines.runs.basis import Basis
from trendlake.pipelines.runs.record import recorded
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.spark.frames import frame_of
from trendlake.pipelines.spark.identifiers import quoted


@dataclass(frozen=True)
class Selection:
    """The rows to delete: those that have one of `keys` (the columns of the key), or that keep `rule`.
    `advice`: what is rarely meant in the condition."""

    keys: pa.Table | None = None
    rule: Rule | None = None
    advice: tuple[Advice, ...] = ()


@dataclass(frozen=True)
class Deleted:
    """How many rows were deleted (or would be), the version that has them no more (or that was looked at), and the keys
    that were asked for and not found, in words."""

    rows: int
    version: int
    absent: str


def keys_in(file: Path, contract: Contract) -> Selection:
    """The keys in a file: of its columns, those of the key. Raises SourceFileError; ProjectError for a contract without
    a key; DeliveryError for a key that is NULL."""
    key = key_of(contract)
    if key is None:
        raise ProjectError(
            f"the contract of '{contract.name}' names no key: no column is unique",
            hint="say which rows with --where, or put `unique: true` to the column that tells them apart",
        )
    columns = tuple(item for item in contract.columns if item.name in {*key, *contract.id_columns})
    keys = read_file(file, replace(contract, columns=columns, rules=())).select(list(key))
    if len(key) == 1 and keys.column(0).null_count:
        raise DeliveryError(
            f"{plural(keys.column(0).null_count, 'row')} of {file} without {key[0]}", hint=f"--where '{key[0]} IS NULL'"
        )
    return Selection(keys=keys.group_by(list(key)).aggregate([]))


def rows_where(text: str, contract: Contract) -> Selection:
    """The rows for which a condition in the pattern language's expressions, over the contract's columns, is true.
    Raises ProjectError, with the place in the text."""
    families = {item.name: family(item.type) for item in contract.columns}

    def family_of(attribute: Attribute) -> str:
        if attribute.name not in families:
            start, end = attribute.span
            known = f"columns: {', '.join(families)}"
            raise TextError(f"'{contract.name}' has no column '{attribute.name}'", start, end - start, known)
        return families[attribute.name]

    try:
        condition = parse_row_condition(text)
        kind = infer(condition, family_of)
        if kind != "boolean":
            raise TextError("a condition is true or false", 0, len(text))
    except TextError as error:
        caret = f"{' ' * error.offset}{'^' * max(1, error.width)}"
        raise ProjectError(f"--where: {error.message}\n    {text}\n    {caret}", hint=error.hint) from None
    except TrendlakeError as error:
        raise ProjectError(f"--where: {error.message}", hint=error.hint) from None
    adviser = Adviser()
    adviser.look(condition, family_of, lambda span: Place("--where", 1, span[0] + 1, text, span[1] - span[0]))
    rule = Rule("where", "row", (), text=text, condition=condition)
    return Selection(rule=rule, advice=tuple(adviser.advice))


def find_rows(lake: Lake, contract: Contract, selection: Selection) -> Deleted:
    """The rows that `delete_rows` would delete now. Raises NotOursError, SourceMissingError, SourceSchemaError."""
    lake.warehouse.refuse_foreign(contract.name)
    path = lake.warehouse.source(contract.name)
    if not exists(lake, path):
        raise lake.warehouse.missing(contract.name)
    version = latest_version(lake, path)
    q.check_columns(schema_of(lake, path, version), contract)
    if selection.rule is not None:
        rule = selection.rule
        rows = either(
            lambda: count_where_here(lake, path, version, rule, contract),
            lambda: read_at(lake, path, version).where(q.is_good(rule)).count(),
        )
        return Deleted(rows, version, "")
    assert selection.keys is not None
    key = selection.keys.column_names
    there = rows_sharing(lake, path, version, selection.keys, key, key)
    both = pa.concat_tables([there, selection.keys.cast(there.schema)])
    codes = exact_codes(both, key)
    absent = selection.keys.filter(pa.array(~np.isin(codes[there.num_rows :], codes[: there.num_rows])))
    return Deleted(there.num_rows, version, keys_in_words(absent, key) if absent.num_rows else "")


def delete_rows(lake: Lake, contract: Contract, selection: Selection, run_id: str) -> Deleted:
    """Delete the rows in one commit; none where there are none. Raises as `find_rows`."""
    record = Record(run_id, None, "ingest", source=contract.name, rows_deleted=0)
    path = lake.warehouse.source(contract.name)

    def attempt() -> Deleted:
        selected = find_rows(lake, contract, selection)
        if not selected.rows:
            return selected
        token = commit_token(lake, path, run_id, "delete")
        own = partial(writing_lake, lake, token, selected.version, contract)
        target = Target(lake, token, path, selected.version, contract)
        if isinstance(tried(partial(_delete_here, target, selection)), NotHere):
            _delete_by_spark(own(), path, selection)
        commit = own_commit(lake, path, token)
        rows = commit.metric("numDeletedRows" if commit.operation == "DELETE" else "numTargetRowsDeleted")
        return replace(selected, rows=rows, version=commit.version)

    lake.warehouse.refuse_foreign(contract.name)
    with recorded(lake, record):
        done = with_retries(attempt, f"deleting rows of {contract.name}")
        record.rows_deleted, record.source_version = done.rows, done.version
        record.basis = Basis(
            contract.fingerprint,
            contract.lateness_us or 0,
            sources=Versions.one(done.version, table_id(lake, path, done.version)),
        )
    return done


def _delete_here(target: Target, selection: Selection) -> int:
    if selection.rule is not None:
        return delete_where_here(target, selection.rule)
    assert selection.keys is not None
    return delete_here(target, selection.keys)


def _delete_by_spark(lake: Lake, path: str, selection: Selection) -> None:
    table = DeltaTable.forPath(lake.spark, path)
    if selection.rule is not None:
        table.delete(q.is_good(selection.rule))
        return
    keys = selection.keys
    assert keys is not None
    same = [_side("t", name).eqNullSafe(_side("s", name)) for name in keys.column_names]
    table.alias("t").merge(frame_of(lake.spark, keys).alias("s"), _all(same)).whenMatchedDelete().execute()


def _side(side: str, name: str) -> Column:
    return sf.col(f"{side}.{quoted(name)}")


def _all(conditions: Sequence[Column]) -> Column:
    return reduce(lambda a, b: a & b, conditions)
