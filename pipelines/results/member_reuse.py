"""Families whose rows of `for_each` were edited: only members that are new are computed.

A commit to a family's results notes its form (the pattern without its rows) and a hash of each member. A member is left
alone where the newest commits that made the run's windows read the same version by the same contract, are of the same
form, and had the member. Its published rows are staged again as they are, together with those that are computed, so
that a publication is what it is for any pattern: the rows of the windows, which replace the published ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from trendlake.cep_core.patterns.parameters import Row
from trendlake.cep_core.sharing.family import FamilyPlan
from trendlake.pipelines.check import Check
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.lake.lake import read_at
from trendlake.pipelines.results.ledger import Ledger
from trendlake.pipelines.results.notes import Note
from trendlake.pipelines.results.owned_rows import Place
from trendlake.pipelines.results.provenance import PLAN_HASH
from trendlake.pipelines.results.publication import conjunction
from trendlake.pipelines.results.reuse import MEMBERS, members_of, publications
from trendlake.pipelines.results.row_versions import stale_rows
from trendlake.pipelines.results.staging import Staged, read_staged, staged_folder
from trendlake.pipelines.results.windows import Pieces
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.spark.columns import column
from trendlake.pipelines.spark.frames import frame_of

WANTED = "__trendlake_"
"""How the columns begin that hold the members whose rows are looked for."""


@dataclass(frozen=True)
class Settled:
    """The `rows` (members) of a family that a run leaves as they are published at `results_version`."""

    rows: tuple[Row, ...] = ()
    results_version: int = 0

    def others(self, run: Run) -> Run:
        """The run of the members that are to be computed."""
        if not self.rows or not isinstance(run.plan, FamilyPlan):
            return run
        known = set(self.rows)
        return replace(run, plan=run.plan.of([row for row in run.plan.parameters.rows if row not in known]))

    def all_of(self, run: Run) -> bool:
        """Whether that are none."""
        return isinstance(run.plan, FamilyPlan) and len(self.rows) == len(run.plan.parameters.rows)

    def check(self, run: Run) -> Check | None:
        """The check of a run that leaves members alone; None for one that computes all."""
        if not self.rows or not isinstance(run.plan, FamilyPlan):
            return None
        every, left = len(run.plan.parameters.rows), len(self.rows)
        observed = f"{left:,} of {plural(every, 'member')} as this pattern has them already"
        data = {"members": every, "members_unchanged": left}
        return Check(MEMBERS, True, observed, f"{every - left:,} computed", data=data)

    def beside(self, run: Run, staged: Staged) -> Staged:
        """Adds the published rows of these members to those that are staged of the run's others."""
        if not self.rows or not isinstance(run.plan, FamilyPlan):
            return staged
        number, _ = staged
        rows = published(run, run.plan.of(self.rows), self.results_version)
        names = read_staged(run, number).columns
        rows.select(*map(column, names)).write.format("parquet").mode("append").save(staged_folder(run, number))
        return number, read_staged(run, number).count()


NONE = Settled()
"""All members are computed."""


def settled_members(
    run: Run, ledger: Ledger, notes: Sequence[Note], sources: Versions, results_version: int
) -> Settled:
    """As `_settled`. `results_version`: the newest commit of those that the `notes` are of; no later one is asked."""
    return Settled(tuple(_settled(run, ledger, notes, sources)), results_version)


def _settled(run: Run, ledger: Ledger, notes: Sequence[Note], sources: Versions) -> list[Row]:
    """The members whose rows of the run's windows are right as they are. `sources`, `notes`: as of `reuse.changed`."""
    plan, windows = run.plan, run.windows
    if not isinstance(plan, FamilyPlan) or not windows:
        return []
    mine = members_of(plan)
    settled, spoken = set(mine), list(publications(plan, notes))
    pieces = Pieces.of(windows, ((first, last) for note in spoken for first, last, _ in note.stretches or ()))
    open_ = np.ones(len(pieces), bool)
    for note in spoken:
        same = _same(run, note, sources)
        for first, last, _ in note.stretches or ():
            meets = pieces.inside(first, last)
            if open_[meets].any() and (same or not note.quiet):
                settled &= _members_in(note) if same else set()
                open_[meets] = False
        if not settled or not open_.any():
            break
    if open_.any() or stale_rows(plan, ((windows[0], windows[-1]),), ledger.row_versions) is not None:
        return []
    return [row for key, row in mine.items() if key in settled]


def _members_in(note: Note) -> set[str]:
    return set() if note.members is None else set(note.members.hashes or ())


def _same(run: Run, note: Note, sources: Versions) -> bool:
    """Whether what a note speaks of is of this form and these versions. A run that asks for the same plan again
    computes it."""
    plan = run.plan
    return (
        isinstance(plan, FamilyPlan)
        and note.members is not None
        and note.members.form == plan.form
        and note.members.hashes is not None
        and note.plan_hash != plan.hash
        and sources.identified
        and (note.sources, note.contract, note.lateness) == (sources, run.sources.fingerprint, run.lateness)
    )


def published(run: Run, family: FamilyPlan, results_version: int) -> DataFrame:
    """The published rows of a family's members in the run's windows."""
    rows = read_at(run.lake, run.warehouse.results(run.name), results_version)
    rows = rows.where(Place(*run.owned).spark() & (column(PLAN_HASH) == family.form))
    wanted = frame_of(run.lake.spark, family.parameters.table(family.parameters.rows))
    renamed = wanted.select(*(column(name).alias(f"{WANTED}{name}") for name in family.parameters.names))
    same = [column(name).eqNullSafe(column(f"{WANTED}{name}")) for name in family.parameters.names]
    return rows.join(sf.broadcast(renamed), conjunction(same), "left_semi")
