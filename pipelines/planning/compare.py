"""The state of each pattern: its file as it is now, compared with the notes of its published results.

Forms are compared by their plan hash, contracts by their fingerprint: words such as a description do not count, and
each value that results depend on does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, get_args

from pyspark.sql.types import StructType

from trendlake.cep_core import Pattern
from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.events.names import same_name
from trendlake.cep_core.load import read_pattern
from trendlake.cep_core.patterns.model import PROVENANCE_COLUMNS
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import SourceSchemaError
from trendlake.pipelines.lake.commits import recent_commits
from trendlake.pipelines.lake.lake import Lake, exists
from trendlake.pipelines.lake.table import Table
from trendlake.pipelines.lake.versions import TableVersion
from trendlake.pipelines.planning.basis import PlanBasis
from trendlake.pipelines.planning.cost import Cost, Rates, cost_of
from trendlake.pipelines.planning.judged_windows import judged_windows
from trendlake.pipelines.project.paths import PUBLISHED, Project, upstream
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.results.coverage import spans
from trendlake.pipelines.results.ledger import Ledger, Publications, read_ledger
from trendlake.pipelines.results.named import orphans
from trendlake.pipelines.results.owners import owner_of
from trendlake.pipelines.results.pattern_keys import keys_of
from trendlake.pipelines.results.types import other_types
from trendlake.pipelines.results.windows import Stretch
from trendlake.pipelines.revision.repairs import Repair, repairs
from trendlake.pipelines.revision.scope import Task, older_versions, other_forms, task_of
from trendlake.pipelines.runs.run import Run, prepare

State = Literal[
    "error", "new", "changes_results", "contract", "renamed", "code", "behind", "words_only", "unchanged", "removed"
]
STATES: tuple[State, ...] = get_args(State)
STALE: frozenset[State] = frozenset({"changes_results", "contract", "code"})
"""States of patterns with windows that show something else than the files say."""


@dataclass(frozen=True)
class Columns:
    """The columns of published results that a changed pattern gives no more (`removed`), or with another type
    (`retyped`, a clause each), and those that it adds."""

    removed: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    @property
    def compatible(self) -> bool:
        """Whether readers of the results find all that they had."""
        return not (self.removed or self.retyped)


@dataclass(frozen=True)
class Planned:
    """A pattern: `why` it has its state, in words; `windows`: the stretches of published windows that are stale, of all
    `published` ones; `commands`: those, without `trendlake`, that bring results up to date, in their order;
    `downstream`: patterns that read its results, at any distance, which are revised after it. `run`: of a pattern
    without errors; `columns`: of one that changes results; `keys`: of its file, whose text is another one than when
    results were published, by the digests that were `recorded` then, if they were; `basis`: what was compared;
    `behind`: whether a revision is due, whatever its state is; `cost`: of computing `windows`, None where it is not
    known."""

    pattern: str
    state: State
    why: str = ""
    run: Run | None = None
    windows: tuple[Stretch, ...] = ()
    published: int = 0
    columns: Columns | None = None
    keys: tuple[str, ...] = ()
    recorded: Mapping[str, str] = field(default_factory=dict)
    commands: tuple[str, ...] = ()
    downstream: tuple[str, ...] = ()
    basis: PlanBasis | None = None
    behind: bool = False
    cost: Cost | None = None
    error: TrendlakeError | None = None

    @property
    def count(self) -> int:
        """Of the stale windows."""
        return sum(last - first + 1 for first, last in self.windows)

    @property
    def interval(self) -> tuple[int | None, int] | None:
        """The start of the first stale window and the end of the last one, microseconds; no start where windows hold
        all history."""
        if self.run is None or not self.windows:
            return None
        windows = self.run.plan.windows
        start = None if windows.endless else windows.start(self.windows[0][0])
        return start, windows.end(self.windows[-1][1])


@dataclass
class Comparison:
    """The patterns of a project against what is published in a `lake`. Nothing is written."""

    lake: Lake
    project: Project
    profile: Profile
    newest: dict[str, TableVersion | None] = field(default_factory=dict)
    """The newest version of each table that was asked for, by its path."""

    def of(self, names: Sequence[str], *, removed: bool) -> list[Planned]:
        """Each of the patterns `names` (files outside conf/patterns by their paths), in this order; an error of one
        stops no other. `removed`: also results whose pattern has no file."""
        files = {name: self.project.pattern_path(name) for name in names}
        publications = Publications(self.lake, [path.stem for path in files.values()])
        rates = Rates(self.lake)
        planned = []
        for name in names:
            one = self._planned(name, publications)
            if one.run is not None and one.windows:
                one = replace(one, cost=cost_of(one.run, one.windows, rates))
            planned.append(replace(one, downstream=self.below(one.pattern)))
        planned = _after(planned)
        if removed:
            gone = [orphan for orphan in orphans(self.lake, self.project) if orphan.pattern is not None]
            planned += [Planned(str(one.pattern), "removed", f"{one.table} has no pattern's file") for one in gone]
        return planned

    def now(self, name: str) -> Planned:
        """One pattern, compared with what is published at this moment."""
        self.newest.clear()
        return self._planned(name, Publications(self.lake, [self.project.pattern_path(name).stem]))

    def below(self, name: str) -> tuple[str, ...]:
        """The patterns that read the results of `name`, at any distance, the nearest first."""
        return _below(name, self._readers)

    def _planned(self, name: str, publications: Publications) -> Planned:
        try:
            run = prepare(self.lake, self.project, self.profile, name, "plan", 0, 1)
            ledger = read_ledger(self.lake, run.name, run.plan, run.sources.name, publications)
            return self._compared(run, ledger)
        except TrendlakeError as error:
            return Planned(self.project.pattern_path(name).stem, "error", error=error)

    def _compared(self, run: Run, ledger: Ledger) -> Planned:
        """The first state that applies, in the order of `State`. Raises SourceMissingError, SourceSchemaError."""
        newest = self._newest(run)
        published = sum(last - first + 1 for first, last in spans(ledger.segments))
        states = repairs(run, ledger, newest)
        at = {key: None if table is None else table.version for key, table in newest.items()}
        names = {part.key: part.contract.name for part in run.every_part}
        sources = {names[key]: version for key, version in at.items()}
        basis = PlanBasis(run.plan.hash, run.sources.fingerprint, ledger.version, sources)
        due = any(state.state == "behind_source" for state in states)
        commands = _commands(states)
        base = Planned(run.name, "unchanged", run=run, published=published, commands=commands, basis=basis, behind=due)
        if not ledger.segments:
            return replace(base, state="new", why="nothing is published")
        if forms := tuple(other_forms(run.plan, ledger.segments)):
            columns = _columns(run)
            old = next((ledger.keys[form] for form in reversed([*ledger.keys]) if form != run.plan.hash), {})
            keys = changed_keys(run, old)
            why = _of_keys(keys, columns) or _of_columns(columns)
            base = replace(base, columns=columns, keys=keys, recorded=old)
            return replace(base, state="changes_results", why=why, windows=forms)
        judged = [item for item in ledger.segments if item.sources is not None]
        others = tuple(spans([item for item in judged if item.contract != run.sources.fingerprint]))
        behind = next((state for state in states if state.state in ("behind_source", "source_unreadable")), None)
        if others and run.pattern.consistency != "weak":
            return _of_contract(base, run, task_of(run, ledger, newest), others)
        owner = owner_of(recent_commits(run.lake, run.warehouse.results(run.name)), run.warehouse.table_of(run.name))
        if owner != run.name:
            return replace(base, state="renamed", why=f"its results are those of '{owner}', and stay")
        if (stale := older_versions(run, ledger)) is not None:
            return replace(base, state="code", why=f"windows {stale.reason}", windows=tuple(stale.windows))
        if behind is not None:
            return replace(base, state="behind", why=behind.text)
        old = ledger.keys.get(run.plan.hash, {})
        if keys := changed_keys(run, old):
            return replace(base, state="words_only", why=", ".join(keys), keys=keys, recorded=old)
        return base

    def _newest(self, run: Run) -> Mapping[str, TableVersion | None]:
        """As `Run.newest`, each table asked for once."""
        paths = {part.key: part.warehouse.source(part.contract.name) for part in run.every_part}
        if paths.keys() and not set(paths.values()) <= self.newest.keys():
            self.newest |= {paths[key]: version for key, version in run.newest().items()}
        return {key: self.newest[path] for key, path in paths.items()}

    @cached_property
    def _readers(self) -> dict[str, list[str]]:
        """The patterns of the project that read each table, by the table's name."""
        readers: dict[str, list[str]] = {}
        for path in self.project.pattern_files():
            pattern: Pattern | None = read_pattern(path)[0]
            for table in () if pattern is None else pattern.tables_read:
                readers.setdefault(table, []).append(path.stem)
        return readers


def _after(planned: Sequence[Planned]) -> list[Planned]:
    """The same; a pattern over results that change is behind these: what it promises follows from their pattern, and
    columns that they do not have yet are no error."""
    changed = [one for one in planned if one.state == "changes_results"]
    waits = {name: one.pattern for one in reversed(changed) for name in one.downstream}
    return [
        replace(one, state="behind", why=f"the results of {waits[one.pattern]} change before", error=None)
        if one.pattern in waits and (isinstance(one.error, SourceSchemaError) or _of_results_only(one))
        else one
        for one in planned
    ]


def _of_contract(base: Planned, run: Run, task: Task, others: tuple[Stretch, ...]) -> Planned:
    """`others`: the windows that show another contract. Where only rules have changed, their rows are judged first."""
    if not task.earlier:
        return replace(base, state="contract", why=str(task.reason), windows=others)
    again, judged = judged_windows(run, task), sum(last - first + 1 for first, last in task.published)
    why = f"only rules of its contract have changed: {plural(judged, 'window')} judged again"
    if again is None:
        return replace(base, state="contract", why=f"{why}, and those with another verdict computed", windows=others)
    count = sum(last - first + 1 for first, last in again)
    return replace(base, state="contract", why=f"{why}, {count:,} with another verdict", windows=again)


def _of_results_only(one: Planned) -> bool:
    """Whether contracts have changed, and those of results alone."""
    return one.state == "contract" and one.run is not None and all(map(upstream, one.run.pattern.tables_read))


def _commands(states: Iterable[Repair]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(state.command for state in states if state.command is not None))


def _below(name: str, readers: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The patterns that read the results of `name`, at any distance, the nearest first."""
    below: dict[str, None] = {}
    waiting = [name]
    while waiting:
        for reader in readers.get(f"{PUBLISHED}{waiting.pop(0)}", ()):
            if reader not in below and reader != name:
                below[reader] = None
                waiting.append(reader)
    return tuple(below)


def _columns(run: Run) -> Columns:
    path = run.warehouse.results(run.name)
    there = Table.at(run.lake, path).schema if exists(run.lake, path) else StructType()
    wanted = {same_name(name) for name in run.plan.result_schema.names}
    have = {same_name(name) for name in there.fieldNames()}
    removed = (name for name in there.fieldNames() if same_name(name) not in wanted and name not in PROVENANCE_COLUMNS)
    added = (name for name in run.plan.result_schema.names if same_name(name) not in have)
    return Columns(tuple(removed), tuple(other_types(there, run.plan.result_schema)), tuple(added))


def changed_keys(run: Run, recorded: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of the pattern's file whose text is not the `recorded` one; none where nothing was recorded."""
    if not recorded:
        return ()
    now = keys_of(run.pattern)
    return tuple(key for key in dict.fromkeys((*now, *recorded)) if now.get(key) != recorded.get(key))


def _of_keys(keys: Sequence[str], columns: Columns) -> str:
    """`where, return.mean_price (new column)`; empty where no keys are known."""
    remarks = dict.fromkeys(map(same_name, columns.added), "new column")
    remarks |= dict.fromkeys(map(same_name, columns.removed), "column removed")
    words, named = [], set[str]()
    for key in keys:
        name = same_name(key.removeprefix("return."))
        remark = remarks.get(name) if key.startswith("return.") else None
        named |= {name} if remark else set()
        words.append(f"{key} ({remark})" if remark else key)
    if not words:
        return ""
    left = Columns(
        tuple(name for name in columns.removed if same_name(name) not in named),
        columns.retyped,
        tuple(name for name in columns.added if same_name(name) not in named),
    )
    return "; ".join([", ".join(words), *(() if left == Columns() else (_of_columns(left),))])


def _of_columns(columns: Columns) -> str:
    """`new column mean_price; without lowest`; "the same columns" where they are."""
    clauses = [f"without {', '.join(columns.removed)}"] if columns.removed else []
    clauses += [f"new: {', '.join(columns.added)}"] if columns.added else []
    return "; ".join([*clauses, *columns.retyped]) or "the same columns"
