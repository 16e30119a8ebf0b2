"""How far a pattern's published windows reach, compared with its source as it is now."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.windows import moment
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.errors import StepOrderError
from trendlake.pipelines.lake.lake import Lake, exists, latest_version
from trendlake.pipelines.lake.road import NotHere, tried
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.lake.versions import table_id
from trendlake.pipelines.results.coverage import slice_of
from trendlake.pipelines.results.ledger import Publications, read_ledger
from trendlake.pipelines.revision.scope import backfills, gaps_of, other_forms
from trendlake.pipelines.runs.consistency import EARLIEST, limit_of, newest_good
from trendlake.pipelines.runs.intervals import LocalTimes
from trendlake.pipelines.site.facts import FreshFacts, SourceFacts


def read_source(lake: Lake, name: str, contract: Contract | None) -> SourceFacts:
    """The source's table now."""
    path = lake.warehouse.source(name)
    if not name or "," in name or not exists(lake, path):  # of several tables `FreshFacts` names the versions
        return SourceFacts(name)
    version = latest_version(lake, path)
    table_now = table_id(lake, path, version)
    if contract is None:
        return SourceFacts(name, version, table_id=table_now)
    newest = _newest(OfContract(lake, contract), path, version)
    return SourceFacts(name, version, None if newest is None else moment(newest), table_now)


@dataclass(frozen=True)
class OfContract:
    """An `OfSource` without a run."""

    lake: Lake
    contract: Contract


def _newest(source: OfContract, path: str, version: int) -> int | None:
    """The event time, microseconds, that a run goes by: the last of a good event that is not too far ahead. Where more
    is to be read than this process reads, the last of all; None where no row has one."""
    with suppress(StepOrderError):
        newest = tried(lambda: newest_good(source, version, (EARLIEST, limit_of(source, version) + 1)))
        if not isinstance(newest, NotHere):
            return newest
    return Table.at(source.lake, path, version).extent(source.contract.event_time)[2]


def read_freshness(
    lake: Lake,
    name: str,
    plan: AnyPlan | None,
    source: SourceFacts,
    publications: Publications | None = None,
    typed: str = "",
    times: LocalTimes = LocalTimes(),  # noqa: B008 - frozen
) -> FreshFacts:
    """The versions that the pattern's publications claim, window by window; nothing where it does not compile.
    `publications`: those recorded, where they have been read; `typed`: the word for the pattern on the command line,
    its name by default; `times`: how times of the pattern are written there."""
    typed = typed or name
    if plan is None:
        return FreshFacts(source, typed=typed)
    segments = read_ledger(lake, name, plan, source.name, publications).segments
    tables = () if plan.schema.tables is None else plan.schema.tables.tables
    shown = [(segment, segment.sources) for segment in segments if segment.sources is not None]
    versions = [read.version for _, read in shown if read.version is not None]
    last = max((segment.last for segment, _ in shown), default=None)
    return FreshFacts(
        source,
        oldest=min(versions, default=None),
        newest=max(versions, default=None),
        until=None if last is None else moment(_end(plan, last)),
        due=None if last is None else moment(_end(plan, last + 1)),
        several=tuple(dict.fromkeys(str(read) for _, read in shown if read.named)),
        present=" ".join(f"{table.name}@{_at(lake, table.name)}" for table in tables),
        held_back=len(shown) < len(segments),
        source_tables=tuple(dict.fromkeys(read.table_id for _, read in shown if not read.named)),
        other_form=bool(other_forms(plan, segments)),
        typed=typed,
        backfills=tuple(command for _, command in backfills(plan.windows, typed, other_forms(plan, segments), times)),
        gaps=tuple(command for _, command in backfills(plan.windows, typed, gaps_of(segments), times)),
    )


def _at(lake: Lake, name: str) -> int | str:
    path = lake.warehouse.source(name)
    return latest_version(lake, path) if exists(lake, path) else "none"


def _end(plan: AnyPlan, window: int) -> int:
    """Of a window's time; of one that reaches over all history, of the results that are its own."""
    return slice_of(plan, window, window)[1] if plan.windows.endless else plan.windows.end(window)
