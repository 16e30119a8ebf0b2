"""The results part of the page: what the picture shows, in words, and the tables under it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trendlake.pipelines.error_text import plural, several
from trendlake.pipelines.report.amounts import percent, text
from trendlake.pipelines.report.facts import Measure, PatternFacts, ReportFacts, ResultFacts, RunFacts
from trendlake.pipelines.report.picture import Picture, picture
from trendlake.pipelines.report.tables import (
    GroupRow,
    LargestRow,
    WindowRow,
    group_rows,
    has_sparks,
    largest_rows,
    share_of,
    shown_of,
    text_columns,
    window_rows,
)
from trendlake.pipelines.report.words import duration, group_label, upper_first


@dataclass(frozen=True)
class Story:
    """Takeaway, caption and alternative text of the picture, and the tables with their headings and notes."""

    takeaway: str
    caption: str
    picture: Picture
    group_columns: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    ids: int = 0
    """How many of `measures`, the last ones, name events."""
    texts: frozenset[str] = frozenset()
    """Those of `measures` that are no numbers."""
    group_heading: str = ""
    groups: tuple[GroupRow, ...] = ()
    groups_note: str = ""
    shares: bool = False
    spark_heading: str = ""
    windows_heading: str = ""
    window_heading: str = ""
    windows: tuple[WindowRow, ...] = ()
    windows_note: str = ""
    largest: tuple[LargestRow, ...] = ()
    largest_heading: str = ""
    largest_note: str = ""
    unit: str = "window"
    row_times: str = "Window"

    @property
    def alt(self) -> str:
        """The text for a reader who cannot see the picture."""
        return f"{self.takeaway}. {self.caption} The tables below give the numbers."


def tell(facts: ReportFacts) -> Story:
    """The story of a run's results."""
    results, run = facts.results, facts.run
    what = noun(facts.pattern, None if results is None else results.measure.name)
    drawn = picture(results, _begin(facts), what)
    if results is None:
        return Story("No results have been published yet", "", drawn)
    since = _since(results)
    counted = results.unit != "window"
    one = begin_with(what, facts.pattern) if results.measure.is_count else f"Largest {what}"
    most = most_of(what, results.measure)
    return Story(
        takeaway=_takeaway(results, run, what),
        caption=_caption(facts, results, drawn, what),
        picture=drawn,
        group_columns=results.group_columns,
        measures=results.measures,
        ids=len(results.ids),
        texts=text_columns(results.largest),
        group_heading="Peak window" if results.measure.is_count and not results.additive else one,
        groups=group_rows(results, drawn.log),
        groups_note=_groups_note(results),
        shares=results.additive,
        spark_heading=upper_first(since) if has_sparks(results) else "",
        windows_heading=f"{upper_first(several(results.unit))} with {most}",
        window_heading=one,
        windows=window_rows(results, _begin(facts)),
        windows_note=shown_of("busiest", len(results.busiest), results.span_windows, results.unit, since),
        largest=largest_rows(results.largest, results.measures, events=counted),
        largest_heading=f"Longest {what}" if counted else f"Rows with {most}",
        largest_note=shown_of(
            "longest" if counted else "largest", len(results.largest), results.rows, "result row", "of this interval"
        ),
        unit=results.unit,
        row_times="From – to" if counted else "Window",
    )


def _begin(facts: ReportFacts) -> datetime | None:
    """Where the run's own windows begin."""
    own = None if facts.results is None else facts.results.since
    return facts.run.interval_from if own is None else own


def noun(pattern: PatternFacts, measure: str | None) -> str:
    """The noun for the chart's numbers: the measure's own name; found patterns where rows are counted."""
    if pattern.kind == "xml_join":
        return "answers"
    return measure or (pattern.kind if pattern.kind in ("trends", "matches") else "rows")


def begin_with(what: str, pattern: PatternFacts) -> str:
    """`what` as the first word of a sentence: with a capital, unless it is a name that the pattern's author gave."""
    return what if what in pattern.returns else upper_first(what)


def most_of(what: str, measure: Measure) -> str:
    """`the most runs`, `the largest mean`: of what rows are ranked by."""
    return f"the {'most' if measure.is_count else 'largest'} {what}"


def _held(results: ResultFacts) -> str:
    """`5 windows`; of stretches, how many there are in all."""
    if results.units is None or results.units <= results.windows:
        return plural(results.windows, results.unit)
    return f"{results.windows:,} of {plural(results.units, results.unit)}"


def _since(results: ResultFacts) -> str:
    if results.windows == results.span_windows or results.span_from is None:
        return "over this interval"
    return f"since {results.span_from.day} {results.span_from:%b %Y}"


def _takeaway(results: ResultFacts, run: RunFacts, what: str) -> str:
    if results.rows == 0:
        return f"No {what} in this interval" if run.results_version is not None else f"This run published no {what}"
    amount = text(results.headline)
    if not results.group_columns:
        held = _held(results) if results.additive else "the largest window"
        return f"{amount} {what} in {held}"
    leader = results.top_groups[0]
    name, most = group_label(leader.key, results.group_columns), text(leader.amount)
    if results.groups == 1 and results.additive:
        return f"{name}: {amount} {what}"
    if not results.additive:
        return f"{name} peaks highest, with {most} {what} in one window"
    return f"{name} leads with {most} {what}, {percent(share_of(leader.amount, results))} of all"


def _caption(facts: ReportFacts, results: ResultFacts, drawn: Picture, what: str) -> str:
    run = facts.run
    if drawn.form == "nothing":
        return "Nothing in this interval matched the pattern." if run.results_version is not None else ""
    by_group = f" by {', '.join(results.group_columns)}" if results.group_columns else ""
    sentences = [
        f"{begin_with(what, facts.pattern)} per {results.unit}{by_group}, times in {facts.pattern.time_zone or 'UTC'}."
    ]
    if drawn.log:
        sentences.append("Logarithmic axis.")
    if results.bucket_seconds:
        sentences.append(f"Each point is the largest {results.unit} of {duration(results.bucket_seconds)}.")
    if drawn.band:
        sentences.append("The shaded part is this run, the rest was published before.")
    elif results.rows == 0:
        sentences.append("Drawn is what was published for the time before.")
    if results.older_rows:
        older = plural(results.older_rows, "row")
        sentences.append(f"Left out: {older} computed by another state of this pattern.")
    if run.results_version is None:
        sentences.append("This run has published nothing: the rows shown existed before.")
    if any(mark.value is None for series in drawn.series for mark in series.marks):
        sentences.append(f"Where a line breaks there were no {what}.")
    return " ".join(sentences)


def _groups_note(results: ResultFacts) -> str:
    shown = shown_of("largest", len(results.top_groups), results.groups, "group", "of this interval")
    if results.additive or not results.measure.is_count:
        return shown
    return f"{shown}. Windows overlap, so groups are ranked by their largest window, not by a sum."
