"""`trendlake.Project`: a project's patterns, runs and rows, as the command has them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from trendlake.jobs.actions import backfill as backfilling
from trendlake.jobs.actions import revise as revising
from trendlake.jobs.actions import run as running
from trendlake.jobs.python.caller import Caller
from trendlake.jobs.python.documents import BackfillDocument, RevisionDocument, RunDocument
from trendlake.jobs.python.patterns import PatternFile, PatternFiles
from trendlake.jobs.python.reads import OfDiff, OfEvents, OfHistory, OfResults, OfRuns
from trendlake.jobs.python.results import Results
from trendlake.jobs.terminal.verdict import Verdict
from trendlake.jobs.terminal.workspace import find_place, keep_sessions, let_sessions_go
from trendlake.pipelines.errors import BadTimeError, ProjectError
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.project.selection import Patterns
from trendlake.pipelines.project.stores import refuse_unsafe_store
from trendlake.pipelines.spark.callers_session import refuse_unusable, use_own_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Name = str | PathLike[str]
"""A pattern: its name, its file's path, or one of `Project.patterns`."""
Several = list[str] | list[PatternFile] | tuple[Name, ...]
"""Patterns: names, files, selectors, or what `Project.select` gives."""
Time = str | date
"""A time, ISO 8601, as the command takes it; or a datetime or date, whose zone is UTC if it has none."""
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Project:
    """A project in Python: what the command does, with its words, its defaults and its errors. Nothing is printed.

    `folder`: of the project; None: that of `TRENDLAKE_PROJECT`, else the one around the working directory. `profile`: a
    name under conf/profiles; None: `TRENDLAKE_PROFILE`, else `local`. `spark`: a session of yours with Delta: its
    settings stay, and it is not stopped. Without one the first work that needs Spark
    starts it, and `close`, or the end of `with`, stops it.

    Raises ProjectError, ProfileError, SessionError for a session that does not know Delta.
    """

    def __init__(
        self, folder: Name | None = None, profile: str | None = None, *, spark: SparkSession | None = None
    ) -> None:
        named = None if folder is None else Path(fspath(folder))
        place, own = find_place(named, profile), None
        if spark is not None:
            refuse_unusable(spark)
            own = Lake.of(spark, place.warehouse)
            lake = own.with_new_session()
            use_own_settings(lake.spark)
            place = replace(place, lake=lake)
            ignored = [name for name in ("master", "spark", "jars") if getattr(place.profile, name)]
            if ignored:
                warnings.warn(f"the session is yours: {', '.join(ignored)} of the profile are not used", stacklevel=2)
        self._caller = Caller(place, named, profile, own)
        self._open = True
        keep_sessions()

    @property
    def patterns(self) -> PatternFiles:
        """The patterns by name. As `trendlake ls`."""
        return PatternFiles(self._caller)

    def select(self, *words: str) -> list[PatternFile]:
        """The patterns that names, files and selectors mean, in the order of a run: `select("tag:daily")`. Raises
        ProjectError, PatternErrors."""
        place = self._caller.place
        with self._caller.asking():
            names = Patterns(place.project, place.profile.batches).select(words, lambda: running.last_states(place))
            return [self.patterns[name] for name in names]

    @overload
    def run(
        self,
        patterns: Name,
        start: Time | None = None,
        end: Time | None = None,
        *,
        on: Literal["here", "spark"] | None = None,
        run_id: str | None = None,
    ) -> RunDocument: ...
    @overload
    def run(
        self,
        patterns: Several,
        start: Time | None = None,
        end: Time | None = None,
        *,
        on: Literal["here", "spark"] | None = None,
        run_id: str | None = None,
    ) -> tuple[RunDocument, ...]: ...
    def run(
        self,
        patterns: Name | Several,
        start: Time | None = None,
        end: Time | None = None,
        *,
        on: Literal["here", "spark"] | None = None,
        run_id: str | None = None,
    ) -> RunDocument | tuple[RunDocument, ...]:
        """Runs all steps of a pattern for the windows that end in (start, end]; without both, for the next complete
        ones. As `trendlake run`. Raises the error of a step.

        Of a list of names, files, selectors or patterns, a document for each pattern: an error in one stops no
        other, and is its `error`.
        """
        interval = _interval(start, end)
        with self._writing():
            place = self._caller.place
            if isinstance(patterns, str | PathLike):
                return RunDocument.from_document(running.run_one(place, _one(patterns), interval, run_id, on))
            words = [_typed(one) for one in patterns]
            each = running.run_several(place, words, None, interval, run_id, on)
            return tuple(RunDocument.from_document(one.document if isinstance(one, Verdict) else one) for one in each)

    def backfill(
        self, pattern: Name, start: Time, end: Time, *, chunk: str | None = None, newest_first: bool = False
    ) -> BackfillDocument:
        """Computes a long interval in chunks; started again, it goes on where it stopped. `chunk`: "30 days"; default:
        a twelfth of the interval. As `trendlake backfill`."""
        with self._writing():
            length, interval = backfilling.length_of(chunk), (_time(start), _time(end))
            place = self._caller.place
            *each, done = backfilling.backfill_pattern(place, _one(pattern), interval, length, newest_first, False)
            return BackfillDocument.from_document({**done, "each": each})

    @overload
    def revise(
        self, patterns: Name, *, run_id: str | None = None, if_published: bool = False, unlimited: bool = False
    ) -> RevisionDocument: ...
    @overload
    def revise(
        self, patterns: Several, *, run_id: str | None = None, if_published: bool = False
    ) -> tuple[RevisionDocument, ...]: ...
    def revise(
        self,
        patterns: Name | Several,
        *,
        run_id: str | None = None,
        if_published: bool = False,
        unlimited: bool = False,
    ) -> RevisionDocument | tuple[RevisionDocument, ...]:
        """Brings results up to date with a changed source. As `trendlake revise`; `unlimited` is its `--all`. A
        list as of `run`: `revise(project.select("source:trades+"), if_published=True)`."""
        with self._writing():
            place = self._caller.place
            if isinstance(patterns, str | PathLike):
                done = revising.revise_pattern(
                    place, _one(patterns), run_id, if_published=if_published, unlimited=unlimited
                )
                return RevisionDocument.from_document(done)
            words = [_typed(one) for one in patterns]
            every = revising.revise_several(place, words, run_id, None, if_published=if_published)
            return tuple(map(RevisionDocument.from_document, every.document["patterns"]))

    def results(
        self,
        pattern: Name,
        *,
        as_of: Time | int | None = None,
        start: Time | None = None,
        end: Time | None = None,
        where: Mapping[str, Any] = NOTHING,
        columns: Sequence[str] | None = None,
    ) -> Results:
        """The results of a pattern: of windows that begin in [start, end). `as_of`: a version, or a time. `where`: of
        columns of the key, a value or a list of values; None is NULL. As `trendlake show`, but all rows, in the order
        in which `trendlake.evaluate` gives them."""
        chosen = None if columns is None else tuple(columns)
        read = OfResults(_typed(pattern), _maybe(as_of), _maybe(start), _maybe(end), dict(where), chosen)
        return Results(self._caller, read)

    def diff(self, pattern: Name, start: Time | int, end: Time | int) -> Results:
        """The rows of the results that differ between two versions or times, in the columns `kind`, `before` and
        `after`. As `trendlake diff`, but all rows."""
        return Results(self._caller, OfDiff(_typed(pattern), _time(start), _time(end)))

    def history(self, pattern: Name, window: Time, *, group: Mapping[str, Any] = NOTHING) -> Results:
        """Every value that a group has had in a window, in `row`, and the commit that wrote it. As `trendlake
        history`."""
        return Results(self._caller, OfHistory(_typed(pattern), dict(group), _time(window)))

    def runs(self, pattern: Name | None = None, *, limit: int = 20) -> Results:
        """The newest run records. As `trendlake runs`."""
        name = None if pattern is None else Path(_typed(pattern)).stem
        return Results(self._caller, OfRuns(name, limit))

    def events(
        self, source: str, start: Time | None = None, end: Time | None = None, *, version: int | None = None
    ) -> Results:
        """The events of a source that a run would read, those in [start, end): the rows that keep its contract, one of
        each key. `trendlake.evaluate` knows their columns: `evaluate(project.patterns["falling"], project.events(
        "trades"))`. Of a reference table all good rows."""
        return Results(self._caller, OfEvents(source, _maybe(start), _maybe(end), version))

    def close(self) -> None:
        """Stops Spark, if this project has started it; a session of yours goes on."""
        if self._open:
            self._open = False
            let_sessions_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Project({str(self._caller.place.project.root)!r})"

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Around work that may change the warehouse. Raises UnsafeStoreError."""
        with self._caller.asking():
            refuse_unsafe_store(self._caller.place.profile, self._caller.place.project)
            yield


def _typed(pattern: Name) -> str:
    """The word for a pattern on the command line."""
    return str(fspath(pattern))


def _one(pattern: Name) -> str:
    """As `_typed`, of one pattern. Raises ProjectError for a selector, which may mean several."""
    word = _typed(pattern)
    if isinstance(pattern, str) and running.selects(word):
        raise ProjectError(f"'{word}' may mean several patterns", hint=f"give a list: ['{word}']")
    return word


def _interval(start: Time | None, end: Time | None) -> tuple[str, str] | None:
    if (start is None) != (end is None):
        raise BadTimeError("a run has both start and end, or neither", hint="without both: the next complete windows")
    return None if start is None or end is None else (_time(start), _time(end))


def _time(value: Time | int) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


def _maybe(value: Time | int | None) -> str | None:
    return None if value is None else _time(value)
