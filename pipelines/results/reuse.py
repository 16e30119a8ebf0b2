"""Dynamic patterns: where only a part of time is touched by a change, only its windows are computed again.

A plan says by which hash its results are known from window to window (`AnyPlan.stretches`); an arc of an automaton that
lives elsewhere is no part of it. A commit to the results notes the hashes of the windows that it made. A window is
left alone where the newest commit that made it read the same version by the same contract, and its plan, though another
one, had the same hash there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.windows import BEGINNING
from trendlake.cep_core.events.zones import Clock, database
from trendlake.cep_core.patterns.parameters import Row
from trendlake.cep_core.sharing.family import FamilyPlan, row_hash, row_stretches
from trendlake.pipelines.check import Check
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.results.coverage import grid_of, numbered_alike
from trendlake.pipelines.results.ledger import Ledger
from trendlake.pipelines.results.notes import Members, Note, Work, Zone
from trendlake.pipelines.results.pattern_keys import keys_of
from trendlake.pipelines.results.row_versions import stale_rows
from trendlake.pipelines.results.windows import Pieces
from trendlake.pipelines.runs.basis import Basis
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.spark.arrow_functions import of_column
from trendlake.pipelines.spark.columns import column

MEMBERS = "members_changed"
"""The check in a step's record that says how many members of a family were not computed again."""
CHECK = "windows_changed"
"""The check in a step's record that says how many windows of the run were not computed again."""
MOST_NOTED = 10_000
"""Members of a family that a commit notes; the rows of a larger one are all computed again after an edit."""


def noted(run: Run, basis: Basis, shown: Sequence[range], results_table: str | None, work: Work) -> Note:
    """The note of a publication on the windows that it has `shown` on a basis, in unbroken stretches. `work`: which of
    them it has computed."""
    stretches = [stretch for windows in shown if windows for stretch in run.plan.stretches(windows)]
    own = run.warehouse.table_of(run.name) == run.name
    return Note(
        run.plan.hash,
        basis.sources,
        (),
        results_table=results_table,
        contract=basis.contract,
        lateness=basis.lateness,
        grid=grid_of(run.plan),
        stretches=tuple((windows[0], windows[-1], known) for windows, known in stretches),
        members=noted_members(run.plan),
        work=work,
        pattern=None if own else run.name,
        zone=zone_of(run, [windows for windows in shown if windows]),
        contracts=run.sources.fingerprints if run.sources.named else None,
        keys=keys_of(run.pattern),
    )


def zone_of(run: Run, shown: Sequence[range]) -> Zone | None:
    """The clock of the run's pattern in the time of the windows."""
    name, windows = run.pattern.time_zone, run.plan.windows
    if name is None or not shown:
        return None
    start = min(windows.start(some[0]) for some in shown)
    end = max(windows.end(some[-1]) for some in shown)
    start = max(start, BEGINNING)  # of windows without end
    return Zone(name, database(), Clock.of(name).within(start, max(start + 1, end)))


def noted_members(plan: AnyPlan) -> Members | None:
    """The note of a commit about a family's members; None for other plans."""
    if not isinstance(plan, FamilyPlan):
        return None
    known = members_of(plan)
    return Members(plan.form, tuple(sorted(known)) if len(known) <= MOST_NOTED else None)


def members_of(plan: FamilyPlan) -> dict[str, Row]:
    """The rows of a family by hash."""
    hashes = (hashlib.sha256(key.encode()).hexdigest()[:16] for key in plan.parameters.keys)
    return dict(zip(hashes, plan.parameters.rows, strict=True))


def changed(run: Run, ledger: Ledger, notes: Sequence[Note], sources: Versions) -> range:
    """The windows of the run that are to be computed: all between the first and the last that the results do not hold
    already. `sources`: the versions that it reads. `notes`: as of `ledger.notes`, the newest first;
    a quiet one adds to the note of the commit before it. Rows of a version of the
    code that is known to be wrong, or that was not recorded, are not held to be right (`ledger.row_versions`)."""
    windows, spoken = run.windows, list(publications(run.plan, notes))
    if not windows:
        return windows
    own = [(stretch[0], stretch[-1], digest) for stretch, digest in run.plan.stretches(windows)]
    old = stale_rows(run.plan, ((windows[0], windows[-1]),), ledger.row_versions)
    stale = old.windows if old is not None else ()
    named = [(first, last) for part in (own, *(note.stretches or () for note in spoken)) for first, last, _ in part]
    pieces = Pieces.of(windows, (*named, *stale))
    wanted = np.empty(len(pieces), object)
    for first, last, digest in own:
        wanted[pieces.inside(first, last)] = digest
    open_, settled = np.ones(len(pieces), bool), np.zeros(len(pieces), bool)
    for note in spoken:
        read = note.sources, note.contract, note.lateness
        same = sources.identified and read == (sources, run.sources.fingerprint, run.lateness)
        same = same and note.plan_hash != run.plan.hash  # who asks for the same again gets it computed again
        for first, last, known in note.stretches or ():
            mine = pieces.inside(first, last)
            settled[mine] |= open_[mine] & same & (wanted[mine] == known)
            open_[mine] &= note.quiet
    for first, last in stale:
        settled[pieces.inside(first, last)] = False
    left = np.flatnonzero(~settled)
    return pieces.windows(left[0], left[-1]) if len(left) else windows[:0]


def reopened(run: Run, ledger: Ledger, sources: Versions) -> range:
    """The windows of the run, and those before whose rows its events may change: back to the first that shows an older
    version of a table than `sources`, of those that are published without a gap, in the pattern's present form."""
    start = first = run.windows.start
    for segment in reversed(ledger.segments):
        if segment.first >= start:
            continue
        if segment.last < start - 1 or segment.plan_hash != run.plan.hash:
            break
        if segment.sources is None or segment.sources.numbered_above(sources):
            break
        start = segment.first
        if sources.numbered_above(segment.sources) or not segment.sources.identified:
            first = start
    return range(first, run.windows.stop)


def publications(plan: AnyPlan, notes: Iterable[Note]) -> Iterator[Note]:
    """Of `notes`, as of `changed`, those that name windows of `plan`, the newest first, while all are known."""
    for note in notes:
        if note.stretches is not None and numbered_alike(plan, note):
            yield note
        elif not note.quiet:
            return  # it may have made any window, by a plan that is not named or that has other windows


def reuse_check(run: Run, windows: range) -> Check | None:
    """The check of a run that computes `windows` only; None if those are all."""
    if windows == run.windows:
        return None
    unchanged = len(run.windows) - len(windows)
    observed = f"{unchanged:,} of {plural(len(run.windows), 'window')} as this pattern has them already"
    expected = f"windows {windows[0]} to {windows[-1]} computed" if windows else "no window computed"
    data = {"windows": [windows.start, windows.stop], "windows_unchanged": unchanged}
    return Check(CHECK, True, observed, expected, data=data)


def narrowed(run: Run, record: Record) -> tuple[Run, list[Check]]:
    """The run of the windows that an earlier step of it computed (`basis.computed` of its `record`), and that step's
    check of the others."""
    checks = [check for check in record.checks if check.name in (CHECK, MEMBERS)]
    recorded = None if record.basis is None else record.basis.computed
    computed = run.windows if recorded is None else range(*recorded)
    return (run if computed == run.windows else run.narrowed(computed)), checks


def hashes(run: Run) -> tuple[tuple[int, str], ...]:
    """By which hash each result row is known: that of the first pair whose moment (microseconds) its owner, the column
    of `plan.owned`, is before; of the last pair where it is before none."""
    stretches = row_stretches(run.plan, run.windows) if run.windows else ()
    return tuple((run.plan.owned(windows)[2], known) for windows, known in stretches) or ((0, row_hash(run.plan)),)


def row_hashes(plan: AnyPlan, windows: range) -> set[str]:
    """The hashes by which result rows of `windows` may be known in the plan's present form."""
    by_value = plan.result_shape.hashed_by
    if by_value is not None:
        return set(by_value[1].values())
    return {known for _, known in row_stretches(plan, windows)} if windows else {row_hash(plan)}


def current_hashes(plan: AnyPlan, first: int, last: int) -> set[str]:
    """The hashes by which rows of the plan's present form are known whose time is from `first` to `last`,
    microseconds."""
    windows = plan.windows.ending_in(first, last + 1 + plan.windows.longest)
    return {row_hash(plan), *row_hashes(plan, windows)}


def hash_column(run: Run) -> Column:
    """The hash by which each result row is known."""
    by_value = run.plan.result_shape.hashed_by
    if by_value is not None:
        name, by_query = by_value
        return of_column(lambda values: hashes_of(values, by_query), StringType(), column(name))
    *before, (_, hash_of_row) = ((high, sf.lit(known)) for high, known in hashes(run))
    owner = column(run.plan.owned(range(1))[0])
    for high, known in reversed(before):
        hash_of_row = sf.when(owner < sf.timestamp_micros(sf.lit(high)), known).otherwise(hash_of_row)
    return hash_of_row


def hashes_of(values: pa.Array, known: Mapping[str, str]) -> pa.Array:
    """The hash of each of `values`, as texts."""
    encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    return pa.array([known[value] for value in encoded.dictionary.to_pylist()], pa.string()).take(encoded.indices)
