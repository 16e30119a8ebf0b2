"""What the columns of a results table mean, also where the pattern has been of other kinds."""

from __future__ import annotations

import pytest

from trendlake.pipelines.report.layout import INTERVAL, LIFETIME, WINDOW, Layout

ALL = [*WINDOW, *LIFETIME, *INTERVAL, "match_id", "matches", "matches_log10", "n"]


@pytest.mark.parametrize(
    ("names", "kind", "times"),
    [
        (ALL, "trends", WINDOW),
        (ALL, "automaton", LIFETIME),
        (ALL, "matches", INTERVAL),
        (ALL, "algebra", INTERVAL),
        ([*INTERVAL, "n"], "trends", INTERVAL),
        ([*WINDOW, "n"], "matches", WINDOW),
        ([*LIFETIME, "n"], "xml_join", LIFETIME),
        ([*WINDOW, "start", "n"], "algebra", WINDOW),
    ],
)
def test_the_own_times_count_and_else_those_that_are_there(names: list[str], kind: str, times: tuple[str, str]) -> None:
    layout = Layout.of(names, kind)
    assert layout.times == times
    assert (layout.windows, layout.lifetimes) == (times == WINDOW, times == LIFETIME)


def test_only_graphs_are_graphs() -> None:
    kinds = ("trends", "automaton", "matches", "algebra", "xml_join")
    assert [kind for kind in kinds if Layout.of(ALL, kind).graphs] == ["matches"]
    assert not Layout.of([*INTERVAL, "match_id"], "matches").graphs


def test_a_measure_may_be_called_as_a_column_of_another_kind() -> None:
    names = {*WINDOW, "start", "end", "match_id", "graph"}
    assert names - Layout.of(names, "trends").hidden == {"start", "end", "match_id", "graph"}
    assert {"match_id", *INTERVAL} <= Layout.of([*INTERVAL, "match_id", "n"], "matches").hidden
