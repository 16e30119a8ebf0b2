"""The warehouse: the paths of its tables, and the retry that concurrent writers need."""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from pyspark.errors import AnalysisException

from trendlake.pipelines.errors import BusyTableError, NotOursError, SourceMissingError
from trendlake.pipelines.project.lineage_settings import Lineage
from trendlake.pipelines.project.paths import PUBLISHED, Project, upstream
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.project.table_names import QUARANTINE, shared_table


class OvertakenError(Exception):
    """Another publication came first; Delta skipped the write."""


CONFLICTS = (
    OvertakenError,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
"""Another writer came first. In Python, DeltaConcurrentModificationException is not the others' base."""
ATTEMPTS = 12
KEPT = {"delta.logRetentionDuration": "interval 365 days", "delta.deletedFileRetentionDuration": "interval 365 days"}
"""A past answer can be read again, and the changes of a source followed, for a year."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class Warehouse:
    """Paths of the tables under `root`, a path or URI without a slash at its end; `lineage`: the receiver of events
    about the tables that runs read and write, None for none; `elsewhere`: the places of tables of sources that other
    programs write; `project`: whose contracts say which quarantines there are, and whose pattern files say which
    results tables have other names than their patterns; None where no project is asked about."""

    root: str
    lineage: Lineage | None = None
    elsewhere: Mapping[str, str] = field(default_factory=dict, hash=False)
    project: Project | None = None
    _tables: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, profile: Profile, project: Project) -> Warehouse:
        return cls(profile.warehouse_of(project), profile.lineage_of(project), profile.sources_of(project), project)

    @property
    def runs(self) -> str:
        return f"{self.root}/trendlake_runs"

    def source(self, name: str) -> str:
        """The table of a source. Raises ProjectError where it would be another source's quarantine, or the other way
        round: neither is read or written then."""
        self._refuse_shared(name)
        if name in self.elsewhere:
            return self.elsewhere[name]
        pattern = upstream(name)
        return f"{self.root}/sources/{name}" if pattern is None else self.results(pattern)

    def missing(self, source: str) -> SourceMissingError:
        """The error for a source whose table is missing, with a hint how to create it."""
        name, path = upstream(source), self.source(source)
        if source in self.elsewhere:
            hint = "so says `sources` of the profile: is it a Delta table, and can it be reached?"
            return SourceMissingError(f"the table of the source '{source}' is not at {path}", hint=hint)
        hint = f"run `trendlake ingest {source}`" if name is None else f"run `trendlake run {name}` first"
        return SourceMissingError(f"the source '{source}' is not in the warehouse: {path}", hint=hint)

    def refuse_foreign(self, name: str) -> None:
        """Raises NotOursError for a source whose table other programs write."""
        if name in self.elsewhere:
            raise NotOursError(
                f"the table of '{name}' is written by other programs, says the profile: {self.elsewhere[name]}",
                hint="change it as it is always changed, then `trendlake revise` the patterns that read it",
            )

    def quarantine(self, name: str) -> str:
        """The table of a source's rows that break its contract. Raises ProjectError as `source`."""
        self._refuse_shared(name)
        return f"{self.root}/sources/{name}{QUARANTINE}"

    def _refuse_shared(self, name: str) -> None:
        error = self.project and shared_table(name, self.project.contracts, self.elsewhere)
        if error:
            raise error

    def table_of(self, pattern: str) -> str:
        """The name of the results table of a pattern. It stays as it was when this object was first asked: a file that
        is edited while a run goes on does not send its rows elsewhere."""
        if pattern not in self._tables:
            self._tables[pattern] = (self.project and self.project.table_of(pattern)) or pattern
        return self._tables[pattern]

    def results(self, pattern: str) -> str:
        """The results table of a pattern."""
        return self.results_table(self.table_of(pattern))

    def results_table(self, table: str) -> str:
        """The results table of that name."""
        return f"{self.root}/{PUBLISHED}{table}"

    @property
    def verdicts(self) -> str:
        """Holds verdicts on files of sources (`pipelines.quality.verdict_cache`); it may be removed."""
        return f"{self.root}/verdicts"

    @property
    def contracts(self) -> str:
        """Holds the texts of contracts that results were judged by (`pipelines.contracts.earlier_texts`)."""
        return f"{self.root}/contracts"

    @property
    def staged(self) -> str:
        """Holds `staging` of every pattern and run."""
        return f"{self.root}/staging"

    def staging(self, pattern: str, run_id: str) -> str:
        return f"{self.staged}/{pattern}/{folder_name(run_id)}"


def folder_name(run_id: str) -> str:
    """A run id as the name of a folder below another: colons and the like are no part of Hadoop's paths, `..` is the
    folder above, and what begins with _ or . is hidden from Spark."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", run_id)
    if plain == run_id and len(plain) <= 100 and plain.strip(".") and not plain.startswith(("_", ".")):
        return plain
    return f"{plain[:100].lstrip('._') or 'run'}-{hashlib.sha256(run_id.encode()).hexdigest()[:8]}"


BEING_MADE = ("DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", "DELTA_MISSING_DELTA_TABLE", "DELTA_TABLE_NOT_FOUND")
"""Delta's errors while another writer has made the table's folder and not yet its first commit; and for good, where the
folder holds something else."""


def with_retries(action: Callable[[], Result], what: str) -> Result:
    """`action`, again while other writers get in between. Raises BusyTableError after the last attempt, or Delta's own
    error where a table cannot be made because its folder holds something else."""
    for attempt in range(ATTEMPTS):
        try:
            return action()
        except CONFLICTS as error:
            last: Exception = error
        except AnalysisException as error:
            if not any(name in str(error) for name in ("DELTA_TABLE_ALREADY_EXISTS", *BEING_MADE)):
                raise
            last = error
        time.sleep(random.uniform(0.1, 0.3) * min(2**attempt, 20))
    if any(name in str(last) for name in BEING_MADE):
        raise last
    raise BusyTableError(f"{what}: other writers changed the table at each of {ATTEMPTS} attempts") from last
