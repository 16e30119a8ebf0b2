"""The ids of a project's DAGs in Airflow. One file makes each: of two DAGs of one id Airflow has one, and does not
report the other.

A pattern that runs alone makes `<pattern>` and `<pattern>_revise`, a batch `batch_<batch>` and `batch_<batch>_revise`,
a source that patterns read `ingest_<source>`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from trendlake.cep_core import Pattern
from trendlake.cep_core.errors import BadValueError
from trendlake.pipelines.project.batches import Batch, batches_of
from trendlake.pipelines.project.paths import upstream

REVISION = "_revise"
BATCH, INGESTION = "batch_", "ingest_"


def batch_id(batch: str) -> str:
    """The DAG that runs a batch."""
    return f"{BATCH}{batch}"


def revision_id(runs: str) -> str:
    """The DAG that revises what the DAG `runs` publishes."""
    return f"{runs}{REVISION}"


def ingestion_id(source: str) -> str:
    """The DAG that ingests files into a source."""
    return f"{INGESTION}{source}"


def may_clash(name: str) -> bool:
    """Whether a pattern or batch of this name may be refused because another file makes its DAG: names of another form
    have nothing to fear, and the other patterns do not have to be read."""
    return name.startswith((BATCH[:-1], INGESTION[:-1])) or name.endswith(REVISION)


@dataclass(frozen=True)
class DagNames:
    """`batches` by name; `ingested`: the sources that have a DAG; `makers`: what each DAG does, by its id; `mistakes`:
    the errors of patterns that differ from their batch, or would make a DAG that another file makes, by name."""

    batches: Mapping[str, Batch]
    ingested: Sequence[str]
    makers: Mapping[str, str]
    mistakes: Mapping[str, Sequence[BadValueError]]

    @classmethod
    def of(cls, patterns: Mapping[str, Pattern], rule: str | None, elsewhere: Collection[str]) -> DagNames:
        """`patterns`: all of the project, by name; `rule`: the profile's `batches`; `elsewhere`: the sources whose
        tables other programs write."""
        batches = batches_of(patterns, rule)
        read = {table for pattern in patterns.values() for table in pattern.tables_read}
        ingested = sorted(source for source in read if upstream(source) is None and source not in elsewhere)
        makers = {ingestion_id(source): f"ingests files into the source '{source}'" for source in ingested}
        mistakes: dict[str, Sequence[BadValueError]] = {}
        batched: set[str] = set()
        for name, batch in sorted(batches.items()):
            mistakes |= batch.others
            batched |= {*batch.members, *batch.others}
            members = [patterns[member] for member in batch.members]
            mistakes |= _claim("batch", name, batch_id(name), members, makers)
        for name in sorted(patterns.keys() - batched):
            mistakes |= _claim("pattern", name, name, [patterns[name]], makers)
        return cls(batches, ingested, makers, mistakes)


def _claim(
    what: str, name: str, runs: str, members: Sequence[Pattern], makers: dict[str, str]
) -> dict[str, list[BadValueError]]:
    """Notes in `makers` the DAGs of a pattern or batch; or gives the errors of its members, where one is taken."""
    dags = {runs: f"runs the {what} '{name}'"}
    if any(member.consistency != "weak" for member in members):
        dags[revision_id(runs)] = f"revises the {what} '{name}'"
    taken = next((dag for dag in dags if dag in makers), None)
    if taken is None:
        makers |= dags
        return {}
    others = (f"_{i}" for i in count(2))
    free = name + next(end for end in others if makers.keys().isdisjoint({runs + end, revision_id(runs + end)}))
    key = "name" if what == "pattern" else "batch"
    message = f"the {what} '{name}' would make the DAG '{taken}' in Airflow, which {makers[taken]}"
    hint = f"give it another name, such as {free}"
    return {member.name: [BadValueError(message, place=member.document.place((key,)), hint=hint)] for member in members}
