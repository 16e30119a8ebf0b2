"""A stage of a run as OpenLineage events: the run record's facts in the facets that tools know.

A dataset is a Delta table of the warehouse, named by its path as OpenLineage names files. Results that a pattern
publishes and another reads as its source are one table, so one dataset: chains link up. Staged rows are no dataset:
only the run itself reads them, and its publication names the version of the source that they were computed from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import cast
from urllib.parse import urlsplit

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState, set_producer
from openlineage.client.facet_v2 import (
    DatasetFacet,
    RunFacet,
    dataset_version_dataset,
    error_message_run,
    input_statistics_input_dataset,
    job_type_job,
    nominal_time_run,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    schema_dataset,
    storage_dataset,
)
from openlineage.client.facet_v2 import data_quality_assertions_dataset as quality
from openlineage.client.uuid import generate_new_uuid

from trendlake.cep_core.events.windows import moment
from trendlake.pipelines.check import Check
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.versions import schema_of
from trendlake.pipelines.runs.stage import Record

set_producer("urn:trendlake:pipelines")
PARENT = "spark.openlineage."
"""Settings by which Airflow's SparkSubmitOperator gives an application the task run that it belongs to."""
FACTS = "trendlake_run"
"""The facet of a run that is ours: the numbers of the run record that no other facet has."""
OBJECT_STORES = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs"}
"""Whose objects have keys, not paths; as OpenLineage calls them."""


@dataclass(frozen=True)
class Step:
    """A stage that runs now; its events share a run id. `namespace`: of its job."""

    lake: Lake
    namespace: str
    record: Record
    run_id: str = field(default_factory=lambda: str(generate_new_uuid()))

    def started(self) -> RunEvent:
        return self._event(RunState.START, {}, [], [])

    def completed(self) -> RunEvent:
        return self._event(RunState.COMPLETE, self._facts(), list(self._inputs()), list(self._outputs()))

    def failed(self, reason: str) -> RunEvent:
        """`reason`: one line, without secrets."""
        why = error_message_run.ErrorMessageRunFacet(message=reason, programmingLanguage="PYTHON")
        facets = {**self._facts(), "errorMessage": why}
        return self._event(RunState.FAIL, facets, list(self._inputs()), list(self._outputs()))

    def _event(
        self, state: RunState, facets: Mapping[str, RunFacet], inputs: list[InputDataset], outputs: list[OutputDataset]
    ) -> RunEvent:
        record = self.record
        kind = job_type_job.JobTypeJobFacet(processingType="BATCH", integration="TRENDLAKE", jobType="STEP")
        name = f"{record.pattern or record.source}.{record.stage}"
        return RunEvent(
            eventType=state,
            eventTime=datetime.now(UTC).isoformat(),
            run=Run(self.run_id, facets={**self._about(), **facets}),
            job=Job(self.namespace, name, facets={"jobType": kind}),
            inputs=inputs,
            outputs=outputs,
        )

    def _about(self) -> dict[str, RunFacet]:
        """The facets that are known from the start of a run."""
        run_facets: dict[str, RunFacet] = {
            "processing_engine": processing_engine_run.ProcessingEngineRunFacet(self.lake.spark.version, name="spark")
        }
        since, until = self.record.interval_from, self.record.interval_to
        if self.record.pattern and since is not None and until is not None:
            run_facets["nominalTime"] = nominal_time_run.NominalTimeRunFacet(
                moment(since).isoformat(), moment(until).isoformat()
            )
        parent = parent_of(dict(self.lake.spark.sparkContext.getConf().getAll()))
        return run_facets if parent is None else {**run_facets, "parent": parent}

    def _facts(self) -> dict[str, RunFacet]:
        facts = asdict(self.record)
        for name in ("checks", "note", "record_number", "basis", "succeeded"):
            facts.pop(name)
        if facts["sources"] is None:
            facts.pop("sources")
        for name in ("interval_from", "interval_to"):
            facts[name] = None if facts[name] is None else moment(facts[name]).isoformat()
        attempt = facts["staged_version"]
        facts["staged_version"] = None if attempt is None else str(attempt)  # 63 bits: more than JSON's numbers hold
        return {FACTS: cast(RunFacet, RunFacet().with_additional_properties(**facts))}

    def _inputs(self) -> Iterator[InputDataset]:
        record = self.record
        judged = {"dataQualityAssertions": quality.DataQualityAssertionsDatasetFacet(assertions(record.checks))}
        if record.source and record.stage in ("check_source", "compute", "publish", "revise"):
            # of several tables the rows of all are no statistic of one
            rows = None if record.stage == "publish" or record.sources is not None else record.rows_in
            counted = {"inputStatistics": input_statistics_input_dataset.InputStatisticsInputDatasetFacet(rows)}
            facets = {**(counted if rows is not None else {}), **(judged if record.stage == "check_source" else {})}
            for source, version in self._read():
                path = self.lake.warehouse.source(source)
                yield InputDataset(*named(path), inputFacets=facets, facets=self._table(path, version))
        if record.pattern and record.stage in ("check_results", "revise"):
            path = self.lake.warehouse.results(record.pattern)
            yield InputDataset(*named(path), inputFacets=dict(judged), facets=self._table(path, None))

    def _read(self) -> Iterator[tuple[str, int | None]]:
        """The tables that the stage reads, with their versions as far as it knows them."""
        record = self.record
        if record.sources is not None:
            yield from ((name, table["version"]) for name, table in record.sources.items())
        else:
            several = record.source.split(",") if record.source and record.pattern else [str(record.source)]
            yield from ((name, record.source_version) for name in several)

    def _outputs(self) -> Iterator[OutputDataset]:
        record = self.record
        if record.pattern and record.stage in ("publish", "revise"):
            written = _sum(record.rows_inserted, record.rows_updated)
            yield self._written(self.lake.warehouse.results(record.pattern), record.results_version, written)
        if record.source and record.stage == "ingest":
            written = _sum(record.rows_inserted, record.rows_updated)
            yield self._written(self.lake.warehouse.source(record.source), record.source_version, written)
        if record.source and record.rows_quarantined and record.stage in ("check_source", "revise"):
            if record.sources is None:
                yield self._written(self.lake.warehouse.quarantine(record.source), None, record.rows_quarantined)
            for name, table in (record.sources or {}).items():
                if table.get("quarantined"):
                    yield self._written(self.lake.warehouse.quarantine(name), None, table["quarantined"])

    def _written(self, path: str, version: int | None, rows: int | None) -> OutputDataset:
        counted = {"outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rows)}
        return OutputDataset(
            *named(path), outputFacets={} if rows is None else dict(counted), facets=self._table(path, version)
        )

    def _table(self, path: str, version: int | None) -> dict[str, DatasetFacet]:
        dataset_facets: dict[str, DatasetFacet] = {"storage": storage_dataset.StorageDatasetFacet("delta", "parquet")}
        if version is None:
            return dataset_facets
        columns = schema_of(self.lake, path, version).fields
        fields = [schema_dataset.SchemaDatasetFacetFields(item.name, item.dataType.simpleString()) for item in columns]
        dataset_facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(str(version))
        dataset_facets["schema"] = schema_dataset.SchemaDatasetFacet(fields)
        return dataset_facets


def named(path: str) -> tuple[str, str]:
    """Namespace and name of the table at a path or URI, by OpenLineage's rules for files."""
    uri = urlsplit(path)
    if uri.scheme in ("", "file"):
        return "file", uri.path
    user, _, host = uri.netloc.rpartition("@")
    place = host if ":" in user else uri.netloc  # a name and a password are not the store's; Azure's `container@` is
    scheme = OBJECT_STORES.get(uri.scheme, uri.scheme)
    return f"{scheme}://{place}", uri.path.lstrip("/") if uri.scheme in OBJECT_STORES else uri.path


def assertions(checks: Iterable[Check]) -> list[quality.Assertion]:
    """The verdicts of a run record; what could not be judged has none, and OpenLineage knows no third answer."""
    return [
        quality.Assertion(
            assertion=check.name,
            success=check.success,
            column=check.column,
            expected=check.expected,
            actual=check.observed,
        )
        for check in checks
        if check.success is not None
    ]


def parent_of(settings: Mapping[str, str]) -> parent_run.ParentRunFacet | None:
    """The run of Airflow's task that started this application, and of its DAG; None where none has."""
    run, job, space = (settings.get(f"{PARENT}parent{name}") for name in ("RunId", "JobName", "JobNamespace"))
    if not (run and job and space):
        return None
    top, first, of = (settings.get(f"{PARENT}rootParent{name}") for name in ("RunId", "JobName", "JobNamespace"))
    root = parent_run.Root(parent_run.RootRun(top), parent_run.RootJob(of, first)) if top and first and of else None
    return parent_run.ParentRunFacet(parent_run.Run(run), parent_run.Job(space, job), root)


def _sum(*numbers: int | None) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
