"""From rows to rankings, sums and series: nothing is cut in silence, nothing is counted twice."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import product

import altair as alt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema.exceptions import ValidationError

from trendlake.pipelines.report.amounts import Amount
from trendlake.pipelines.report.chart import NARROW, WIDE, _spec, png, svg
from trendlake.pipelines.report.facts import Measure, ResultFacts, Window
from trendlake.pipelines.report.picture import picture
from trendlake.pipelines.report.summary import MOST_POINTS, Columns, ResultRow, result_row, summarise

JANUARY = datetime(2013, 1, 1, tzinfo=UTC)
COUNT = Columns(("carrier",), ("trends",), Measure("trends", True))


def row(carrier: str | None, day: float, count: int | Amount, days: float = 1) -> ResultRow:
    """A result of `carrier` in the window of `days` that starts `day` days into 2013."""
    start = JANUARY + timedelta(days=day)
    amount = count if isinstance(count, Amount) else Amount.of_count(count)
    return ResultRow((carrier,), Window(start, start + timedelta(days=days)), amount, (("trends", amount),), None)


def of(rows: Iterable[ResultRow], since_day: float | None = None, columns: Columns = COUNT) -> ResultFacts:
    """The summary; windows that end after `since_day` are the run's."""
    since = None if since_day is None else JANUARY + timedelta(days=since_day)
    return summarise([result_row(*row[:4], since) for row in rows], columns)


def ranked(facts: ResultFacts) -> dict[str | None, int | float | None]:
    return {group.key[0]: group.amount.exact for group in facts.top_groups}


def test_groups_are_ranked_by_their_sum_over_the_interval() -> None:
    """Windows that do not overlap add up."""
    facts = of([row("UA", 0, 5), row("UA", 1, 5), row("EV", 0, 9), row(None, 1, 2)])
    assert ranked(facts) == {"UA": 10, "EV": 9, None: 2}
    assert (facts.additive, facts.headline.exact, facts.groups, facts.windows, facts.rows) == (True, 21, 3, 2, 4)


def test_of_overlapping_windows_the_largest_counts() -> None:
    """A trend lies in each window that holds it, so their sum would count it twice."""
    facts = of([row("UA", 0, 5, days=2), row("UA", 1, 6, days=2), row("EV", 0, 7, days=2)])
    assert not facts.additive
    assert ranked(facts) == {"EV": 7, "UA": 6}
    assert facts.headline.exact == 12  # the window of day 0, both groups


def test_history_is_drawn_and_not_counted() -> None:
    """Only windows that end after the start of the interval are the run's."""
    facts = of([row("UA", 0, 100), row("UA", 1, 1), row("EV", 0, 50)], since_day=1)
    assert ranked(facts) == {"UA": 1}
    assert (facts.headline.exact, facts.rows, facts.windows, facts.span_windows) == (1, 1, 1, 2)
    assert [point.amount.exact for point in facts.series["UA",]] == [100, 1]
    assert [point.amount.exact for point in facts.series["EV",]] == [50]
    assert (facts.others_series, facts.others_drawn) == ((), 0)


def test_an_empty_interval_is_ranked_by_what_came_before() -> None:
    """The picture still has something to show; the tables and the headline do not pretend."""
    facts = of([row("UA", 0, 3)], since_day=5)
    assert facts.top_groups == ()
    assert not facts.headline.is_known
    assert list(facts.series) == [("UA",)]


def test_nothing_at_all() -> None:
    """No row: no headline, no picture."""
    facts = of([])
    assert (facts.rows, facts.groups, facts.windows, facts.busiest) == (0, 0, 0, ())
    assert picture(facts, None, "trends").form == "nothing"


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 9), st.integers(0, 10**30)),
        max_size=150,
        unique_by=lambda t: t[:2],
    )
)
def test_ranked_groups_and_the_others_make_up_the_whole(cells: list[tuple[int, int, int]]) -> None:
    """However many groups there are, and in every window of the picture."""
    rows = [row(f"G{group}", day, count) for group, day, count in cells]
    facts = of(rows)
    whole = sum(count for _, _, count in cells)
    named = sum(int(group.amount.exact or 0) for group in facts.top_groups)
    assert named + int(facts.others.exact or 0) == whole == int(facts.headline.exact or 0)
    lines = [*list(facts.series.values())[: facts.drawn], facts.others_series]
    for day in range(10):
        start = JANUARY + timedelta(days=day)
        drawn = sum(int(p.amount.exact or 0) for line in lines for p in line if p.window.start == start)
        assert drawn == sum(count for _, at, count in cells if at == day)
    assert facts.drawn + facts.others_drawn == len({group for group, _, _ in cells})


def test_a_lone_group_is_drawn_rather_than_called_others() -> None:
    """Seven groups are seven lines; eight are six lines and two others."""
    seven = of(row(f"G{i}", day, 10 - i) for i in range(7) for day in range(3))
    eight = of(row(f"G{i}", day, 10 - i) for i in range(8) for day in range(3))
    assert (seven.drawn, seven.others_drawn, seven.others_series) == (7, 0, ())
    assert (eight.drawn, eight.others_drawn) == (6, 2)
    assert picture(eight, None, "trends").series[-1].label == "2 other groups together"


def test_counts_beyond_every_double_are_ranked_and_summed() -> None:
    """10^3000 and its neighbours, NULL in the table, known by their logarithms."""
    facts = of([row("A", 0, Amount(None, 3000.0)), row("B", 0, Amount(None, 3000.0)), row("C", 0, 7)])
    assert [group.key[0] for group in facts.top_groups] == ["A", "B", "C"]
    assert facts.headline.exact is None
    assert facts.headline.log10 == 3000.3010299956640
    assert picture(facts, None, "trends").log


def test_very_many_windows_share_points_by_time() -> None:
    """The largest of each stretch stands for it; the others are summed before, window by window."""
    minutes = 1440
    rows = [row(f"G{g}", m / minutes, (m * (g + 1)) % 97, days=1 / minutes) for g in range(9) for m in range(minutes)]
    facts = of(rows)
    assert facts.bucket_seconds == 600
    assert all(len(line) <= MOST_POINTS for line in [*facts.series.values(), facts.others_series])
    drawn = {key for key, _ in list(facts.series.items())[: facts.drawn]}
    slots: dict[float, dict[Window, int]] = {}
    for item in rows:
        if item.key not in drawn:
            sums = slots.setdefault(item.window.start.timestamp() // 600, {})
            sums[item.window] = sums.get(item.window, 0) + int(item.amount.exact or 0)
    assert [point.amount.exact for point in facts.others_series] == [
        max(slots[slot].values()) for slot in sorted(slots)
    ]
    assert not any(mark.value is None for line in picture(facts, None, "trends").series for mark in line.marks)


def test_a_line_breaks_where_windows_are_missing() -> None:
    """No row means no trend: it is not drawn over."""
    line = picture(of([row("UA", day, 5) for day in (0, 1, 4, 5)]), None, "trends").series[0]
    assert [mark.value for mark in line.marks] == [5, 5, None, 5, 5]


def test_one_window_is_drawn_as_bars() -> None:
    """There is no time to show; ten groups have a bar, the rest shares one."""
    drawn = picture(of(row(f"G{i:02}", 0, 100 - i) for i in range(15)), None, "trends")
    assert (drawn.form, len(drawn.series), drawn.series[-1].label) == ("bars", 11, "5 other groups")


def test_the_run_is_marked_within_its_history() -> None:
    """Half a step around its windows; not where it is all there is."""
    rows = [row("UA", day, 5) for day in range(5)]
    band = picture(of(rows, since_day=4), JANUARY + timedelta(days=4), "trends").band
    assert band == (JANUARY + timedelta(days=3.5), JANUARY + timedelta(days=4.5))
    assert picture(of(rows, since_day=0), JANUARY, "trends").band is None


@pytest.mark.long
def test_pictures_are_what_the_schema_of_vega_lite_allows() -> None:
    """In both sizes, with and without a legend. Altair has the schema."""
    week = [row(f"G{i}", day, (i + 1) ** day) for i in range(9) for day in range(7)]
    year = [row("UA", 30.5 * month, 5) for month in range(12)]
    drawn = [
        picture(of([]), None, "trends"),
        picture(of(week[::7]), None, "trends"),
        picture(of(year), None, "trends"),
        picture(of(week, since_day=5), JANUARY + timedelta(days=5), "trends"),
        picture(of([row("A", day, Amount(None, 3000.0 * day + 1)) for day in range(3)]), None, "trends"),
    ]
    assert {item.form for item in drawn} == {"nothing", "bars", "lines"}
    for item, size, legend in product(drawn, (WIDE, NARROW), (False, True)):
        spec = json.loads(json.dumps(_spec(item, size, legend=legend)))
        assert spec.pop("background") is None  # which Vega takes for none, and the schema does not allow
        alt.Chart.from_dict(spec, validate=True)
        with pytest.raises(ValidationError):
            alt.Chart.from_dict(spec | {"padding": {"upper": 2}}, validate=True)


def test_a_measure_that_does_not_add_up_is_never_summed() -> None:
    """Of averages, the highest; the others' highest, and said so."""
    columns = Columns(("carrier",), ("mean",), Measure("mean", False))
    facts = of([row(f"G{i}", day, Amount(float(i + day))) for i in range(9) for day in range(2)], columns=columns)
    assert facts.headline.exact == 9.0
    assert ranked(facts)["G8"] == 9.0
    assert picture(facts, None, "mean").series[-1].label == "3 other groups at most"


@pytest.mark.parametrize("sign", ["\x00", "\x08", "\x0b", "\x1b", "\x1f", "\ufffe", "\uffff", "\ud800"])
def test_a_sign_that_xml_has_not_is_replaced_in_a_picture(sign: str) -> None:
    """In groups, in the title: vl-convert would end the process at it."""
    drawn = picture(of([row(f"a{sign}{name}", day, 5) for name in "bc" for day in (0, 1)]), None, f"n{sign}")
    assert "a\ufffdb" in svg(drawn, WIDE)
    assert png(drawn, sign, sign).startswith(b"\x89PNG")
    assert "n\ufffd" in svg(picture(of([]), None, f"n{sign}"), NARROW)
