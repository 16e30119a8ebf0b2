"""The interval of a run that is given none: chosen by what is published and what the source has, and printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trendlake.jobs.actions.states import print_repairs
from trendlake.jobs.terminal.hints import command
from trendlake.jobs.terminal.lines import say
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.error_text import plural

if TYPE_CHECKING:
    from trendlake.pipelines.lake.lake import Lake
    from trendlake.pipelines.results.ledger import Publications
    from trendlake.pipelines.results.next_windows import NextWindows
    from trendlake.pipelines.runs.run import Run


@dataclass(frozen=True)
class Choice:
    """The choice for a pattern: `run`, None if there is nothing to run, which `reason` then explains; `backfill`: the
    command for the complete windows before it, if nothing is published."""

    run: Run | None
    reason: str | None = None
    backfill: str | None = None


@dataclass
class NextRuns:
    """Chooses the interval of each of several runs: the complete windows after the last published one."""

    publications: Publications
    choices: dict[str, Choice] = field(default_factory=dict)

    @classmethod
    def of(cls, place: Place, lake: Lake, names: Sequence[str]) -> NextRuns:
        from trendlake.pipelines.results.ledger import Publications

        return cls(Publications(lake, names))

    def choose(self, run: Run) -> Run | None:
        """The run of its interval, None if there is nothing to run; prints which windows these are. Raises
        SourceMissingError, StepOrderError, ProjectError."""
        from trendlake.pipelines.results.ledger import read_ledger
        from trendlake.pipelines.results.next_windows import next_windows
        from trendlake.pipelines.revision.repairs import repairs

        newest = run.newest()
        sources = run.known(newest)
        ledger = read_ledger(run.lake, run.name, run.plan, run.sources.name, self.publications)
        upcoming = next_windows(run, ledger, sources)
        if upcoming.windows:
            choice = _chosen(run, upcoming)
        else:
            choice = Choice(None, _reason(run, upcoming))
            say(f"{run.name}: nothing to run: {choice.reason}")
            states = [repair for repair in repairs(run, ledger, newest) if repair.state != "nothing_published"]
            print_repairs(run.name, states)
        self.choices[run.name] = choice
        return choice.run


def _chosen(run: Run, upcoming: NextWindows) -> Choice:
    from trendlake.pipelines.runs.intervals import options_of

    chosen, backfill = upcoming.of(run), None
    which = "after the last published one" if upcoming.published is not None else "the last complete one"
    say(f"{run.name}: {chosen.options}: {plural(len(upcoming.windows), 'window')}, {which}")
    if upcoming.before:
        interval = options_of(run.plan.windows, upcoming.before[0], upcoming.before[-1], run.times)
        backfill = command(f"backfill {run.typed} {interval}")
        say(f"{run.name}: {plural(len(upcoming.before), 'complete window')} before it: `{backfill}`")
    return Choice(chosen, backfill=backfill)


def _reason(run: Run, upcoming: NextWindows) -> str:
    from trendlake.pipelines.runs.intervals import interval_of

    if upcoming.reached is None:
        return f"'{run.sources.name}' has no event that keeps its contract"
    reached = f"'{run.sources.name}' reaches to {run.times.written(upcoming.reached)}"
    if run.lateness:
        reached += ", without the time that late events are waited for"
    if upcoming.published is None:
        return f"no window is complete yet: {reached}"
    end = interval_of(run.plan.windows, upcoming.published + 1, upcoming.published + 1)[1]
    return f"the window after the last published one ends at {run.times.written(end)}, and {reached}"


def document_of(choice: Choice) -> dict[str, Any]:
    """The keys about its interval in the document of a run."""
    from trendlake.cep_core.events.windows import moment

    run = choice.run
    start, end = (None, None) if run is None else (moment(run.start_us), moment(run.end_us))
    return {"from": start, "to": end, "nothing_to_run": choice.reason, "backfill": choice.backfill}
