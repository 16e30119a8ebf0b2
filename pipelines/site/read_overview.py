"""All that a pattern has published, boiled down to what a chart and a heat map show.

However many groups and windows there are, few rows are kept: the totals of at most `MOST_POINTS` stretches of time, and
the `GROUPS_SHOWN` largest groups in at most `HEAT_COLUMNS` of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.windows import moment
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.report.amounts import Amount
from trendlake.pipelines.report.bins import SECOND, shared_point
from trendlake.pipelines.report.database import Database
from trendlake.pipelines.report.facts import Measure, PatternFacts, Point, Window
from trendlake.pipelines.report.summary import MOST_POINTS
from trendlake.pipelines.results.reuse import current_hashes
from trendlake.pipelines.site.facts import GroupFacts, MeasureFacts, OverviewFacts
from trendlake.pipelines.site.overview import HEAT_COLUMNS, Counts, Peak

GROUPS_SHOWN = 24


def read_overview(
    lake: Lake, path: str, pattern: PatternFacts, plan: AnyPlan | None, folder: Path | None = None
) -> OverviewFacts | None:
    """The results at `path` as they are now; None where there is no row. `plan`: the pattern's, where it compiles;
    `folder`: as of `Database`."""
    with Database(folder) as database:
        counts = Counts.of(database, Table.at(lake, path), pattern, plan)
        return None if counts is None else _overview(counts, plan)


def _overview(counts: Counts, plan: AnyPlan | None) -> OverviewFacts:
    first, last, first_end, until, windows = counts.ends
    span = moment(last) - moment(first)
    bucket, heat = (shared_point(windows, span, most) for most in (MOST_POINTS, HEAT_COLUMNS))
    return OverviewFacts(
        group_columns=counts.groups,
        measure=counts.measure,
        unit=counts.unit,
        rows=sum(counts.forms.values()),
        earlier_rows=_earlier(counts.forms, plan, first, until),
        windows=windows,
        first=moment(first),
        last=moment(until),
        extent=None if counts.extent is None else (moment(counts.extent[0]), moment(counts.extent[1])),
        totals=_points(counts.totals(bucket), counts.measure),
        bucket_seconds=bucket,
        step_seconds=(plan.windows.step if plan and counts.unit == "window" else first_end - first) / SECOND,
        group_count=counts.group_count if counts.groups else 0,
        groups=_groups(counts, heat) if counts.groups else (),
        heat_seconds=heat,
        others=tuple(
            MeasureFacts(measure, points)
            for number, measure in enumerate(counts.others)
            if (points := _points(counts.other(number, bucket), measure))
        ),
    )


def _groups(counts: Counts, heat: int | None) -> tuple[GroupFacts, ...]:
    points = counts.points(GROUPS_SHOWN, heat)
    return tuple(
        GroupFacts(key, _amount(peak, counts.measure), _points(points[key], counts.measure))
        for key, peak in counts.peaks(GROUPS_SHOWN)
    )


def _points(peaks: Sequence[Peak], measure: Measure) -> tuple[Point, ...]:
    return tuple(Point(Window(moment(peak.ws), moment(peak.we)), _amount(peak, measure)) for peak in peaks)


def _amount(peak: Peak, measure: Measure) -> Amount:
    if measure.is_count:
        return Amount.of_count(None if peak.x is None else int(peak.x), peak.l)
    return Amount(None if peak.x is None else float(peak.x), None, measure.unit)


def _earlier(forms: Mapping[str | None, int], plan: AnyPlan | None, first: int, until: int) -> int:
    """Rows of a form that the pattern does not have now; 0 where it does not compile."""
    if plan is None:
        return 0
    current = current_hashes(plan, first, until)
    return sum(rows for form, rows in forms.items() if form not in current)
