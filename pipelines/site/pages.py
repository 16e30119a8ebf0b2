"""From facts to HTML: the page of a pattern, and that of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from markupsafe import Markup

from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.rule_text import expected_of
from trendlake.pipelines.error_text import plural, several
from trendlake.pipelines.lake.warehouse import folder_name
from trendlake.pipelines.report.amounts import text
from trendlake.pipelines.report.chart import NARROW, WIDE, Size, svg
from trendlake.pipelines.report.facts import CheckFacts, Measure, PatternFacts, RunFacts
from trendlake.pipelines.report.picture import Picture
from trendlake.pipelines.report.places import Places
from trendlake.pipelines.report.render import rendered
from trendlake.pipelines.report.story import begin_with, most_of, noun
from trendlake.pipelines.report.tables import LargestRow, Number, largest_rows, number, text_columns
from trendlake.pipelines.report.verdict import SOURCE_STAGES, State, Verdict, outcome
from trendlake.pipelines.report.view import Figure, definition, headed
from trendlake.pipelines.report.words import duration, interval_label, stamp, upper_first
from trendlake.pipelines.site.cards import freshness_words, range_label
from trendlake.pipelines.site.charts import Heat, cost, heat, totals_picture
from trendlake.pipelines.site.facts import Card, ChangeFacts, OverviewFacts, PatternPageFacts, ShownFacts
from trendlake.pipelines.site.graph import Graph
from trendlake.pipelines.site.graph_page import rows_of
from trendlake.pipelines.site.line import line_svg

CHECKS_SHOWN = 200
"""Of those that all runs have kept."""
RULES_SHOWN = 60


@dataclass(frozen=True)
class RunRow:
    """A run in the table; `href` is empty where it has no page."""

    run_id: str
    href: str
    revision: bool
    interval: str
    at: str
    verdict: Verdict
    source_version: int | None
    results_version: int | None
    rows_in: int | None
    rows_out: int | None
    changed: str
    took: str


@dataclass(frozen=True)
class CheckRow:
    """A check over the last runs: of each the state and what it says, None where the run has not made it."""

    check: str
    column: str
    cells: tuple[tuple[State, str] | None, ...]

    @property
    def unbroken(self) -> bool:
        """Whether no run has found it broken."""
        return all(cell is None or cell[0] in ("good", "none") for cell in self.cells)


@dataclass(frozen=True)
class ChartView:
    """A measure over time."""

    name: str
    takeaway: str
    caption: str
    wide: Markup
    narrow: Markup


@dataclass(frozen=True)
class ResultsView:
    """The results in words and pictures: of each measure a chart."""

    charts: tuple[ChartView, ...]
    heat: Heat | None
    heat_note: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class RowsView:
    """A table of result rows with all measures. The last `ids` of them name events; `texts`: those that are no
    numbers."""

    heading: str
    note: str
    group_columns: tuple[str, ...]
    row_times: str
    measures: tuple[str, ...]
    ids: int
    texts: frozenset[str]
    rows: tuple[LargestRow, ...]


def pattern_page(facts: PatternPageFacts) -> str:
    """The HTML of a pattern's page."""
    heading, lead = headed(facts.pattern)
    runs = facts.runs.runs
    rows, judged = _check_rows(runs[: facts.runs.judged])
    fresh_state, fresh, fresh_note = freshness_words(facts.fresh)
    return rendered(
        "pattern.html.j2",
        facts.made_at,
        facts.automaton,
        facts=facts,
        pattern=facts.pattern,
        heading=heading,
        lead=lead,
        definition=definition(facts.pattern),
        last=_run_row(runs[0], facts) if runs else None,
        fresh=(fresh_state, fresh, fresh_note),
        results=_results(facts),
        shown=_shown(facts),
        newest=_newest(facts),
        downloads=[(file.suffix[1:], file.name) for file in Places(Path()).rows(facts.pattern.name)],
        runs=[_run_row(run, facts) for run in runs],
        cost=cost(runs),
        broken=[row for row in rows if not row.unbroken],
        unbroken=[row for row in rows if row.unbroken][:CHECKS_SHOWN],
        checks=len(rows),
        judged=judged,
        sources=[_source(name, contract) for name, contract in facts.contracts.items()],
        docs_href=f"checks/{folder_name(facts.docs.run_id)}.html" if facts.docs.there else "",
        why=change_words,
    )


def index_page(cards: Sequence[Card], graph: Graph, made_at: datetime) -> str:
    """The HTML of the page of all patterns: those that need looking at first; and of all tables in `graph`."""
    urgent = {"bad": 0, "warn": 1, "none": 3}
    ordered = sorted(cards, key=lambda c: (min(urgent.get(c.state, 2), urgent.get(c.fresh_state, 2)), c.name))
    counts = [
        ("failed or wrong", sum(card.state == "bad" for card in cards)),
        ("behind their source", sum(card.fresh_state == "warn" for card in cards)),
        ("up to date", sum(card.state != "bad" and card.fresh_state == "good" for card in cards)),
    ]
    tables = rows_of(graph, [node for node in graph.nodes if node.sort != "pattern"])
    return rendered("index.html.j2", made_at, cards=ordered, counts=counts, run_href=_run_href, tables=tables)


def _run_href(name: str, run_id: str) -> str:
    return f"{name}/runs/{folder_name(run_id)}.html"


def _run_row(run: RunFacts, facts: PatternPageFacts) -> RunRow:
    there = run.run_id in facts.pages
    published = run.stage("publish") or run.stage("revise")
    changed = ""
    if published and published.rows_inserted is not None:
        changed = f"{published.rows_inserted:,} / {published.rows_updated:,} / {published.rows_deleted:,}"
    known = run.interval_from is not None and run.interval_to is not None
    return RunRow(
        run_id=run.run_id,
        href=f"runs/{folder_name(run.run_id)}.html" if there else "",
        revision=run.stage("revise") is not None,
        interval=interval_label(run.interval_from, run.interval_to) if known else "–",  # type: ignore[arg-type]
        at=_at(run),
        verdict=facts.verdicts[run.run_id],
        source_version=run.source_version,
        results_version=run.results_version,
        rows_in=run.rows_read,
        rows_out=run.rows_out,
        changed=changed,
        took=duration(sum(stage.seconds or 0.0 for stage in run.stages)),
    )


def _results(facts: PatternPageFacts) -> ResultsView | None:
    overview = facts.overview
    if overview is None:
        return None
    what = noun(facts.pattern, overview.measure.name)
    drawn = heat(overview)
    most = max(overview.totals, key=lambda point: point.amount.order)
    figures = [
        Figure("Result rows", Number(f"{overview.rows:,}"), range_label(overview)),
        Figure(f"{upper_first(several(overview.unit))} with results", Number(f"{overview.windows:,}")),
    ]
    if overview.group_columns:
        by = "by " + ", ".join(overview.group_columns)
        figures.append(Figure("Groups", Number(f"{overview.group_count:,}"), by))
    first = begin_with(what, facts.pattern)
    label = f"{first} in the busiest {overview.unit}" if overview.measure.is_count else f"Largest {what}"
    figures.insert(0, Figure(label, number(most.amount), interval_label(most.window.start, most.window.end)))
    others = [replace(overview, measure=one.measure, totals=one.points) for one in overview.others]
    return ResultsView(
        charts=(_chart(facts.pattern, overview, svg), *(_chart(facts.pattern, one, line_svg) for one in others)),
        heat=drawn,
        heat_note=_heat_note(overview, what),
        figures=tuple(figures),
    )


def _chart(pattern: PatternFacts, overview: OverviewFacts, lines: Callable[[Picture, Size], str]) -> ChartView:
    """Of the measure of the overview, and its totals. `lines`: draws a picture of lines."""
    what = noun(pattern, overview.measure.name)
    first = what if overview.measure.own else begin_with(what, pattern)
    picture, most = totals_picture(overview, what), max(overview.totals, key=lambda point: point.amount.order)
    draw = lines if picture.form == "lines" else svg
    return ChartView(
        name=first,
        takeaway=f"{first} over time: at most {text(most.amount)} in one {overview.unit}",
        caption=_caption(overview, first, picture.log),
        wide=Markup(draw(picture, WIDE)),
        narrow=Markup(draw(picture, NARROW)),
    )


def _shown(facts: PatternPageFacts) -> RowsView | None:
    """The rows of `trendlake show`."""
    shown = facts.shown
    if shown is None or not shown.rows:
        return None
    if shown.which == "latest":
        return None  # they are the newest
    every = len(shown.rows) == shown.total
    which = f"All {plural(shown.total, 'row')}" if every else f"The {len(shown.rows)} {shown.which} of"
    note = f"{which}, the {shown.which} first." if every else f"{which} {plural(shown.total, 'row')}."
    most = most_of(noun(facts.pattern, shown.ranked), Measure(shown.ranked, True))
    return _rows(f"Rows with {most}", note, shown, facts.pattern)


def _newest(facts: PatternPageFacts) -> RowsView | None:
    if facts.newest is None or not facts.newest.shown.rows:
        return None
    shown = facts.newest.shown
    note = "Every row" if len(shown.rows) == shown.total else f"{len(shown.rows):,} of {plural(shown.total, 'row')}"
    return _rows("Newest rows", f"{note}, the newest first.", shown, facts.pattern)


def _rows(heading: str, note: str, shown: ShownFacts, pattern: PatternFacts) -> RowsView:
    trends = pattern.kind == "trends"
    return RowsView(
        heading,
        note,
        shown.group_columns,
        "Window" if trends else "From – to",
        shown.measures,
        len(shown.ids),
        text_columns(shown.rows),
        largest_rows(shown.rows, shown.measures, events=not trends),
    )


def _caption(overview: OverviewFacts, what: str, log: bool) -> str:
    together = ", all groups together" if overview.group_count > 1 else ""
    if not overview.measure.is_count:
        of = "rows" if overview.unit != "window" else "groups" if overview.group_count > 1 else ""
        together = f", the largest of all {of}" if of else ""
    sentences = [f"{what} per {overview.unit}{together}."]
    if overview.bucket_seconds:
        sentences.append(
            f"{plural(overview.windows, overview.unit)}: "
            f"each point is the largest of {duration(overview.bucket_seconds)}."
        )
    if log:
        sentences.append("Logarithmic axis.")
    if overview.earlier_rows:
        was = "was" if overview.earlier_rows == 1 else "were"
        sentences.append(
            f"{plural(overview.earlier_rows, 'row')} of it {was} computed by an earlier form of the pattern."
        )
    return " ".join(sentences)


def _heat_note(overview: OverviewFacts, what: str) -> str:
    shown = len(overview.groups)
    which = (
        f"The {shown} groups with the largest {several(overview.unit)}, of {overview.group_count:,}; "
        f"{plural(overview.group_count - shown, 'group')} left out"
        if shown < overview.group_count
        else f"All {plural(shown, 'group')}"
    )
    length = overview.heat_seconds
    cell = f"the largest {overview.unit} of {duration(length)}" if length else f"a {overview.unit}"
    return f"{which}. A cell is {cell}: its {what}."


def _check_rows(runs: Sequence[RunFacts]) -> tuple[list[CheckRow], list[tuple[str, str]]]:
    """The checks of the runs that have made any; and those runs, the oldest first, as (run id, when)."""
    shown = [run for run in reversed(runs) if run.checks]
    cells_of: dict[tuple[bool, str, str], dict[str, tuple[State, str]]] = {}
    for run in shown:
        for check in run.checks:
            key = (check.stage in SOURCE_STAGES, check.check, check.column or "")  # a revision makes the results' too
            cells_of.setdefault(key, {})[run.run_id] = _cell(check, run)
    rows = [
        CheckRow(check, column, tuple(cells.get(run.run_id) for run in shown))
        for (_, check, column), cells in cells_of.items()
    ]
    return rows, [(run.run_id, _at(run)) for run in shown]


def _at(run: RunFacts) -> str:
    return stamp(run.finished_at.replace(microsecond=0)) if run.finished_at else "–"


def _cell(check: CheckFacts, run: RunFacts) -> tuple[State, str]:
    state, word = outcome(check, run)
    return state, "\n".join(part for part in (word, check.observed, f"run {run.run_id}") if part)


@dataclass(frozen=True)
class SourceText:
    """A table that a pattern reads. `contract`: None where it cannot be read; `rules`: name, columns, what is asked,
    what happens to a row that breaks it; `rules_left`: how many more there are; `lateness`: in words."""

    name: str
    contract: Contract | None
    rules: list[tuple[str, str, str, str]]
    rules_left: int
    lateness: str


def _source(name: str, contract: Contract | None) -> SourceText:
    if contract is None:
        return SourceText(name, None, [], 0, "")
    rules = [
        (rule.name, ", ".join(rule.columns), expected_of(rule), "quarantined" if rule.quarantines else "recorded")
        for rule in contract.rules[:RULES_SHOWN]
    ]
    late = "not said" if contract.lateness_us is None else f"up to {duration(contract.lateness_us / 1e6)}"
    return SourceText(name, contract, rules, max(0, len(contract.rules) - RULES_SHOWN), late)


def change_words(change: ChangeFacts) -> str:
    """The author of a change, in words."""
    return {"revise": "Revision", "publish": "Run"}.get(change.stage, change.stage.capitalize() or "Commit")
