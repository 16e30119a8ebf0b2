"""The charts of a pattern's page: totals over time, a heat map of groups, seconds by stage over runs. No markup
here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from trendlake.cep_core.events.windows import shifted
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.report.amounts import Amount, text
from trendlake.pipelines.report.bins import WEEK, Unit, apart, number_of
from trendlake.pipelines.report.facts import Point, RunFacts, Window
from trendlake.pipelines.report.picture import Mark, Picture, Series, log_ticks, needs_log, time_ticks
from trendlake.pipelines.report.verdict import stage_name
from trendlake.pipelines.report.words import day, duration, group_label, stamp, window_label
from trendlake.pipelines.site.facts import GroupFacts, OverviewFacts

FAINTEST = 0.14
"""Of a cell that has something, however little."""
COST_RUNS = 40
STAGE_ROLES = {
    "check_source": "series4",
    "compute": "series1",
    "check_results": "series3",
    "publish": "series2",
    "revise": "series6",
}


@dataclass(frozen=True)
class HeatRow:
    """A group: its label, its peak in words, and for each column (shade from 0 to 1, what it says), None where it has
    no row."""

    label: str
    peak: str
    cells: tuple[tuple[float, str] | None, ...]


@dataclass(frozen=True)
class Heat:
    """`ticks`: the labels under the first, the middle and the last column. `key`: what the shades mean."""

    rows: tuple[HeatRow, ...]
    columns: int
    ticks: tuple[str, ...]
    key: str


@dataclass(frozen=True)
class CostBar:
    """A run: its stages as (role of the colour, height in percent of the dearest run)."""

    label: str
    parts: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Cost:
    """Bars in order of time; `stages`: (role, name) of those that occur; `top`: what the highest bar took."""

    bars: tuple[CostBar, ...]
    stages: tuple[tuple[str, str], ...]
    top: str


def totals_picture(facts: OverviewFacts, what: str) -> Picture:
    """One line over all that is published; a bar where that is one window."""
    amounts = [point.amount for point in facts.totals]
    log = facts.measure.is_count and needs_log(amounts)
    one = len(facts.totals) == 1
    label = what if facts.group_count < 2 else f"{what}, all groups" if facts.measure.is_count else f"largest {what}"
    return Picture(
        form="bars" if one else "lines",
        series=(Series(window_label(facts.totals[0].window) if one else label, "series1", _marks(facts, log)),),
        log=log,
        ticks=log_ticks(amounts, from_one=one) if log else time_ticks(amounts),
        whole=facts.measure.is_count,
        daily=facts.step_seconds >= 86_400,
        weekly=facts.unit != "window" and facts.step_seconds >= WEEK,
        band=None,
    )


def _marks(facts: OverviewFacts, log: bool) -> tuple[Mark, ...]:
    marks: list[Mark] = []
    step = timedelta(seconds=facts.bucket_seconds or facts.step_seconds)
    before: Window | None = None
    for point in facts.totals:
        if before is not None and apart(before.start, point.window.start, facts.bucket_seconds, facts.step_seconds):
            marks.append(Mark(shifted(before.start, step), None, "", ""))
        value = point.amount.log10 if log else point.amount.exact
        shown = text(point.amount)
        number = None if value is None else float(value)
        marks.append(Mark(point.window.start, number, f"{shown}\n{window_label(point.window)}", shown))
        before = point.window
    return tuple(marks)


def heat(facts: OverviewFacts) -> Heat | None:
    """None where there are no groups, or nothing to show over time."""
    slots = _slots(facts)
    if not facts.groups or len(slots) < 2:
        return None
    log = facts.measure.is_count and needs_log([point.amount for group in facts.groups for point in group.points])
    values = [value for g in facts.groups for p in g.points if (value := _value(p.amount, log)) is not None]
    low, high = (min(values), max(values)) if values else (0.0, 0.0)
    if facts.measure.is_count and not log:
        low = min(0.0, low)
    place = {slot: i for i, slot in enumerate(slots)}
    rows = tuple(_row(facts, group, place, log, low, high) for group in facts.groups)
    least, most = _ends(facts.groups)
    scale = " The scale is logarithmic." if log else ""
    return Heat(
        rows=rows,
        columns=len(slots),
        ticks=tuple(_tick(slots[i], facts) for i in sorted({0, (len(slots) - 1) // 2, len(slots) - 1})),
        key=f"From {text(least)} (faintest) to {text(most)} (strongest); blank where there is no row.{scale}",
    )


def _slots(facts: OverviewFacts) -> list[float]:
    """The columns: starts of windows, or numbers of stretches without a gap."""
    if facts.heat_seconds is None:
        return sorted({point.window.start.timestamp() for point in facts.totals})
    taken = [_slot(point, facts.heat_seconds) for group in facts.groups for point in group.points]
    return [float(slot) for slot in range(int(min(taken)), int(max(taken)) + 1)] if taken else []


def _slot(point: Point, seconds: int | None) -> float:
    return point.window.start.timestamp() if seconds is None else number_of(point.window.start, seconds)


def _row(
    facts: OverviewFacts, group: GroupFacts, place: dict[float, int], log: bool, low: float, high: float
) -> HeatRow:
    label = group_label(group.key, facts.group_columns)
    cells: list[tuple[float, str] | None] = [None] * len(place)
    for point in group.points:
        value = _value(point.amount, log)
        if value is None:
            share = 0.0
        elif high > low:
            share = FAINTEST + (1 - FAINTEST) * (value - low) / (high - low)
        else:
            share = 1.0
        said = f"{label}\n{text(point.amount)}\n{window_label(point.window)}"
        cells[place[_slot(point, facts.heat_seconds)]] = (round(share, 2), said)
    return HeatRow(label, text(group.peak), tuple(cells))


def _value(amount: Amount, log: bool) -> float | None:
    value = amount.log10 if log else amount.exact
    return None if value is None else float(value)


def _ends(groups: Iterable[GroupFacts]) -> tuple[Amount, Amount]:
    amounts = [point.amount for group in groups for point in group.points]
    return min(amounts, key=lambda amount: amount.order), max(amounts, key=lambda amount: amount.order)


def _tick(slot: float, facts: OverviewFacts) -> str:
    seconds = facts.heat_seconds
    if seconds is None:
        start = next(point.window.start for point in facts.totals if _slot(point, None) == slot)
    else:
        start, _ = Unit("", seconds).ends(int(slot))
    return f"{start.day} {start:%b %Y}" if start.time() == datetime.min.time() or seconds else stamp(start)


def cost(runs: Sequence[RunFacts]) -> Cost:
    """The newest `COST_RUNS` of the runs (the newest first)."""
    shown = list(reversed(runs[:COST_RUNS]))
    dearest = max((_seconds(run) for run in shown), default=0.0)
    used = [stage.stage for run in shown for stage in run.stages if stage.seconds]
    return Cost(
        bars=tuple(
            CostBar(
                _label(run),
                tuple(
                    (STAGE_ROLES.get(stage.stage, "rest"), round(100 * stage.seconds / dearest, 2))
                    for stage in run.stages
                    if stage.seconds
                ),
            )
            for run in shown
        ),
        stages=tuple((role, stage_name(name)) for name, role in STAGE_ROLES.items() if name in used),
        top=duration(dearest),
    )


def _seconds(run: RunFacts) -> float:
    return sum(stage.seconds or 0.0 for stage in run.stages)


def _label(run: RunFacts) -> str:
    """The run's label: a fact a line."""
    stages = [f"{stage_name(stage.stage)} {duration(stage.seconds)}" for stage in run.stages if stage.seconds]
    rows = [] if run.rows_read is None else [f"{plural(run.rows_read, 'row')} read"]
    at = [day(run.finished_at)] if run.finished_at else []
    return "\n".join([run.run_id, *at, f"{duration(_seconds(run))} in all", *stages, *rows])
