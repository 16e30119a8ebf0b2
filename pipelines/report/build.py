"""`build_report`: read a run's facts from Delta and the pattern's file, write its page and its picture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from trendlake.cep_core import AnyPlan, draw
from trendlake.cep_core.errors import NotSupportedError
from trendlake.pipelines.lake.lake import Lake, exists
from trendlake.pipelines.report import chart
from trendlake.pipelines.report.database import spill_folder
from trendlake.pipelines.report.facts import ReportFacts, RunFacts
from trendlake.pipelines.report.on_clock import in_interval_of, on_clock
from trendlake.pipelines.report.places import Places, write_whole
from trendlake.pipelines.report.read_pattern import read_pattern
from trendlake.pipelines.report.read_quarantine import read_quarantine
from trendlake.pipelines.report.read_run import read_run
from trendlake.pipelines.report.read_windows import read_results
from trendlake.pipelines.report.render import render
from trendlake.pipelines.report.view import page


@dataclass(frozen=True)
class ReportPaths:
    """The files of a report."""

    html: Path
    png: Path


def build_report(
    lake: Lake, pattern: Path, run_id: str, out_dir: Path, plan: AnyPlan | None = None, run: RunFacts | None = None
) -> ReportPaths:
    """Write the report of run `run_id` of the pattern file `pattern` below `out_dir`, where `Places` says. It links to
    the pattern's own page, which `pipelines.site` makes.

    `plan`: the file's, where it still compiles; its automaton is shown if it is the one that the run has used. `run`:
    the facts of the run, where they have been read.
    The results are read at the version the run published, so a report made later shows what was true then.
    Raises RunNotFoundError when `trendlake_runs` knows no such run.
    """
    facts = read_facts(lake, pattern, run_id, plan, run)
    if plan is not None and plan.hash == facts.run.plan_hash:
        facts = replace(facts, automaton=drawn(plan, facts.pattern.name))
    return write_report(facts, out_dir)


def read_facts(
    lake: Lake, pattern: Path, run_id: str, plan: AnyPlan | None = None, run: RunFacts | None = None
) -> ReportFacts:
    """All that the page shows, from the pattern file, its plan and the warehouse's tables."""
    facts = read_pattern(pattern)
    run = run or read_run(lake, facts.name, run_id)
    source = run.source or facts.source
    results = lake.warehouse.results(facts.name)
    used = plan if plan is not None and plan.hash == run.plan_hash else None
    folder = spill_folder(lake.warehouse)
    published = read_results(lake, results, facts, run, used, folder) if exists(lake, results) else None
    return ReportFacts(
        pattern=facts,
        run=in_interval_of(run, facts.time_zone),
        quarantine=read_quarantine(lake, source, run),
        results=on_clock(published, facts.time_zone),
        made_at=datetime.now(UTC),
    )


def write_report(facts: ReportFacts, out_dir: Path) -> ReportPaths:
    """Write page and picture, each whole or not at all."""
    view = page(facts)
    places, of = Places(out_dir), (facts.pattern.name, facts.run.run_id)
    paths = ReportPaths(places.run(*of), places.picture(*of))
    write_whole(paths.png, chart.png(view.story.picture, view.story.takeaway, f"{view.heading} · {view.when}"))
    write_whole(paths.html, render(view).encode())
    return paths


def drawn(plan: AnyPlan, name: str) -> str:
    """The automaton, in the colours of the page; empty for kinds that have no picture."""
    try:
        return draw(plan, name, style=False)
    except NotSupportedError:
        return ""
