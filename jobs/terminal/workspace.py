"""The project of a command, its lake, and the steps of a run with a line for each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from trendlake.cep_core.errors import TrendlakeError
from trendlake.jobs.terminal.lines import print_error, say
from trendlake.jobs.terminal.times import interval_of, micros_of
from trendlake.jobs.terminal.verdict import Verdict
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.project.paths import Project, find_project
from trendlake.pipelines.project.profile import Profile, load_profile
from trendlake.pipelines.project.stores import refuse_unsafe_store

if TYPE_CHECKING:
    from trendlake.pipelines.lake.lake import Lake
    from trendlake.pipelines.lake.road import On
    from trendlake.pipelines.lake.warehouse import Warehouse
    from trendlake.pipelines.runs.run import Run
    from trendlake.pipelines.runs.stage import Record
    from trendlake.pipelines.site.build import Site


ATTEMPTS_SEEN = 20
"""Newest versions of the results among which a run looks for its own."""


Interval = tuple[str, str]
"""`--from` and `--to`, as typed."""


@dataclass(frozen=True)
class Place:
    """A project with its profile; every command that starts Spark needs one."""

    project: Project
    profile: Profile
    lake: Lake | None = None
    """That of a caller's session from Python, which is used and never stopped."""

    @property
    def warehouse(self) -> Warehouse:
        from trendlake.pipelines.lake.warehouse import Warehouse

        return Warehouse.of(self.profile, self.project)


def find_place(project_dir: Path | None, profile: str | None, *, writes: bool = False) -> Place:
    """The project and its profile. `writes`: the command may change the warehouse. Raises ProjectError, ProfileError,
    UnsafeStoreError."""
    project = find_project(project_dir)
    place = Place(project, load_profile(project, profile))
    if writes:
        refuse_unsafe_store(place.profile, project)
    return place


@contextmanager
def session(place: Place, app: str, *, judges: bool = False, writes: bool = False) -> Iterator[Lake]:
    """The lake of a command, whose Spark ends with it. Java starts when something needs Spark: tables that are not on
    this machine's disk, or of a form that only Spark reads, and many rows. `judges`: the command is going to need Great
    Expectations; `writes`: it may change the warehouse."""
    from trendlake.pipelines.lake.lake import Lake

    if judges:
        Thread(target=_import_ahead, name="imports ahead", daemon=True).start()
    if place.lake is not None:
        yield place.lake
        return
    if _WARM.place != place:
        _WARM.stop()
    lake = Lake.on_demand(place.warehouse, place.project, place.profile, app, writes=writes)
    try:
        yield lake
    finally:
        if not _WARM.wanted or lake.ended:
            lake.stop()
        elif lake.started is not None:
            _WARM.place, _WARM.lake = place, lake


@dataclass
class _Warm:
    """The lake whose session a shell, or a project in Python, keeps for its next commands, if they are of the same
    place: Spark has one session in a process. `wanted`: how many keep it."""

    wanted: int = 0
    place: Place | None = None
    lake: Lake | None = None

    def stop(self) -> None:
        if self.lake is not None:
            self.lake.stop()
        self.place = self.lake = None


_WARM = _Warm()


def keep_sessions() -> None:
    """From now on Spark does not end with a command, until all who keep it have let it go."""
    _WARM.wanted += 1


def let_sessions_go() -> None:
    """The end of what `keep_sessions` has begun."""
    _WARM.wanted -= 1
    if not _WARM.wanted:
        _WARM.stop()


@contextmanager
def kept_sessions() -> Iterator[None]:
    """Meanwhile Spark does not end with a command."""
    keep_sessions()
    try:
        yield
    finally:
        let_sessions_go()


def started_lake(place: Place) -> Lake | None:
    """The lake of a place whose Spark has started and goes on; None where there is none."""
    if place.lake is not None:
        return place.lake
    return _WARM.lake if _WARM.place == place and _WARM.lake is not None and not _WARM.lake.ended else None


def _import_ahead() -> None:
    """Imports the modules of a run, in the order in which it needs them. An error is raised where the module is
    needed."""
    with suppress(Exception):
        import_module("trendlake.pipelines.steps.sequence")
        import_module("trendlake.pipelines.rules.great_expectations").import_package()
        import_module("trendlake.pipelines.report.chart")
        import_module("trendlake.pipelines.site.build")


def prepared(
    place: Place, lake: Lake, pattern: str, interval: Interval | None, run_id: str, on: On | None = None
) -> Run:
    """The run of a pattern; without an `interval` it is to be given one. `on`: where its steps are to be done."""
    from trendlake.cep_core import load_pattern
    from trendlake.pipelines.runs.run import prepare

    start, end = 0, 1
    if interval is not None:
        start, end = interval_of(load_pattern(place.project.pattern_path(pattern)), *interval)
    return prepare(lake, place.project, place.profile, pattern, run_id, start, end, on)


def check_early(place: Place, pattern: str, interval: Interval | None) -> str:
    """Checks interval and pattern before Spark is started. Returns the pattern's name."""
    from trendlake.pipelines.authoring.validate import check_pattern

    if interval is not None:
        for text, option in zip(interval, ("--from", "--to"), strict=True):
            micros_of(text, option)
    checked = check_pattern(place.project, place.project.pattern_path(pattern))
    if interval is not None:
        interval_of(checked, *interval, remark=False)
    return checked.name


def run_step(step: str, run: Run) -> Record:
    """Runs one step and prints its summary and time."""
    from trendlake.pipelines.lake.road import road_of
    from trendlake.pipelines.steps.sequence import STEPS

    began = time.monotonic()
    record = STEPS[step](run)
    waiting = undecided(run) if record.stage == "compute" else None
    text = f"{plural(record.windows or 0, 'window')}, no result row yet" if waiting and not record.rows_out else None
    say(f"{step.replace('_', '-'):<14} {text or summary(record):<70} {time.monotonic() - began:6.1f} s")
    if waiting:
        say(f"{'':<14} {waiting}")
    if record.road == "spark":
        say(f"{'':<14} {road_of(vars(record))}")
    notes = {"compute": id_order_of, "check_results": broken}
    for line in notes[record.stage](record) if record.stage in notes else ():
        say(f"{'':<14} {line}")
    return record


def broken(record: Record) -> list[str]:
    """A line for each check that failed without ending the stage."""
    return [f"{check.name}: {check.observed}" for check in record.checks if check.failed]


def undecided(run: Run) -> str | None:
    """Which rows of the run's interval come with later windows; None where a row is known at its last event."""
    from trendlake.pipelines.report.words import stamp

    plan = run.plan
    if not run.windows or plan.result_shape.of_windows:
        return None
    column, _, end = plan.owned(run.windows)
    if end >= plan.windows.end(run.windows[-1]):
        return None
    last = stamp(datetime.fromtimestamp(0, UTC) + timedelta(microseconds=end - 1))
    return f"rows whose {column} is after {last} UTC come with later windows: the last NOT decides them"


def id_order_of(record: Record) -> list[str]:
    """A line where ids alone decide which of two events is the next one."""
    checks = [check for check in record.checks if check.name == "id_order"]
    return [f"{check.observed}: give a column of the source the role sequence" for check in checks]


def set_apart_of(record: Record) -> str:
    """`5 quarantined (id_unique)`; empty if no row was quarantined."""
    return "; ".join(check.observed for check in record.checks if check.name == "set_apart" and check.failed)


def changed(record: Record) -> bool:
    """Whether a publication or a revision has written a new version of the results."""
    return any((record.rows_inserted, record.rows_updated, record.rows_deleted))


def has_new_results(run: Run, record: Record) -> bool:
    """Whether the run has written a new version of the results: the attempt that ends with `record`, or one before it
    that was killed before it could record that."""
    from trendlake.pipelines.lake.commits import recent_commits

    if changed(record):
        return True
    commits = recent_commits(run.lake, run.warehouse.results(run.name), ATTEMPTS_SEEN)
    return any(commit.note.get("run_id") == run.run_id and any(commit.changed) for commit in commits)


def read_by(record: Record) -> str:
    """The versions that a stage has read."""
    if record.sources is None:
        return f"{record.source} at version {record.source_version}"
    return " ".join(f"{name}@{table['version']}" for name, table in record.sources.items())


def summary(record: Record) -> str:
    """One line about what a stage did."""
    if record.stage == "check_source":
        return (
            f"{read_by(record)}: {plural(record.rows_in or 0, 'row')} in, {set_apart_of(record) or 'none quarantined'}"
        )
    if record.stage == "compute":
        return f"{plural(record.windows or 0, 'window')}, {plural(record.rows_out or 0, 'result row')} staged"
    if record.stage == "check_results":
        judged = [check.success for check in record.checks if check.success is not None]
        left = len(record.checks) - len(judged)
        return f"{sum(judged)} of {plural(len(judged), 'check')} hold{f', {left} not judged' if left else ''}"
    return (
        f"version {record.results_version}: {record.rows_inserted:,} inserted, {record.rows_updated:,} updated, "
        f"{record.rows_deleted:,} deleted"
    )


def report(place: Place, lake: Lake, pattern: str, run_id: str) -> dict[str, Path]:
    """Writes the run's report and the pattern's page that links to it; prints and returns their paths."""
    try:
        from trendlake.pipelines.report.build import build_report
        from trendlake.pipelines.site.build import plan_of
    except ImportError as error:
        raise TrendlakeError(f"the report cannot be built: {error}") from error
    began = time.monotonic()
    path = place.project.pattern_path(pattern)
    root = site_of(place, lake).places.root
    paths = build_report(lake, path, run_id, root, plan_of(place.project, path)[0])
    say(f"{'report':<14} {paths.html!s:<70} {time.monotonic() - began:6.1f} s")
    return {"report": paths.html, "picture": paths.png, "site": refresh_site(place, lake, path)}


def report_if_possible(place: Place, lake: Lake, pattern: str, run_id: str) -> dict[str, Path | None]:
    """As `report`, after a publication. One that cannot be written is printed as an error, and the run succeeds."""
    try:
        return {**report(place, lake, pattern, run_id)}
    except Exception as error:
        print_error(f"{pattern}: published; its report could not be written: {_page_failure(error)}")
        print_error(f"    when that is mended: trendlake report {pattern} --run-id '{run_id}'")
        return dict.fromkeys(("report", "picture", "site"))


def _page_failure(error: Exception) -> str:
    from trendlake.pipelines.error_text import in_words
    from trendlake.pipelines.storage_errors import storage_error

    return in_words(storage_error(error) or error)


def reports(place: Place, lake: Lake, patterns: Sequence[str], run_id: str) -> dict[str, dict[str, Path]]:
    """Writes the report of a run of each of `patterns`, their pages, and the index once; prints how many. Returns the
    paths by pattern. A report or a page that cannot be written is printed as an error, and leaves the others."""
    from trendlake.pipelines.report.build import build_report
    from trendlake.pipelines.site.build import Together, plan_of, refresh_patterns

    began = time.monotonic()
    site, files = site_of(place, lake), [place.project.pattern_path(pattern) for pattern in patterns]
    together = Together(site, files)
    paths: dict[str, dict[str, Path]] = {}
    for pattern, path in zip(patterns, files, strict=True):
        try:
            plan, run = plan_of(place.project, path)[0], together.run(path.stem, run_id)
            built = build_report(lake, path, run_id, site.places.root, plan, run)
            paths[path.stem] = {"report": built.html, "picture": built.png}
        except Exception as error:  # the results are published, whatever their page is
            print_error(f"{pattern}: its report could not be written: {_page_failure(error)}")
    for page in refresh_patterns(site, files):
        if page.failure:
            print_error(f"{page.name}: its page could not be written: {page.failure}")
        else:
            paths.setdefault(page.name, {})["site"] = page.page
    done = f"{plural(len(paths), 'pattern')}: {site.places.index}"
    say(f"{'report':<14} {done:<81} {time.monotonic() - began:6.1f} s")
    return paths


def refresh_if_possible(place: Place, lake: Lake, file: Path) -> Path | None:
    """As `refresh_site`, after a revision. A page that cannot be written is printed as an error."""
    try:
        return refresh_site(place, lake, file)
    except Exception as error:
        print_error(f"{file.stem}: revised; its page could not be written: {_page_failure(error)}")
        print_error(f"    when that is mended: trendlake site {file.stem}")
        return None


def refresh_source_page(place: Place, lake: Lake, source: str) -> None:
    """Updates the page of a source whose rows have changed, if the project has one. A page that cannot be written is
    printed as an error: the rows are in the table."""
    from trendlake.pipelines.report.places import Places

    if not Places(place.project.state / "reports").source(source).is_file():
        return
    from trendlake.pipelines.site.build import refresh_source

    try:
        failure = refresh_source(site_of(place, lake), source).failure
    except Exception as error:  # whatever is wrong with the pages
        failure = _page_failure(error)
    if failure:
        print_error(f"{source}: its page could not be written: {failure}")
        print_error("    later: trendlake site")


def refresh_site(place: Place, lake: Lake, file: Path) -> Path:
    """Updates the pattern's page and the index. Returns the path of the page."""
    from trendlake.pipelines.site.build import refresh_pattern

    began = time.monotonic()
    page = refresh_pattern(site_of(place, lake), file)
    say(f"{'site':<14} {page!s:<70} {time.monotonic() - began:6.1f} s")
    return page


def site_of(place: Place, lake: Lake) -> Site:
    """The static site of the project's reports."""
    from trendlake.pipelines.report.places import Places
    from trendlake.pipelines.site.build import Site

    return Site(lake, place.project, Places(place.project.state / "reports"))


def build_site(place: Place, patterns: list[str]) -> Verdict:
    """Writes the pages of `patterns` (default: all), of all sources, the graph and the index; good if every page was
    written. Raises ProjectError."""
    from trendlake.pipelines.site.build import build_site as build

    project = place.project
    files = [project.pattern_path(name) for name in patterns] or project.pattern_files()
    pages, sources, failures, index = [], [], [], None
    with session(place, "trendlake site") as lake:
        for built in build(site_of(place, lake), files):
            card = built.card
            sort = "source" if built.of_source else "pattern"
            if built.failure:
                failures.append({sort: built.name, "failure": built.failure})
                print_error(f"{built.name}: its page could not be written: {built.failure}")
                continue
            said = "all patterns and tables"
            if built.of_source:
                sources.append({"source": built.name, "page": built.page})
                said = "source"
            elif card is None:
                index = built.page
            else:
                pages.append({"pattern": built.name, "page": built.page, "card": card})
                said = f"{card.word}; {card.fresh}; {plural(card.rows or 0, 'row')}"
            say(f"{built.name:<30} {said:<50} {built.page}")
    return Verdict({"index": index, "pages": pages, "sources": sources, "failures": failures}, good=not failures)
