"""The facts of a source's page: plain values. Times are UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from trendlake.pipelines.contracts.contract import Contract


@dataclass(frozen=True)
class ColumnFacts:
    """A column of the contract, of the table, or both (`apart`: why it is not in both, or of two types). `nulls`: rows
    that have NULL, None where that is not known. `low`, `high`: the least and the greatest value as texts, empty where
    no row has one; `bounded`: whether they are known."""

    name: str
    type: str
    about: str = ""
    nulls: int | None = None
    bounded: bool = False
    low: str = ""
    high: str = ""
    apart: str = ""


@dataclass(frozen=True)
class DeliveryFacts:
    """A commit that changed rows, of the table's `version`. `by`: who made it, in words; `feed`: the deliveries that it
    is one of; `changed`: rows inserted, updated, deleted, each None where the commit does not say it; `whole`: whether
    its rows took the place of all others; `rows`: those of the file or files of its run, where it is its run's only
    one."""

    version: int
    at: datetime | None
    by: str
    run_id: str
    feed: str
    changed: tuple[int | None, int | None, int | None]
    whole: bool
    rows: int | None = None


@dataclass(frozen=True)
class JudgementFacts:
    """A step that has judged rows by the contract: a delivery, or a run or revision of `pattern`. `broken`: how many of
    `rows` broke it, by the rule that each broke first in `rules`; None where the record does not say that."""

    by: str
    pattern: str
    run_id: str
    at: datetime | None
    rows: int | None
    broken: int | None
    rules: Mapping[str, int] | None


@dataclass(frozen=True)
class TableFacts:
    """A source's table now, as this process reads it. `absent`: there is none; `unread`: why it is not read; then only
    the contract's part of `columns` is known. `newest`: the last event time that counts; `last`: of all rows;
    `unknown`: why NULLs and bounds are not known."""

    version: int | None = None
    rows: int | None = None
    newest: datetime | None = None
    last: datetime | None = None
    columns: tuple[ColumnFacts, ...] = ()
    absent: bool = False
    unread: str = ""
    unknown: str = ""


@dataclass(frozen=True)
class SourcePageFacts:
    """All that a source's page says. `contract`: None of one that has a `mistake`; `place`: of a table that other
    programs write; `deliveries`: the newest of those that the log has, the newest first; `judgements`: the newest
    last, None where the run record cannot be read here."""

    name: str
    file: str
    contract: Contract | None
    mistake: str
    place: str
    table: TableFacts
    deliveries: tuple[DeliveryFacts, ...]
    more_deliveries: bool
    judgements: tuple[JudgementFacts, ...] | None
    made_at: datetime
