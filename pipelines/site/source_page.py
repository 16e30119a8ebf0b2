"""From facts to HTML: the page of a source or reference table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.rule_text import expected_of
from trendlake.pipelines.contracts.time_formats import TimeFormat
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.report.render import rendered
from trendlake.pipelines.report.tables import Number
from trendlake.pipelines.report.verdict import State
from trendlake.pipelines.report.view import Figure
from trendlake.pipelines.report.words import duration, stamp
from trendlake.pipelines.site.graph import Graph, Node
from trendlake.pipelines.site.source_facts import (
    ColumnFacts,
    DeliveryFacts,
    JudgementFacts,
    SourcePageFacts,
    TableFacts,
)

RULES_SHOWN = 100
NOT_KNOWN = "not known"


@dataclass(frozen=True)
class ColumnRow:
    """A column in the table: all of it as texts. `note`: how files write it, and what differs from the table."""

    name: str
    type: str
    nulls: str
    low: str
    high: str
    about: str
    note: str


@dataclass(frozen=True)
class RuleRow:
    """A rule: `asks`, `then` empty of one that the contract no longer has. `broken`: rows that broke it first, for each
    step that has judged; None where its record does not say it."""

    name: str
    columns: str
    asks: str
    then: str
    broken: tuple[int | None, ...]


@dataclass(frozen=True)
class JudgementRow:
    """A step that has judged rows."""

    number: int
    by: str
    run_id: str
    at: str
    rows: int | None
    broken: int | None


def source_page(facts: SourcePageFacts, graph: Graph) -> str:
    """The HTML of the page. `graph`: says which patterns read the table."""
    node, contract = graph.by_key.get(facts.name), facts.contract
    judgements = facts.judgements or ()
    rules = _rules(contract, judgements)
    return rendered(
        "source.html.j2",
        facts.made_at,
        source=facts,
        what=node.what if node is not None else "source",
        contract=contract,
        state=_state(facts),
        freshness=freshness(facts),
        figures=_figures(facts),
        columns=[_column(column, facts.table, contract) for column in facts.table.columns],
        rules=rules[:RULES_SHOWN],
        rules_left=max(0, len(rules) - RULES_SHOWN),
        judgements=[_judgement(at, one) for at, one in enumerate(judgements, start=1)],
        deliveries=facts.deliveries,
        words=delivery_words,
        readers=_readers(facts.name, graph),
        lateness="" if contract is None else _lateness(contract),
    )


def _readers(name: str, graph: Graph) -> list[tuple[Node, str]]:
    return graph.readers(name) if name in graph.by_key else []


def _state(facts: SourcePageFacts) -> tuple[State, str, str]:
    """The state of the table in a few words, and the rest of it: whether the rows that were judged last kept the
    contract."""
    table = facts.table
    if facts.mistake:
        return "bad", "The contract has a mistake", ""
    if table.absent:
        return "none", "No table yet", ""
    if table.unread:
        return "none", "Not read for this page", f"The table is not read for this page: {table.unread}."
    newest = facts.judgements[-1] if facts.judgements else None
    if newest is None:
        return "none", "Not judged yet", "No step has judged its rows by the contract."
    broken = "none" if not newest.broken else f"{newest.broken:,}"
    of = "" if newest.rows is None else f" of {plural(newest.rows, 'row')}"
    word = "Contract broken" if newest.broken else "Contract kept"
    return "warn" if newest.broken else "good", word, f"The step that judged last found that {broken}{of} broke it."


def freshness(facts: SourcePageFacts) -> str:
    """How fresh the table is, in sentences."""
    table = facts.table
    if table.version is None:
        return ""
    said, now = [], facts.made_at
    last = facts.deliveries[0] if facts.deliveries else None
    if facts.contract is not None and not facts.contract.is_reference:
        said.append(_newest_event(table, now))
    if last is None or last.at is None:
        said.append("The log names no delivery of rows.")
    else:
        at = last.at.replace(microsecond=0)
        said.append(
            f"The last change of its rows came on {stamp(at)} UTC, {_ago(now, at)}, and made version {last.version}."
        )
    return " ".join(said)


def _newest_event(table: TableFacts, now: datetime) -> str:
    newest = table.newest if table.newest is not None else table.last
    if newest is None:
        return "No row has an event time." if table.rows == 0 else "The newest event time is not known."
    at = newest.replace(microsecond=0)
    if table.newest is None:
        return f"The newest event time of all rows is {stamp(at)} UTC, {_ago(now, at)}."
    said = f"Its newest event is of {stamp(at)} UTC, {_ago(now, at)}."
    if table.last is not None and table.last > newest:
        late = stamp(table.last.replace(microsecond=0))
        said += f" A row of {late} UTC does not count: it breaks the contract or is too far ahead."
    return said


def _ago(now: datetime, at: datetime) -> str:
    """How long before the page was made."""
    seconds = (now - at).total_seconds()
    if seconds < 0:
        return f"{duration(-seconds)} after this page was made"
    return f"{duration(seconds)} before this page was made"


def _figures(facts: SourcePageFacts) -> list[Figure]:
    table = facts.table
    if table.version is None:
        return []
    figures = [Figure("Rows", Number(_rows(table)), f"version {table.version}")]
    figures.append(Figure("Columns", Number(f"{len(table.columns):,}")))
    judged = [one for one in facts.judgements or () if one.broken is not None]
    if judged:
        newest = judged[-1]
        of = "" if newest.rows is None else f"of {newest.rows:,} that were judged last"
        figures.append(Figure("Rows that broke the contract", Number(f"{newest.broken:,}"), of))
    return figures


def _rows(table: TableFacts) -> str:
    return NOT_KNOWN if table.rows is None else f"{table.rows:,}"


def _column(column: ColumnFacts, table: TableFacts, contract: Contract | None) -> ColumnRow:
    low, high = (column.low or "–", column.high or "–") if column.bounded else (NOT_KNOWN, NOT_KNOWN)
    if column.apart == "not in the table" or table.version is None:
        low = high = "–"
    notes = [column.apart]
    if contract is not None:
        notes += [role for role, name in contract.roles.items() if name == column.name]
        notes.append(_written(contract.time_formats.get(column.name)))
    return ColumnRow(
        column.name, column.type, _nulls(column, table), low, high, column.about, "; ".join(filter(None, notes))
    )


def _written(written: TimeFormat | None) -> str:
    """How files write the times of a column."""
    if written is None:
        return ""
    zone = "" if written.is_unix or written.states_offset else f" in {written.zone}"
    return f"files write {written.format}{zone}"


def _nulls(column: ColumnFacts, table: TableFacts) -> str:
    """The share of NULL."""
    if table.version is None or column.apart == "not in the table":
        return "–"
    if column.nulls is None or table.rows is None:
        return NOT_KNOWN
    if not column.nulls:
        return "none"
    if column.nulls == table.rows:
        return "all"
    share = 100 * column.nulls / table.rows
    return f"{share:.3g} %" if 0.001 <= share <= 99.999 else f"{column.nulls:,} of {table.rows:,}"


def _rules(contract: Contract | None, judgements: Sequence[JudgementFacts]) -> list[RuleRow]:
    """Those of the contract, in its order, then those that only records name."""

    def broken(name: str) -> tuple[int | None, ...]:
        return tuple(None if one.rules is None else one.rules.get(name, 0) for one in judgements)

    rules = () if contract is None else contract.rules
    rows = [
        RuleRow(
            rule.name,
            ", ".join(rule.columns),
            expected_of(rule),
            "quarantined" if rule.quarantines else "recorded",
            broken(rule.name) if rule.quarantines else (None,) * len(judgements),
        )
        for rule in rules
    ]
    known = {rule.name for rule in rules}
    gone = sorted({name for one in judgements for name in one.rules or () if name not in known})
    return rows + [RuleRow(name, "", "", "", broken(name)) for name in gone]


def _judgement(number: int, one: JudgementFacts) -> JudgementRow:
    by = f"{one.by} of {one.pattern}" if one.pattern else one.by
    at = "–" if one.at is None else stamp(one.at.replace(microsecond=0))
    return JudgementRow(number, by, one.run_id, at, one.rows, one.broken)


def _lateness(contract: Contract) -> str:
    return "not said" if contract.lateness_us is None else f"up to {duration(contract.lateness_us / 1e6)}"


def delivery_words(delivery: DeliveryFacts) -> tuple[str, str, str]:
    """Rows inserted, updated, deleted, in words."""
    inserted, updated, deleted = ("–" if count is None else f"{count:,}" for count in delivery.changed)
    return inserted, updated, "all before" if delivery.whole else deleted
