"""The stream of feeds, and the example over it: the answers are those that the items themselves say."""

from __future__ import annotations

from itertools import combinations

from lxml import etree

from tests.conftest import ROOT
from trendlake.cep_core import compile_query, run_plan
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.generate import START_US
from trendlake.pipelines.generate.feeds import feeds


def test_the_example_over_its_stream() -> None:
    """Each pair of items is looked at."""
    table = feeds(1_500, 1.0, 7, START_US)
    assert table.equals(feeds(1_500, 1.0, 7, START_US))
    contract = load_contract(ROOT / "data_contracts" / "feeds.yaml")
    plan = compile_query(ROOT / "examples" / "xml" / "reposted.yaml", contract.event_schema())
    rows = run_plan(plan, table).to_pylist()
    items = []
    for row in table.to_pylist():
        cells = {child.tag: child.text for child in etree.fromstring(row["document"])}
        assert int(cells["timestamp"] or 0) == row["event_time"].timestamp()
        items.append((row["event_id"], row["event_time"], cells))
    expected = set()
    for (a, before, left), (b, after, right) in combinations(items, 2):
        seconds = (after - before).total_seconds()
        if 0 < seconds <= 3_600 and left["item_url"] == right["item_url"]:
            expected.add(("same_item", a, b, left["item_url"]))
        same = left["title"] == right["title"] and left["channel_url"] == right["channel_url"]
        if 0 < seconds <= 600 and same:
            expected.add(("same_title_in_channel", a, b, left["title"]))
    assert len({row[0] for row in expected}) == 2
    assert {(row["query"], row["left_id"], row["right_id"], row["what"]) for row in rows} == expected
    assert len(rows) == len(expected)
