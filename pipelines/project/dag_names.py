"""The ids of a project's DAGs in Airflow. One file makes each: of two DAGs of one id Airflow has one, and does not
report the other.

A pattern that runs alone makes `<pattern>`, a batch `batch_<batch>`, a source that patterns read `ingest_<source>`. A
source whose readers are revised makes `<source>_revise`, for results `results_<pattern>_revise`. In version 0.2 each
pattern and batch had a DAG for its own revisions, `<pattern>_revise`: Airflow still has the runs of these, so no other
file's DAG is called so.
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


def source_revision_id(source: str) -> str:
    """The DAG that revises the results over a source."""
    return f"{source.replace('/', '_')}{REVISION}"


def former_revision_id(runs: str) -> str:
    """The DAG that revised what the DAG `runs` publishes, in version 0.2."""
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
    """`batches` by name; `ingested`: the sources that have a DAG; `revised`: the patterns that the DAG of a source
    revises, by its name; `makers`: the work of each DAG, by its id, of those of version 0.2 too; `mistakes`:
    the errors of patterns that differ from their batch, or would make a DAG that another file makes, by name."""

    batches: Mapping[str, Batch]
    ingested: Sequence[str]
    revised: Mapping[str, Sequence[str]]
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
        over: dict[str, list[str]] = {}
        for name in sorted(patterns):
            if patterns[name].tables and patterns[name].consistency != "weak":
                over.setdefault(patterns[name].tables[0], []).append(name)
        makers |= {source_revision_id(source): f"revises the results over '{source}'" for source in over}
        mistakes: dict[str, Sequence[BadValueError]] = {}
        batched: set[str] = set()
        for name, batch in sorted(batches.items()):
            mistakes |= batch.others
            batched |= {*batch.members, *batch.others}
            members = [patterns[member] for member in batch.members]
            mistakes |= _claim("batch", name, batch_id(name), members, makers)
        for name in sorted(patterns.keys() - batched):
            mistakes |= _claim("pattern", name, name, [patterns[name]], makers)
        right = {source: [name for name in names if name not in mistakes] for source, names in over.items()}
        return cls(batches, ingested, right, makers, mistakes)


def _claim(
    what: str, name: str, runs: str, members: Sequence[Pattern], makers: dict[str, str]
) -> dict[str, list[BadValueError]]:
    """Notes in `makers` the DAG of a pattern or batch; or gives the errors of its members, where it is taken."""
    if runs not in makers:
        makers[runs] = f"runs the {what} '{name}'"
        if any(member.consistency != "weak" for member in members):
            makers.setdefault(former_revision_id(runs), f"revised the {what} '{name}' in version 0.2")
        return {}
    free = next(other for i in count(2) if runs + (other := f"_{i}") not in makers)
    key = "name" if what == "pattern" else "batch"
    message = f"the {what} '{name}' would make the DAG '{runs}' in Airflow, which {makers[runs]}"
    hint = f"give it another name, such as {name}{free}"
    return {member.name: [BadValueError(message, place=member.document.place((key,)), hint=hint)] for member in members}
