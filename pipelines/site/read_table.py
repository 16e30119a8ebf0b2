"""A source's table as its page shows it: columns, freshness, deliveries, and how its rows were judged.

All of it is read by this process, from statistics, the log and the run record, so that it takes no Spark and no time
that grows with the rows. The page says of the rest that it is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.events.names import same_name
from trendlake.cep_core.events.windows import moment
from trendlake.pipelines.contracts.contract import Column, Contract
from trendlake.pipelines.errors import RecordDamagedError
from trendlake.pipelines.ingest.commits import changes_rows
from trendlake.pipelines.ingest.deliver import is_whole
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.commit import Commit
from trendlake.pipelines.lake.commits import HISTORY, recent_commits
from trendlake.pipelines.lake.here.column_statistics import ColumnStatistics, statistics_of
from trendlake.pipelines.lake.here.read import TableHere, table_here
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import NotHere, tried
from trendlake.pipelines.quality.quarantine_counts import SET_APART
from trendlake.pipelines.report.words import stamp
from trendlake.pipelines.runs.consistency import EARLIEST, limit_of, newest_good
from trendlake.pipelines.runs.judged_version import JUDGES
from trendlake.pipelines.runs.record import SOURCES
from trendlake.pipelines.runs.stored_record import checks_in, sources_in
from trendlake.pipelines.site.freshness import OfContract
from trendlake.pipelines.site.source_facts import ColumnFacts, DeliveryFacts, JudgementFacts, TableFacts

DELIVERIES_SHOWN = 20
JUDGED_SHOWN = 12
"""Steps that have judged rows of a source."""
COLUMNS_SHOWN = 300
TEXT_BYTES = 60
"""Of a text that is a bound: files may cut it off after 64."""
STEPS = {"ingest": "Delivery", "delete": "Deletion", "replay": "Replay of quarantined rows"}
"""The writer of a commit, by the stage in its note."""
DAY = timedelta(days=1)


def read_table(lake: Lake, name: str, contract: Contract | None) -> TableFacts:
    """The table of the source `name`, as far as this process reads it."""
    declared = () if contract is None else contract.columns
    table = _table(lake, name)
    if isinstance(table, NotHere):
        absent = table is ABSENT
        return TableFacts(columns=_columns(declared, None, {}), absent=absent, unread="" if absent else table.reason)
    rows, names = tried(lambda: table.counted), table.schema.names[:COLUMNS_SHOWN]
    plain = [item for item in names if contract is None or item != contract.roles.get("document")]
    statistics = tried(lambda: statistics_of(table, plain))
    of_column = {} if isinstance(statistics, NotHere) else statistics
    time = contract.event_time if contract is not None else ""
    last = of_column.get(time, ColumnStatistics()).high
    return TableFacts(
        version=table.version,
        rows=None if isinstance(rows, NotHere) else rows,
        newest=None if contract is None or contract.is_reference else _newest(lake, contract, table),
        last=None if last is None else moment(last),
        columns=_columns(declared, table, of_column),
        unknown=statistics.reason if isinstance(statistics, NotHere) else "",
    )


ABSENT = NotHere("there is no table")


def _table(lake: Lake, name: str) -> TableHere | NotHere:
    """The newest version. Spark is not started for a table in another file system."""
    path = lake.warehouse.source(name)
    if lake.needs_spark_for(path):
        return NotHere(f"it takes Spark to look for it at {path}")

    def read() -> TableHere | NotHere:
        folder = lake.on_disk(path)
        if folder is not None and not (folder / "_delta_log").is_dir():
            return ABSENT
        return table_here(lake, path)

    return tried(read)


def _newest(lake: Lake, contract: Contract, table: TableHere) -> datetime | None:
    """The event time that a run goes by; None where it takes more than this process reads."""
    source = OfContract(lake, contract)
    with suppress(TrendlakeError):  # of a table that is not as its contract says, or has no time that counts
        newest = tried(lambda: newest_good(source, table.version, (EARLIEST, limit_of(source, table.version) + 1)))
        return None if isinstance(newest, NotHere) or newest is None else moment(newest)
    return None


def _columns(
    declared: Sequence[Column], table: TableHere | None, of_column: Mapping[str, ColumnStatistics]
) -> tuple[ColumnFacts, ...]:
    """Those of the contract in its order, then others of the table."""
    stored = {} if table is None else {same_name(field.name): field for field in table.schema.fields}
    columns = []
    for column in declared[:COLUMNS_SHOWN]:
        field, apart = stored.pop(same_name(column.name), None), ""
        if table is not None and field is None:
            apart = "not in the table"
        elif field is not None and field.dataType.simpleString() != column.type:
            apart = f"{field.dataType.simpleString()} in the table"
        kind = f"{column.type}{', required' if column.required else ''}"
        columns.append(_column(column.name, kind, column.description, apart, of_column, field))
    for field in [*stored.values()][: COLUMNS_SHOWN - len(columns)]:
        apart = "not in the contract" if declared else ""
        columns.append(_column(field.name, field.dataType.simpleString(), "", apart, of_column, field))
    return tuple(columns)


def _column(
    name: str, kind: str, about: str, apart: str, of_column: Mapping[str, ColumnStatistics], field: Any
) -> ColumnFacts:
    facts = ColumnFacts(name, kind, about, apart=apart)
    statistics = None if field is None else of_column.get(field.name)
    if statistics is None:
        return facts
    text = _texts(field.dataType.typeName())
    return ColumnFacts(
        name, kind, about, statistics.nulls, statistics.bounded, text(statistics.low), text(statistics.high), apart
    )


def _texts(kind: str) -> Callable[[Any], str]:
    """The text of a bound of a column of this type of Spark; empty for None."""

    def text(value: Any) -> str:
        if value is None:
            return ""
        if kind in ("timestamp", "timestamp_ntz"):
            return stamp(moment(value))
        if kind == "date":
            return _day(value)
        if isinstance(value, str):
            cut = value.encode()[:TEXT_BYTES].decode(errors="ignore")
            return value if cut == value else f"{cut}…"
        if isinstance(value, bool):
            return str(value).lower()
        return f"{value:,}" if isinstance(value, int) else str(value)

    return text


def _day(days: int) -> str:
    try:
        day = date(1970, 1, 1) + days * DAY
    except OverflowError:
        return f"{days:,} days after 1 Jan 1970"
    return f"{day.day} {day:%b} {day.year}"


def read_deliveries(
    lake: Lake, name: str, delivered: Mapping[str, int | None]
) -> tuple[tuple[DeliveryFacts, ...], bool]:
    """The newest commits that have changed rows of a table that this process reads, and whether the log has more.
    `delivered`: the rows that came in each run of an ingest, by its id."""
    if isinstance(_table(lake, name), NotHere):
        return (), False
    commits = recent_commits(lake, lake.warehouse.source(name))
    deliveries = [_delivery(commit) for commit in commits if changes_rows(commit) and _speaks_of_rows(commit)]
    of_run = Counter(delivery.run_id for delivery in deliveries)
    shown = tuple(
        _with_rows(delivery, delivered.get(delivery.run_id)) if of_run[delivery.run_id] == 1 else delivery
        for delivery in deliveries[:DELIVERIES_SHOWN]
    )
    return shown, len(deliveries) > len(shown) or len(commits) == HISTORY


def _with_rows(delivery: DeliveryFacts, rows: int | None) -> DeliveryFacts:
    return DeliveryFacts(**{**vars(delivery), "rows": rows})


def _speaks_of_rows(commit: Commit) -> bool:
    """Whether it is a change of rows: else it makes the table, or alters its form."""
    return commit.operation in ("WRITE", "MERGE", "DELETE", "UPDATE", "STREAMING UPDATE") or bool(
        commit.note.get("stage") in STEPS
    )


def _delivery(commit: Commit) -> DeliveryFacts:
    note = commit.note
    stage, number = str(note.get("stage", "")), note.get("delivery")
    return DeliveryFacts(
        version=commit.version,
        at=commit.at,
        by=STEPS.get(stage) or f"Another program: {commit.operation or 'an unnamed operation'}",
        run_id=str(note.get("run_id", "")),
        feed="" if number is None else f"{note.get('feed', '')}, number {number}",
        changed=_changed(commit),
        whole=is_whole(note) or (commit.operation == "WRITE" and commit.parameters.get("mode") == "Overwrite"),
    )


def _changed(commit: Commit) -> tuple[int | None, int | None, int | None]:
    """Rows inserted, updated, deleted, by what the operation counts."""
    if commit.operation == "DELETE":
        return 0, 0, _metric(commit, "numDeletedRows", "num_deleted_rows")
    if commit.operation == "UPDATE":
        return 0, _metric(commit, "numUpdatedRows", "num_updated_rows"), 0
    if commit.operation in ("WRITE", "STREAMING UPDATE"):
        return _metric(commit, "numOutputRows"), 0, 0
    return commit.changed if commit.operation == "MERGE" else (None, None, None)


def _metric(commit: Commit, *names: str) -> int | None:
    return next((int(commit.metrics[name]) for name in names if name in commit.metrics), None)


def read_judgements(lake: Lake, names: Sequence[str]) -> dict[str, tuple[JudgementFacts, ...]] | None:
    """The newest steps that have judged rows of each of the sources `names`, the newest last. The run record is read
    twice, however many sources there are. None where this process does not read it."""
    path = lake.warehouse.runs
    if lake.needs_spark_for(path):
        return None
    folder = tried(lambda: lake.on_disk(path))
    if isinstance(folder, Path) and not (folder / "_delta_log").is_dir():
        return {}  # no step has been recorded yet
    runs = tried(lambda: table_here(lake, path))
    if isinstance(runs, NotHere):
        return None
    judgements = tried(lambda: _judgements(runs, names))
    return None if isinstance(judgements, NotHere) else judgements


Row = dict[str, Any]


def _judgements(runs: TableHere, names: Sequence[str]) -> dict[str, tuple[JudgementFacts, ...]]:
    """Raises NotHereError."""
    others = ("run_id", "pattern", "source", "finished_at", "rows_quarantined", SOURCES)
    asked = ["stage", *(name for name in others if name in runs.schema.names)]
    narrow = runs.rows_with(asked, pa.array(JUDGES, pa.string()), limits.NARROW_RECORDS)
    newest: dict[str, list[Row]] = {name: [] for name in names}
    for row in sorted(narrow.to_pylist(), key=lambda row: str(row.get("finished_at") or ""), reverse=True):
        for name in _judged(row) if row["rows_quarantined"] is not None else ():
            if name in newest and len(newest[name]) < JUDGED_SHOWN:
                newest[name].append(row)
    ids = sorted({row["run_id"] for rows in newest.values() for row in rows if row["run_id"] is not None})
    if not ids:
        return dict.fromkeys(names, ())
    wanted = ("stage", "pattern", "source", "finished_at", "rows_in", "rows_quarantined", "checks", SOURCES)
    there = ["run_id", *(name for name in wanted if name in runs.schema.names)]
    records = runs.rows_with(there, pa.array(ids, pa.string()), limits.RECORDS).to_pylist()
    wide = {_place(row): dict.fromkeys(wanted) | row for row in records}
    return {
        name: tuple(_judgement(name, wide[_place(row)]) for row in reversed(rows) if _place(row) in wide)
        for name, rows in newest.items()
    }


def _judged(row: Row) -> list[str]:
    """The tables whose rows a step has judged: of a pattern that looks columns up, also those of `sources`."""
    names = dict.fromkeys(str(row.get("source") or "").split(","))
    with suppress(RecordDamagedError):
        names |= dict.fromkeys(sources_in(row) or {})
    return list(names)


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("run_id", "stage", "pattern", "source", "finished_at"))


def _judgement(name: str, row: Row) -> JudgementFacts:
    """Of several tables the part of this one; a damaged record says that rows were judged, and no more."""
    counts: Mapping[str, Any] = {}
    if row["source"] == name:
        counts = {"rows_in": row["rows_in"], "quarantined": row["rows_quarantined"]}
    apart: Mapping[str, Any] = {}
    with suppress(RecordDamagedError):
        counts = {**counts, **(sources_in(row) or {}).get(name, {})}
        about = [check.data for check in checks_in(row) if check.name == SET_APART]
        own = name if row["source"] == name else None
        apart = next((data for data in about if data.get("source", own) == name), {})
    rules = apart.get("rules")
    return JudgementFacts(
        by={"ingest": "Delivery", "revise": "Revision"}.get(row["stage"], "Run"),
        pattern=row["pattern"] or "",
        run_id=row["run_id"] or "",
        at=row["finished_at"],
        rows=_count(counts.get("rows_in")),
        broken=_count(apart.get("rows", counts.get("quarantined"))),
        rules={str(key): count for key, value in rules.items() if (count := _count(value)) is not None}
        if isinstance(rules, Mapping)
        else None,
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) else None
