"""Lineage of real runs: events that OpenLineage's own classes read, which say what the run record says."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from openlineage.client.event_v2 import RunState
from pyspark.sql import Row, SparkSession

from tests.support.flights import Flights, flight
from tests.support.lineage_events import LINEAGE, events, read, version
from trendlake.pipelines.errors import ToleranceError
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.lineage_settings import File, Http, Lineage
from trendlake.pipelines.runs.record import recorded
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.sequence import STEPS

pytestmark = pytest.mark.spark

RUNS = ("one", "two", "late")


@pytest.fixture(scope="module")
def emitted(story: Flights) -> list[dict[str, Any]]:
    """The events of the story's runs."""
    return events(story.project.state)


@pytest.fixture(scope="module")
def rows(story: Flights) -> dict[tuple[str, str], Row]:
    """What the run record says, by run and job."""
    table = story.spark.read.format("delta").load(story.warehouse.runs).collect()
    return {(row["run_id"], f"{row['pattern'] or row['source']}.{row['stage']}"): row for row in table}


def ends(emitted: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """The last events of stages, by run and job."""
    return {
        (event["run"]["facets"]["trendlake_run"]["run_id"], event["job"]["name"]): event
        for event in emitted
        if event["eventType"] != "START"
    }


def facet(event: dict[str, Any], side: str, name: str) -> dict[str, Any]:
    """Of what the first dataset read (`inputs`) or written (`outputs`) was to this run."""
    facet_of_event: dict[str, Any] = event[side][0][f"{side[:-1]}Facets"][name]
    return facet_of_event


def test_each_stage_has_a_start_and_an_end(emitted: list[dict[str, Any]]) -> None:
    """Two events of one run id, in that order, of the job that the stage is; OpenLineage's classes know all of it."""
    known = [read(event) for event in emitted]
    pairs = list(zip(known[::2], known[1::2], strict=True))
    for start, end in pairs:
        assert (start.eventType, end.eventType) == (RunState.START, RunState.COMPLETE)
        assert (start.run.runId, start.job) == (end.run.runId, end.job)
        assert start.job.namespace == "trendlake"
    assert len({start.run.runId for start, _ in pairs}) == len(pairs)
    assert {job.name for _, end in pairs for job in [end.job]} == {
        "flights.ingest",
        *(f"test_pattern.{step}" for step in STEPS),
    }


def test_events_say_what_the_run_record_says(emitted: list[dict[str, Any]], rows: dict[tuple[str, str], Row]) -> None:
    """Every stage of every run has its events, with its numbers, its interval and the time it took."""
    end_of = ends(emitted)
    assert set(end_of) == {key for key in rows if key[0] in RUNS or key[1] == "flights.ingest"}
    for key, event in end_of.items():
        facts, row = event["run"]["facets"]["trendlake_run"], rows[key]
        for name in (
            "run_id",
            "pattern",
            "stage",
            "source",
            "plan_hash",
            "source_version",
            "results_version",
            "rows_in",
            "rows_out",
            "rows_quarantined",
            "rows_inserted",
            "windows",
            "seconds",
        ):
            assert facts.get(name) == row[name], (key, name)
    interval = end_of["one", "test_pattern.compute"]["run"]["facets"]["nominalTime"]
    assert interval["nominalStartTime"] == "2013-03-01T00:00:00+00:00"
    assert interval["nominalEndTime"] == "2013-03-02T00:00:00+00:00"


def test_datasets_have_the_versions_of_the_run_record(
    story: Flights, emitted: list[dict[str, Any]], rows: dict[tuple[str, str], Row]
) -> None:
    """From the delivery into the source, at the version that was pinned, to the results."""
    source, results = story.warehouse.source("flights"), story.warehouse.results("test_pattern")
    end_of = ends(emitted)
    delivered = end_of["ingest test", "flights.ingest"]
    assert of(delivered["outputs"][0]) == ("file", source)
    assert facet(delivered, "outputs", "outputStatistics")["rowCount"] == 27
    for run in RUNS:
        for step in ("check_source", "compute", "publish"):
            key = (run, f"test_pattern.{step}")
            assert of(end_of[key]["inputs"][0]) == ("file", source)
            assert version(end_of[key]["inputs"][0]) == rows[key]["source_version"]
        output, row = end_of[key]["outputs"][0], rows[key]
        assert of(output) == ("file", results)
        assert version(output) == row["results_version"]
        written = facet(end_of[key], "outputs", "outputStatistics")["rowCount"]
        assert written == row["rows_inserted"] + row["rows_updated"] > 0
    columns = {item["name"]: item["type"] for item in output["facets"]["schema"]["fields"]}
    assert (columns["carrier"], columns["window_end"], columns["snowballs"]) == ("string", "timestamp", "decimal(38,0)")


def of(table: dict[str, Any]) -> tuple[str, str]:
    return table["namespace"], table["name"]


def test_verdicts_are_told_of_the_table_they_judge(
    story: Flights, emitted: list[dict[str, Any]], rows: dict[tuple[str, str], Row]
) -> None:
    """The source's at check_source, with where the broken row went; those of staged rows of the results table."""
    end_of = ends(emitted)
    source, results = story.warehouse.source("flights"), story.warehouse.results("test_pattern")
    for step, path in (("check_source", source), ("check_results", results)):
        key = ("two", f"test_pattern.{step}")
        assert of(end_of[key]["inputs"][0]) == ("file", path)
        checks = json.loads(rows[key]["checks"])
        assert len(checks) > 5
        assert [
            (item["assertion"], item["success"], item.get("column"))
            for item in facet(end_of[key], "inputs", "dataQualityAssertions")["assertions"]
        ] == [(item["check"], item["success"], item["column"]) for item in checks]
    event = end_of["two", "test_pattern.check_source"]
    assert facet(event, "inputs", "inputStatistics")["rowCount"] == rows["two", "test_pattern.check_source"]["rows_in"]
    assert of(event["outputs"][0]) == ("file", story.warehouse.quarantine("flights"))
    assert facet(event, "outputs", "outputStatistics")["rowCount"] == 1


def test_a_failed_check_is_told_with_its_reason(lake: Flights) -> None:
    """FAIL, with the line that the run record has; the verdict that ended the run is among the others."""
    lake = replace(lake, profile=lake.profile.model_copy(update={"lineage": LINEAGE}))
    lake.deliver([flight(1, "2013-03-01T12:00:00", carrier="")])
    with pytest.raises(ToleranceError):
        check_source(lake.run(lake.pattern(), "2013-03-01", "2013-03-02", "r1"))
    start, end = events(lake.project.state)[-2:]
    known = read(end)
    assert known.eventType == RunState.FAIL
    assert known.run.runId == read(start).run.runId
    (row,) = lake.spark.read.format("delta").load(lake.warehouse.runs).where("stage = 'check_source'").collect()
    assert end["run"]["facets"]["errorMessage"]["message"] == row["error"]
    assert row["error"].startswith("[TOLERANCE] 1 of 1 rows of 'flights' break its contract")
    verdicts = facet(end, "inputs", "dataQualityAssertions")["assertions"]
    assert "quarantine_tolerance" in {item["assertion"] for item in verdicts if not item["success"]}
    assert version(end["inputs"][0]) == row["source_version"]


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, str, Any]]]]:
    """A server of lineage, and what it was sent: paths, keys, bodies."""
    sent: list[tuple[str, str, Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            sent.append((self.path, self.headers.get("Authorization", ""), body))
            self.send_response(201)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing on the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as listening:
        thread = Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}", sent
        listening.shutdown()
        thread.join()


def test_a_server_is_sent_the_key_of_the_environment(
    spark: SparkSession, tmp_path: Path, server: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, sent = server
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__AUTH__TYPE", "api_key")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__AUTH__APIKEY", "swordfish")
    stage(spark, tmp_path, Lineage(namespace="ours", transport=Http(type="http", url=url)))
    assert [(path, key) for path, key, _ in sent] == [("/api/v1/lineage", "Bearer swordfish")] * 2
    assert [read(body).eventType for _, _, body in sent] == [RunState.START, RunState.COMPLETE]


def stage(spark: SparkSession, tmp_path: Path, lineage: Lineage) -> Record:
    """A stage that does nothing, recorded and sent."""
    record = Record("r1", "days", "compute", source="flights")
    with recorded(Lake.of(spark, Warehouse(str(tmp_path / "lake"), lineage)), record):
        record.rows_out = 0
    return record


@pytest.mark.parametrize("type_", ["file", "http"])
def test_a_run_goes_on_where_nobody_listens(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, type_: str
) -> None:
    """One line of warning; the stage has succeeded."""
    (tmp_path / "a_file").write_text("")
    transport = (
        File(type="file", log_file_path=str(tmp_path / "a_file" / "events"))
        if type_ == "file"
        else Http(type="http", url="http://127.0.0.1:9")
    )
    with caplog.at_level(logging.WARNING):
        record = stage(spark, tmp_path, Lineage(transport=transport))
    assert record.succeeded
    (line,) = [item.getMessage() for item in caplog.records]
    assert line.startswith("lineage: an event could not be sent: ")
    assert "\n" not in line
