"""From facts to what the page says: strings are made here and in `story`, the template only lays them out."""

from __future__ import annotations

from dataclasses import dataclass

from trendlake.pipelines.error_text import plural, several
from trendlake.pipelines.report.amounts import Amount, percent
from trendlake.pipelines.report.facts import PatternFacts, ReportFacts
from trendlake.pipelines.report.story import Story, begin_with, noun, tell
from trendlake.pipelines.report.tables import Number, number
from trendlake.pipelines.report.verdict import Verdict, verdict
from trendlake.pipelines.report.words import duration, interval_label, upper_first

LONGEST_HEADING = 72


@dataclass(frozen=True)
class Figure:
    """A key figure of the first screen."""

    label: str
    number: Number
    note: str = ""


@dataclass(frozen=True)
class Page:
    """The page; its quality and origin parts are laid out from `facts` directly."""

    facts: ReportFacts
    heading: str
    lead: str
    when: str
    verdict: Verdict
    definition: tuple[tuple[str, tuple[str, ...]], ...]
    figures: tuple[Figure, ...]
    story: Story


def page(facts: ReportFacts) -> Page:
    """The page of a run."""
    run = facts.run
    when = (
        interval_label(run.interval_from, run.interval_to) if run.interval_from and run.interval_to else "All history"
    )
    heading, lead = headed(facts.pattern)
    return Page(
        facts=facts,
        heading=heading,
        lead=lead,
        when=when,
        verdict=verdict(run, facts.quarantine.rows),
        definition=definition(facts.pattern),
        figures=_figures(facts),
        story=tell(facts),
    )


def headed(pattern: PatternFacts) -> tuple[str, str]:
    """Headline and lead: the description where it is short enough to be read at a glance, else the name above it."""
    said = pattern.description
    if said and len(said) <= LONGEST_HEADING and ". " not in said:
        return said.rstrip("."), ""
    return upper_first(pattern.name.replace("_", " ")), said


def definition(pattern: PatternFacts) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The definition of the pattern, as labels and values."""
    slides = f"every {pattern.slide}" if pattern.slide and pattern.slide != pattern.within else ""
    window = f"{pattern.within or ''} {slides}".strip()
    entries = (
        ("Pattern", (pattern.pattern,) if pattern.pattern else ()),
        ("Where", pattern.where),
        ("Per", pattern.group_by),
        ("Window" if pattern.kind == "trends" else "Within", (window,) if window else ()),
        ("Time zone", (pattern.time_zone,) if pattern.time_zone else ()),
    )
    return tuple((label, values) for label, values in entries if values)


def _figures(facts: ReportFacts) -> tuple[Figure, ...]:
    run, results = facts.run, facts.results
    figures: list[Figure] = []
    if results is not None:
        what = noun(facts.pattern, results.measure.name)
        if results.additive:
            label = begin_with(what, facts.pattern)
        elif results.measure.is_count:
            label = f"{begin_with(what, facts.pattern)} in the busiest window"
        else:
            label = f"Largest {what}"
        zero = Amount(0) if results.measure.is_count else Amount(None)
        figures.append(Figure(label, number(results.headline if results.headline.is_known else zero)))
        if results.group_columns:
            figures.append(Figure("Groups", Number(f"{results.groups:,}"), "by " + ", ".join(results.group_columns)))
        windows = max(results.windows, results.units or run.windows or 0)
        having = f"{'all' if windows == results.windows else f'{results.windows:,}'} with {what}"
        figures.append(
            Figure(upper_first(several(results.unit)), Number(f"{windows:,}"), having if windows > 1 else "")
        )
    read = run.rows_read
    if read is not None:
        figures.append(
            Figure("Rows read", Number(f"{read:,}"), f"from {run.source.replace(',', ', ')}" if run.source else "")
        )
    part = percent(facts.quarantine.rows / read) + " of rows read" if read else ""
    figures.append(
        Figure("Quarantined", Number(f"{facts.quarantine.rows:,}"), part if facts.quarantine.rows else "no rows")
    )
    seconds = [stage.seconds for stage in run.stages if stage.seconds is not None and stage.stage != "ingest"]
    figures.append(
        Figure("Run time", Number(duration(sum(seconds) if seconds else None)), plural(len(run.stages), "stage"))
    )
    return tuple(figures)
