"""Ingestion: deliveries of raw events into a source's Delta table, each one commit, each once.

A delivery is compared with the table by the contract's key (`pipelines.ingest.compare`): rows that the table has
already are skipped, new rows are appended, and a known key with other values is a correction, which replaces the row
where the contract says `corrections: replace`, and refuses the delivery where it does not.

A reference table may also be replaced: the rows of one delivery take the place of all that it has, as a dump of each
night does.

Rows land as they came, those that break the contract too: each run that reads them splits them off, by the contract in
force. Ingestion judges what it takes as well, writes the broken rows to the quarantine and reports them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from trendlake.cep_core.events.arrays import arrow, repeated
from trendlake.cep_core.events.names import same_name
from trendlake.pipelines.contracts.column_names import name_fault, usable_name
from trendlake.pipelines.contracts.column_types import arrow_type
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import DeliveryError, ProjectError, SourceSchemaError
from trendlake.pipelines.ingest.commits import changes_rows, own_commit, writing_lake
from trendlake.pipelines.ingest.compare import Compared, compare, key_of, keys_in_words, without_repeats
from trendlake.pipelines.ingest.existing_rows import rows_sharing
from trendlake.pipelines.ingest.small_files import put_together
from trendlake.pipelines.ingest.stored_ids import refuse_other_ids
from trendlake.pipelines.ingest.typed_rows import typed, typed_table
from trendlake.pipelines.ingest.write.here import Target, append_here, merge_here, replace_here
from trendlake.pipelines.ingest.write.spark import append_by_spark, replace_by_spark, write_by_spark
from trendlake.pipelines.lake.commit import Commit
from trendlake.pipelines.lake.commits import commit_token, find_commit, known_commits
from trendlake.pipelines.lake.create import FED, create_table
from trendlake.pipelines.lake.lake import Lake, exists, latest_version
from trendlake.pipelines.lake.road import Road, Roads
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.lake.versions import schema_of, table_id
from trendlake.pipelines.lake.warehouse import with_retries
from trendlake.pipelines.progress import doing
from trendlake.pipelines.project.profile import Limits
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.quality.quarantine import check_columns
from trendlake.pipelines.quality.quarantine_counts import Broken
from trendlake.pipelines.rules.split import split_alone
from trendlake.pipelines.runs.basis import Basis
from trendlake.pipelines.runs.record import recorded
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.spark.frames import frame_of

BY_ROWS = Roads(Limits())
WHOLE = "whole"
"""Key of the note of a commit that replaces all rows of a table."""


@dataclass(frozen=True)
class Taken:
    """The outcome of a delivery of `rows` rows: how many are new, replace a row, are known already, are older than the
    row in the table. `broken`: those of the rows taken that break the contract. `again`: the delivery was written
    before, and its rows were not compared. `in_place_of`: how many rows the table had before all of them were
    replaced; None where they were not."""

    rows: int
    new: int = 0
    replaced: int = 0
    there: int = 0
    older: int = 0
    broken: Broken = field(default_factory=Broken)
    again: bool = False
    in_place_of: int | None = None

    def __add__(self, other: Taken) -> Taken:
        """Of two deliveries; there already, where both were."""
        return Taken(
            self.rows + other.rows,
            self.new + other.new,
            self.replaced + other.replaced,
            self.there + other.there,
            self.older + other.older,
            self.broken + other.broken,
            (self.again or not self.rows) and other.again,
        )


Progress = Callable[[int, Taken], None]
"""Called after a delivery with its number from 1 and what became of it."""


def create_source(lake: Lake, path: str, contract: Contract) -> None:
    """The source's table by its contract, where it is not there: change feed on."""
    if exists(lake, path):
        return
    columns = []
    for item in contract.columns:
        if (fault := name_fault(item.name, merged=True)) is not None:
            raise SourceSchemaError(f"{contract.file}: {fault}", hint=f"rename it, such as {usable_name(item.name)}")
        about = {"comment": item.description} if item.description else None
        columns.append(StructField(item.name, from_arrow_type(arrow_type(item.type)), metadata=about))
    schema = StructType(columns)
    create_table(lake, path, schema, FED, f"creating source {contract.name}")


def ingest(
    lake: Lake,
    contract: Contract,
    deliveries: Iterable[pa.Table],
    *,
    feed: str,
    run_id: str,
    progress: Progress | None = None,
    again: bool = False,
    whole: bool = False,
    roads: Roads = BY_ROWS,
) -> Record:
    """Bring the deliveries into the table, in their order; one that an earlier run has written is skipped (with
    `again`, it is compared like any other).

    `feed` names the sequence of deliveries: number n of a feed is written once, whatever becomes of the process that
    writes it. `feed` must change when the deliveries do. `whole`: the rows of the one delivery take the
    place of all rows of a reference table; it is skipped where the table is as it has left it. `roads`: where rows may
    be written.
    Raises SourceSchemaError; DeliveryError, and nothing of that delivery is written; NotOursError for a table that
    other programs write; ProjectError for events that are to be replaced.
    """
    if whole and not contract.is_reference:
        raise ProjectError(
            f"'{contract.name}' has events, and --replace is for reference tables",
            hint=f"`trendlake ingest {contract.name} FILE` adds rows; with `corrections: replace` in the contract each "
            "takes the place of the row with its key",
        )
    lake.warehouse.refuse_foreign(contract.name)
    path = lake.warehouse.source(contract.name)
    record = Record(run_id, None, "ingest", source=contract.name)
    with recorded(lake, record):
        create_source(lake, path, contract)
        schema = schema_of(lake, path)
        check_columns(schema, contract)
        refuse_other_ids(lake, path, latest_version(lake, path), contract)
        writer = _Writer(lake, path, tuple(schema.names), contract, feed, record, roads, whole, delivered(lake, path))
        broken = Broken()
        record.rows_in = record.rows_inserted = record.rows_updated = 0
        try:
            for number, delivery in enumerate(deliveries, start=1):
                with doing(f"delivery {number}: {plural(delivery.num_rows, 'row')}", asked=lambda: lake.tasks):
                    taken = writer.take(delivery, number, again=again)
                record.rows_in += taken.rows
                record.rows_inserted += taken.new
                record.rows_updated += taken.replaced
                if taken.in_place_of is not None:
                    record.rows_deleted = taken.in_place_of
                broken += taken.broken
                if progress:
                    progress(number, taken)
        finally:
            writer.write_quarantine(lake.warehouse.quarantine(contract.name))
        record.rows_quarantined = broken.rows
        record.checks = [broken.check()]
        record.source_version = latest_version(lake, path)
        record.basis = Basis(
            contract.fingerprint,
            contract.lateness_us or 0,
            sources=Versions.one(record.source_version, table_id(lake, path, record.source_version)),
        )
        _note_extent(lake, path, contract, record)
    return record


def delivered(lake: Lake, path: str) -> set[tuple[str, int]]:
    """The deliveries in the table's history: feed and number; none from before all rows were replaced."""
    notes = [commit.note for commit in known_commits(lake, path)]
    last = next((at for at, note in enumerate(notes) if is_whole(note)), len(notes))
    return {(note["feed"], note["delivery"]) for note in notes[: last + 1] if "delivery" in note}


def is_whole(note: Mapping[str, Any]) -> bool:
    """Whether it is the note of a delivery that has replaced all rows."""
    return "delivery" in note and note.get(WHOLE) is True


def feeds(lake: Lake, path: str) -> set[str]:
    """The feeds whose deliveries are in the table's history; none where there is no table."""
    return {feed for feed, _ in delivered(lake, path)} if exists(lake, path) else set()


@dataclass
class _Writer:
    lake: Lake
    path: str
    columns: tuple[str, ...]
    contract: Contract
    feed: str
    record: Record
    roads: Roads
    whole: bool
    deliveries: set[tuple[str, int]]
    """Deliveries in the table's history."""
    bad: list[tuple[pa.Table, int]] = field(default_factory=list)
    """Broken rows that were taken, with the version that has them."""

    def take(self, delivery: pa.Table, number: int, *, again: bool) -> Taken:
        """One delivery, in one commit. Raises DeliveryError."""
        rows = self._typed(delivery)
        attempts = 0

        def attempt() -> tuple[Taken, pa.Table, int | None]:
            nonlocal attempts
            attempts += 1
            if attempts > 1:  # another writer came first: perhaps with this delivery
                self.deliveries = delivered(self.lake, self.path)
            if not again and self._written_before(number):
                return Taken(rows.num_rows, there=rows.num_rows, again=True), rows.slice(0, 0), None
            return self._once(rows, number)

        taken, fresh, version = with_retries(attempt, f"ingesting into {self.contract.name}")
        if version is None:
            return taken
        put_together(self.lake, self.path, self.contract, self.record.run_id)
        broken = split_alone(fresh.combine_chunks(), self.contract).broken
        bad = broken >= 0
        if bad.any():
            self.bad.append((fresh.filter(arrow(bad)), version))
        return replace(taken, broken=Broken(Counter(self.contract.rules[at].name for at in broken[bad].tolist())))

    def _once(self, rows: pa.Table, number: int) -> tuple[Taken, pa.Table, int | None]:
        """One attempt: what became of the rows, those that were written, and the version that holds them. Raises
        CONFLICTS where another writer came first."""
        if self.whole:
            return self._replace(rows, number)
        key, version = key_of(self.contract), latest_version(self.lake, self.path)
        token = commit_token(self.lake, self.path, self.record.run_id, "ingest", feed=self.feed, delivery=number)
        if key is None:
            commit = self._append_unkeyed(rows, token, number)
            if not commit.in_history:  # the history has it no more, but Delta knows its number
                return Taken(rows.num_rows, there=rows.num_rows, again=True), rows.slice(0, 0), None
            return Taken(rows.num_rows, new=rows.num_rows), rows, commit.version
        sequence = self.contract.roles.get("sequence")
        single, repeats, lower = without_repeats(rows, key, sequence, self._good)
        table = rows_sharing(self.lake, self.path, version, single, key, rows.column_names)
        comparison = compare(single, table, key, sequence, self._good)
        if comparison.corrections.num_rows and not self.contract.replaces:
            raise self._refused(comparison, key)
        target = Target(self.lake, token, self.path, version, self.contract)
        _, road = self.roads.take(
            f"writing {self.contract.name}",
            partial(_write_here, target, comparison, key),
            lambda: write_by_spark(
                writing_lake(self.lake, token, version, self.contract), self.path, comparison, table, key, self.contract
            ),
        )
        self.record.took(road)
        commit = own_commit(self.lake, self.path, token)
        taken = Taken(
            rows.num_rows,
            comparison.new.num_rows,
            comparison.corrections.num_rows,
            comparison.there + repeats,
            comparison.older + lower,
        )
        return taken, pa.concat_tables([comparison.new, comparison.corrections]), commit.version

    def _written_before(self, number: int) -> bool:
        """Whether the delivery is in the table: of one that is to be the whole table, whether it is."""
        if not self.whole:
            return (self.feed, number) in self.deliveries
        commits = known_commits(self.lake, self.path)
        last: Mapping[str, Any] = next((commit.note for commit in commits if changes_rows(commit)), {})
        return is_whole(last) and (last["feed"], last["delivery"]) == (self.feed, number)

    def _replace(self, rows: pa.Table, number: int) -> tuple[Taken, pa.Table, int | None]:
        """As `_once`, of rows that take the place of all others."""
        version, key = latest_version(self.lake, self.path), key_of(self.contract)
        about = {"feed": self.feed, "delivery": number, WHOLE: True}
        token = commit_token(self.lake, self.path, self.record.run_id, "ingest", **about)
        before = Table.at(self.lake, self.path, version).row_count
        single, repeats, lower = rows, 0, 0
        if key is not None:
            single, repeats, lower = without_repeats(rows, key, self.contract.roles.get("sequence"), self._good)
        if before and not single.num_rows:
            raise DeliveryError(
                f"the delivery has no row, and '{self.contract.name}' has {before:,}: nothing was written",
                hint=f"to empty the table: `trendlake source delete {self.contract.name} --where '1 = 1'`",
            )
        target = Target(self.lake, token, self.path, version, self.contract)
        _, road = self.roads.take(
            f"writing {self.contract.name}",
            partial(replace_here, target, single),
            lambda: replace_by_spark(
                writing_lake(self.lake, token, version, self.contract), self.path, single, self.contract
            ),
        )
        self.record.took(road)
        commit = own_commit(self.lake, self.path, token)
        taken = Taken(rows.num_rows, single.num_rows, there=repeats, older=lower, in_place_of=before)
        return taken, single, commit.version

    def _append_unkeyed(self, rows: pa.Table, token: str, number: int) -> Commit:
        """One commit; the feed's transaction keeps it single, whatever the history has lost."""
        reason = self.roads.always_spark or "a source without a key"
        self.roads.refuse(f"writing {self.contract.name}", reason)
        self.record.took(Road("spark", reason))
        own = writing_lake(self.lake, token, None, self.contract)
        frame = typed(frame_of(own.spark, rows), self.contract)
        append_by_spark(own, self.path, frame, txnAppId=self._application(), txnVersion=number)
        return find_commit(self.lake, self.path, token)

    def _application(self) -> str:
        """The feed's own since all rows were replaced: what it had written before is gone."""
        versions = (commit.version for commit in known_commits(self.lake, self.path) if is_whole(commit.note))
        last = next(versions, None)
        return f"ingest {self.feed}" if last is None else f"ingest {self.feed} after {last}"

    def _typed(self, delivery: pa.Table) -> pa.Table:
        there = {same_name(name) for name in self.columns}
        unknown = [name for name in delivery.column_names if same_name(name) not in there]
        if unknown:
            raise SourceSchemaError(
                f"the delivery has columns that the table '{self.contract.name}' lacks: {', '.join(unknown)}",
                hint=f"leave them out of the delivery; the contract ({self.contract.file}) names the table's columns",
            )
        return typed_table(self.lake, delivery, self.contract)

    def _good(self, rows: pa.Table) -> Any:
        return split_alone(rows.combine_chunks(), self.contract).broken < 0

    def write_quarantine(self, path: str) -> None:
        """The broken rows of all deliveries, in one commit."""
        if not self.bad:
            return
        versions = [repeated(version, rows.num_rows) for rows, version in self.bad]
        rows = pa.concat_tables([rows for rows, _ in self.bad]).combine_chunks()
        newest = max(version for _, version in self.bad)
        bad = split_alone(rows, self.contract).with_reasons(self.contract, np.arange(rows.num_rows), rows)
        bad = bad.append_column("source_version", pa.chunked_array(versions))
        write = partial(q.append_quarantine, self.lake, bad)
        key = f"ingest {self.contract.fingerprint}"
        with_retries(
            lambda: write(path, run_id=self.record.run_id, source_version=newest, key=key), "writing the quarantine"
        )

    def _refused(self, comparison: Compared, key: tuple[str, ...]) -> DeliveryError:
        count = comparison.corrections.num_rows
        are = "row of the delivery has" if count == 1 else "rows of the delivery have"
        return DeliveryError(
            f"{count:,} {are} a key that is in '{self.contract.name}' with other values: "
            f"{keys_in_words(comparison.corrections, key)}; nothing was written",
            hint="to replace those rows, put {property: corrections, value: replace} into the customProperties of the "
            f"table in {self.contract.file}; to keep them, leave these rows out of the file",
        )


def _write_here(target: Target, comparison: Compared, key: Sequence[str]) -> None:
    """Raises NotHereError and CONFLICTS."""
    corrections = comparison.corrections
    if corrections.num_rows:
        merge_here(target, corrections.select(key), corrections, comparison.new)
    else:
        append_here(target, comparison.new)


def _note_extent(lake: Lake, path: str, contract: Contract, record: Record) -> None:
    table = Table.at(lake, path, record.source_version)
    if contract.is_reference:
        record.rows_out = table.row_count
        return
    record.rows_out, record.interval_from, record.interval_to = table.extent(contract.event_time)
