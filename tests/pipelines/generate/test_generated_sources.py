"""A generated stream, loaded through its contract, and the example that asks about it: as a new user runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.conftest import ROOT
from tests.support.flights import Flights, all_steps, answers
from trendlake.cep_core import run_plan
from trendlake.jobs.main import app
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.execute.shard_plan import Cut
from trendlake.pipelines.generate import START_US, STREAMS
from trendlake.pipelines.generate.load import Asked, deliveries
from trendlake.pipelines.ingest.deliver import feeds, ingest
from trendlake.pipelines.results.computation import computed
from trendlake.pipelines.results.source_events import read_events
from trendlake.pipelines.runs.record import find
from trendlake.pipelines.runs.stage import Record


@pytest.mark.long
@pytest.mark.spark
def test_an_example_over_its_stream(lake: Flights) -> None:
    """No row breaks the contract, and what is published is what the engine says of the stream itself."""
    stream = Asked(STREAMS["linear_road"], 9_000, 30.0, 5, START_US)
    contract = load_contract(lake.project.contract_path("linear_road"))
    record = ingest(lake.lake, contract, deliveries(stream.table()), feed=stream.feed, run_id="generate")
    assert record.rows_out == 9_000
    assert feeds(lake.lake, lake.warehouse.source("linear_road")) == {stream.feed}
    run = lake.run(
        ROOT / "examples" / "greta" / "jams_without_accident.yaml", "2026-01-05T09:03", "2026-01-05T09:07", "r1"
    )
    assert all_steps(run).rows_inserted
    checked = find(lake.lake, run.name, "r1", "check_source")
    assert checked is not None
    assert checked.rows_quarantined == 0
    expected = run_plan(run.plan, stream.table(), run.windows).to_pylist()
    assert len(expected) > 100
    keys = [*run.plan.group_by, "window_start"]
    measures = [name for name in run.plan.result_schema.names if name not in (*keys, "window_end")]
    wanted = sorted(expected, key=lambda row: [str(row[key]) for key in keys])
    assert [[row["segment"], *(row[name] for name in measures)] for row in answers(lake.results(run), run)] == [
        [row["segment"], *(row[name] for name in measures)] for row in wanted
    ]


EXAMPLES = {
    "retail": (6_000, ["matches/shoplifting"]),
    "shipments": (1_500, ["matches/contamination"]),
    "stock": (1_000, ["matches/rising_then_quiet"]),
    "quotes": (
        6_000,
        ["automata/double_top", "automata/equal_vees", "automata/head_and_shoulders", "automata/vees_until_back"],
    ),
}
"""Events of a stream, and the examples that ask about it."""


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_other_kinds(lake: Flights, name: str) -> None:
    """What Spark computes of each, a shard for each window, is what the engine says of the stream itself."""
    events, examples = EXAMPLES[name]
    stream = Asked(STREAMS[name], events, STREAMS[name].rate, 5, START_US)
    contract = load_contract(lake.project.contract_path(name))
    ingest(lake.lake, contract, deliveries(stream.table()), feed=stream.feed, run_id="generate")
    for example in examples:
        run = lake.run(ROOT / "examples" / f"{example}.yaml", "2026-01-05", "2026-01-07", "r1")
        good = read_events(run, Record("r", None, "check_source", source_version=1))
        actual = computed(run, good, Cut(run.windows, 1, 3)).toArrow().to_pylist()
        expected = run_plan(run.plan, stream.table()).to_pylist()
        assert expected, example
        assert sorted(map(str, actual)) == sorted(map(str, expected)), example


def test_a_stream_that_cannot_be(tmp_path: Path) -> None:
    """Options that make no stream are told before Spark is started."""
    result = CliRunner().invoke(app, ["generate", "stock", "--events", "0", "--project-dir", str(tmp_path)])
    assert result.exit_code == 1
    assert "[BAD_NUMBER]" in result.output
