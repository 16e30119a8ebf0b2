"""The good rows of reference tables at their pinned versions: the columns that the lookups of a run read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.derived import derive
from trendlake.cep_core.errors import NotSupportedError
from trendlake.cep_core.events.arrays import arrow
from trendlake.cep_core.events.lookup import VERSION, References, look_up
from trendlake.cep_core.events.schema import EventSchema, Lookup
from trendlake.pipelines.check import Check
from trendlake.pipelines.contracts.column_types import arrow_type
from trendlake.pipelines.contracts.contract import TYPE_COLUMN, Contract
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import read_at
from trendlake.pipelines.lake.road import either
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.rules.split import typed
from trendlake.pipelines.runs.events import all_parted
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.spark.columns import column

UNUSED = "lookup_unused"
"""The check that counts rows of a reference table that never hold."""


def reference_tables(runs: Sequence[Run], sources: Versions) -> References:
    """By name, with the columns that some of the runs read; none for runs without lookups. Raises NotSupportedError
    where a table is larger than each worker is to hold."""
    parts: dict[str, list[Run]] = {}
    for part in (part for run in runs for part in run.references):
        parts.setdefault(part.key, []).append(part)
    return References({name: _good_rows(mine, sources.at(name).version) for name, mine in parts.items()})


def _good_rows(parts: Sequence[Run], version: int) -> pa.Table:
    """Of the reference table of runs as of it (`Run.references`), read once: its rows have no order to be found again
    by. Raises as `reference_tables`."""
    part, *_ = parts
    stored = stored_columns(parts)
    rows = either(partial(_here, part, version, stored), partial(_by_spark, part, version, stored))
    return for_lookups(parts, rows, version)


def for_lookups(parts: Sequence[Run], good: pa.Table, version: int | None) -> pa.Table:
    """The columns that lookups read of the good rows of a table, which have `stored_columns`; `version`: the table's,
    for messages. Raises as `reference_tables`."""
    part, *_ = parts
    rows = with_columns(part.contract, good, columns_read(parts))
    if rows.nbytes > limits.REFERENCE_BYTES:
        size = f"{rows.nbytes >> 20} MB, more than {limits.REFERENCE_BYTES >> 20} MB"
        message = f"the columns of '{part.contract.name}' that lookups read are {size}"
        raise NotSupportedError(message, hint="join them to the events upstream")
    return rows.replace_schema_metadata(None if version is None else {VERSION: str(version)})


def with_columns(contract: Contract, rows: pa.Table, read: Sequence[str]) -> pa.Table:
    """The columns `read` of some rows of a table, also those that its contract derives."""
    derived = tuple(one for one in contract.derived if one.name in read)
    rows = typed(contract, TYPE_COLUMN, rows)
    rows = derive(rows, EventSchema({}, event_time=contract.event_time, derived=derived))
    return rows.select(list(read))


def unused_checks(run: Run, sources: Versions) -> Iterator[Check]:
    """For each lookup of the run the check that counts the rows that never hold. Raises LookupRepeatedError where two
    different rows of a table hold for one key at one moment, whichever keys the events have."""
    tables = reference_tables([run], sources)
    for lookup in run.plan.schema.lookups:
        refuse_repeated(run, lookup, tables)
        reference = tables.rows_of(lookup)
        observed = f"{lookup.name}: {plural(reference.unused, 'row')} of {lookup.table} without effect"
        data = {"lookup": lookup.name, "source": lookup.table, "rows": reference.unused}
        yield Check(UNUSED, True, observed, "rows with a key, and `valid_from` before `valid_to`", data=data)


def refuse_repeated(run: Run, lookup: Lookup, tables: Mapping[str, pa.Table]) -> None:
    """Raises LookupRepeatedError as a run over any events does, BadEventsError for keys that are not compared."""
    types = dict(run.plan.schema.columns)
    no_events = pa.schema([(name, arrow_type(types[name])) for name in lookup.reads]).empty_table()
    look_up(no_events, lookup, tables)


def columns_read(parts: Sequence[Run]) -> tuple[str, ...]:
    """Of one reference table, in the order of its contract, those that it derives last."""
    return columns_for(parts[0].key, parts[0].contract, *(part.plan for part in parts))


def columns_for(table: str, contract: Contract, *plans: AnyPlan) -> tuple[str, ...]:
    """The columns of a reference table that lookups of some plans read, in the order of its contract."""
    lookups = (one for plan in plans for one in plan.schema.lookups if one.table == table)
    read = {name for one in lookups for name in one.table_columns}
    return tuple(name for name in contract.columns_with_derived if name in read)


def stored_columns(parts: Sequence[Run]) -> list[str]:
    """Of one reference table the columns of the table that `columns_read` are made of."""
    contract, names = parts[0].contract, {*columns_read(parts)}
    for one in contract.derived:
        if one.name in names:
            names |= {contract.event_time, *one.reads}
    return [item.name for item in contract.columns if item.name in names]


def _here(part: Run, version: int, names: list[str]) -> pa.Table:
    table = table_here(part.lake, part.warehouse.source(part.contract.name), version)
    rows, parted = all_parted(part, table, limits.JUDGED)
    return rows.select(names).filter(arrow(parted.broken < 0)).combine_chunks()


def _by_spark(part: Run, version: int, names: list[str]) -> pa.Table:
    rows = read_at(part.lake, part.warehouse.source(part.contract.name), version)
    good = q.good_rows(q.annotate(rows, part.contract.rules))
    return good.select(*map(column, names)).toArrow().combine_chunks()
