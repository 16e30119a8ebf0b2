"""Building the site: facts of each pattern, its page and its card; then the pages of sources, the graph, and the page
of all cards, which show the states of patterns."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from trendlake.cep_core import AnyPlan, PatternWarning
from trendlake.cep_core.errors import TrendlakeError
from trendlake.pipelines.authoring.validate import compiled
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.contracts.pattern_source import contract_of_events
from trendlake.pipelines.error_text import in_words
from trendlake.pipelines.lake.lake import Lake, exists, latest_version
from trendlake.pipelines.progress import doing
from trendlake.pipelines.project.paths import PUBLISHED, Project
from trendlake.pipelines.report.build import drawn
from trendlake.pipelines.report.database import spill_folder
from trendlake.pipelines.report.facts import PatternFacts, RunFacts
from trendlake.pipelines.report.on_clock import in_interval_of, on_clock
from trendlake.pipelines.report.places import Places, alone, write_whole
from trendlake.pipelines.report.read_pattern import read_pattern
from trendlake.pipelines.results.ledger import Publications
from trendlake.pipelines.results.row_files import content_of
from trendlake.pipelines.runs.intervals import LocalTimes
from trendlake.pipelines.site.cards import card_of, card_text, read_cards, read_sources
from trendlake.pipelines.site.data_docs import NOT_CHECKED, build_data_docs, last_checked
from trendlake.pipelines.site.facts import (
    Card,
    ChangesFacts,
    DocsFacts,
    FreshFacts,
    PatternPageFacts,
    RunsFacts,
    SourceFacts,
)
from trendlake.pipelines.site.freshness import read_freshness, read_source
from trendlake.pipelines.site.graph import Graph, edges_of, has_source_page, links_of, read_graph, upstream_of
from trendlake.pipelines.site.graph_page import graph_page
from trendlake.pipelines.site.pages import index_page, pattern_page
from trendlake.pipelines.site.read_changes import read_changes
from trendlake.pipelines.site.read_overview import read_overview
from trendlake.pipelines.site.read_runs import read_runs, verdict_of
from trendlake.pipelines.site.read_shown import read_shown
from trendlake.pipelines.site.read_table import read_deliveries, read_judgements, read_table
from trendlake.pipelines.site.source_facts import JudgementFacts, SourcePageFacts
from trendlake.pipelines.site.source_page import source_page
from trendlake.pipelines.storage_errors import storage_error


@dataclass(frozen=True)
class Site:
    """The sources of a site, and its paths."""

    lake: Lake
    project: Project
    places: Places


GROUP = 50
"""Patterns whose records are read together: a look at the run record takes as long for all of them as for one. Of more
at once the records would take room."""


class Together:
    """Reads that the pages of several patterns share: the sources, and a group after another the records."""

    def __init__(self, site: Site, files: Sequence[Path]) -> None:
        self._site = site
        self.names = tuple(file.stem for file in files)
        self._group: tuple[str, ...] = ()
        self._version: int | None = None
        self._runs: Mapping[str, RunsFacts] = {}
        self._publications: Publications | None = None
        self.sources: dict[str, SourceFacts] = {}

    @cached_property
    def readers(self) -> Mapping[str, Sequence[str]]:
        """The patterns that read each table, of those that have a page."""
        readers: dict[str, list[str]] = {}
        for card in read_cards(self._site.places, self._site.project):
            for table in card.source.split(", "):
                readers.setdefault(table, []).append(card.name)
        return readers

    def runs(self, name: str) -> RunsFacts:
        """The newest runs of one of the patterns."""
        self._read_group_of(name)
        return self._runs[name]

    def run(self, name: str, run_id: str) -> RunFacts | None:
        """One of the newest runs with its checks; None where it is none of them."""
        runs = self.runs(name)
        return next((run for run in runs.runs[: runs.judged] if run.run_id == run_id), None)

    def publications(self, name: str) -> Publications | None:
        """The recorded publications of the patterns about one of them."""
        self._read_group_of(name)
        return self._publications

    def _read_group_of(self, name: str) -> None:
        version = self._version_now()
        if name in self._group and version == self._version:
            return  # else another process has recorded a run meanwhile, which may be of this pattern
        self._version = version
        groups = (self.names[at : at + GROUP] for at in range(0, len(self.names), GROUP))
        group = next((group for group in groups if name in group), (name,))  # else a file of another name than its own
        try:
            self._read(group)
        except Exception:  # a record that cannot be read is its own pattern's mistake
            if group == (name,):
                raise
            self._read((name,))

    def _version_now(self) -> int | None:
        lake, runs = self._site.lake, self._site.lake.warehouse.runs
        return latest_version(lake, runs) if exists(lake, runs) else None

    def _read(self, group: tuple[str, ...]) -> None:
        self._runs = read_runs(self._site.lake, group)
        self._publications = Publications(self._site.lake, group)
        self._group = group


@dataclass(frozen=True)
class Built:
    """A page that was written: of a pattern, of a source (`of_source`), or of all (`name` empty). `failure`: why it was
    not, in one line."""

    name: str
    page: Path
    card: Card | None = None
    failure: str = ""
    of_source: bool = False


def build_site(site: Site, files: Sequence[Path]) -> list[Built]:
    """The pages of the pattern `files`, with the Data Docs of their last checks, those of all sources, the graph, and
    the page of all patterns. One that cannot be made leaves the others their pages."""
    together = Together(site, files)
    built = [_attempt(site, file, docs=True, together=together) for file in files]
    sources = [path.stem for path in site.project.source_contracts()]
    for page in set(site.places.sources()) - {site.places.source(name) for name in sources}:
        page.unlink(missing_ok=True)  # its contract is gone
    return [*built, *_sources(site, sources), Built("", _index(site))]


def refresh_pattern(site: Site, file: Path) -> Path:
    """Builds the page of one pattern after a run of it, those of the tables that it reads, the graph, and the index, in
    which other patterns of the same source are compared with its version that is newest now. Data Docs are linked where
    they exist: they take the longest. A table's page that cannot be made stays as it was."""
    page = _build(site, file, docs=False, together=Together(site, [file])).page
    _sources(site, _tables_of(site, [file]))
    _index(site)
    return page


def refresh_patterns(site: Site, files: Sequence[Path]) -> list[Built]:
    """As `refresh_pattern`, of several `files`: what they share is read once, and the index is written once. One that
    cannot be made leaves the others their pages."""
    together = Together(site, files)
    built = [_attempt(site, file, docs=False, together=together) for file in files]
    try:
        built += [page for page in _sources(site, _tables_of(site, files)) if page.failure]
        _index(site)
    except OSError as error:
        built.append(Built("index", site.places.index, failure=in_words(storage_error(error) or error)))
    return built


def refresh_source(site: Site, name: str) -> Built:
    """Builds the page of one table after a change of its rows, the graph, and the index."""
    (built,) = _sources(site, [name])
    _index(site)
    return built


def _attempt(site: Site, file: Path, *, docs: bool, together: Together) -> Built:
    try:
        with doing(f"page of {file.stem}"):
            return _build(site, file, docs=docs, together=together)
    except Exception as error:  # whatever is wrong with the tables of one
        return Built(file.stem, site.places.pattern(file.stem), failure=in_words(storage_error(error) or error))


def _build(site: Site, file: Path, *, docs: bool, together: Together) -> Built:
    facts = read_page_facts(site, file, docs=docs, together=together)
    name = facts.pattern.name
    places = site.places
    page, card = places.pattern(name), card_of(facts)
    if facts.newest is not None:
        for file in places.rows(name):
            write_whole(file, content_of(facts.newest.table, file.suffix))
    write_whole(page, pattern_page(facts).encode())
    write_whole(places.card(name), card_text(card, facts.fresh))
    return Built(name, page, card)


def forget_pattern(site: Site, name: str) -> None:
    """Takes a pattern out of the page of all patterns: it has neither a file nor results. Its runs' pages stay."""
    if site.places.card(name).is_file():
        site.places.card(name).unlink()
        _index(site)


def _index(site: Site) -> Path:
    """And the graph, which has the same states."""
    places = site.places
    with alone(places.root):
        cards, now = read_cards(places, site.project), datetime.now(UTC)
        graph = _graph(site, cards)
        write_whole(places.graph, graph_page(graph, now).encode())
        write_whole(places.index, index_page(cards, graph, now).encode())
    return places.index


def _graph(site: Site, cards: Sequence[Card]) -> Graph:
    return read_graph(site.project, site.places, cards, read_sources(site.places), site.lake.warehouse.elsewhere)


def _tables_of(site: Site, files: Sequence[Path]) -> list[str]:
    """The tables that patterns read and that have a page, each once."""
    names = dict.fromkeys(name for file in files for name in edges_of(links_of(file)))
    return [name for name in names if has_source_page(site.project, name)]


def _sources(site: Site, names: Sequence[str]) -> list[Built]:
    """The pages of these tables. One that cannot be made leaves the others theirs."""
    if not names:
        return []
    graph = _graph(site, read_cards(site.places, site.project))
    judgements = read_judgements(site.lake, names)
    return [_source(site, name, graph, judgements) for name in names]


def _source(site: Site, name: str, graph: Graph, judgements: Mapping[str, tuple[JudgementFacts, ...]] | None) -> Built:
    page = site.places.source(name)
    try:
        own = None if judgements is None else judgements.get(name, ())
        write_whole(page, source_page(_source_facts(site, name, own), graph).encode())
    except Exception as error:  # whatever is wrong with one table
        return Built(name, page, failure=in_words(storage_error(error) or error), of_source=True)
    return Built(name, page, of_source=True)


def _source_facts(site: Site, name: str, judgements: tuple[JudgementFacts, ...] | None) -> SourcePageFacts:
    path, contract, mistake = site.project.contracts / f"{name}.yaml", None, ""
    try:
        contract = load_contract(site.project.own(path))
    except TrendlakeError as error:
        mistake = str(error)
    delivered = {one.run_id: one.rows for one in judgements or () if not one.pattern}
    deliveries, more = read_deliveries(site.lake, name, delivered)
    return SourcePageFacts(
        name=name,
        file=_under(site.project, path),
        contract=contract,
        mistake=mistake,
        place=site.lake.warehouse.elsewhere.get(name, ""),
        table=read_table(site.lake, name, contract),
        deliveries=deliveries,
        more_deliveries=more,
        judgements=judgements,
        made_at=datetime.now(UTC),
    )


def read_page_facts(site: Site, file: Path, *, docs: bool, together: Together) -> PatternPageFacts:
    """All that the page of the pattern in `file` says. `together`: of this file among others."""
    lake, places = site.lake, site.places
    pattern = read_pattern(site.project.own(file))
    zone = pattern.time_zone
    plan, mistake = plan_of(site.project, file)
    contracts = {name: _contract(site.project, pattern, name) for name in pattern.tables}
    runs, sources = together.runs(pattern.name), together.sources
    results = lake.warehouse.results(pattern.name)
    published = exists(lake, results)
    overview = read_overview(lake, results, pattern, plan, spill_folder(lake.warehouse)) if published else None
    rows = None if overview is None else read_shown(lake, results, pattern, plan)
    shown, newest = rows or (None, None)
    if overview is not None and shown is not None:
        overview = replace(overview, rows=shown.total, earlier_rows=shown.stale)  # as `trendlake show` counts them
    if pattern.source not in sources:
        sources[pattern.source] = read_source(lake, pattern.source, contracts.get(pattern.source))
    checks_pages = DocsFacts(why_not=mistake or NOT_CHECKED)
    if plan is not None and docs:
        checks_pages = _docs(site, pattern, plan, runs.runs)
    elif not docs:
        checks_pages = _docs_there(
            places, pattern, [run.run_id for run in runs.runs], last_checked(runs.runs) is not None
        )
    return PatternPageFacts(
        pattern=pattern,
        file=_under(site.project, file),
        before=upstream_of(site.project, places, file, together.names),
        mistake=mistake,
        automaton="" if plan is None else drawn(plan, pattern.name),
        plan_hash="" if plan is None else plan.hash,
        contracts=contracts,
        runs=replace(runs, runs=tuple(in_interval_of(run, zone) for run in runs.runs)),
        verdicts={run.run_id: verdict_of(run) for run in runs.runs},
        overview=on_clock(overview, zone),
        shown=on_clock(shown, zone),
        newest=on_clock(newest, zone),
        readers=_readers(site, pattern.name, together),
        changes=read_changes(lake, results, plan, zone) if published else ChangesFacts((), 0),
        fresh=on_clock(_freshness(site, pattern, plan, contracts, file, together), zone),
        docs=checks_pages,
        pages=frozenset(run.run_id for run in runs.runs if places.run(pattern.name, run.run_id).is_file()),
        made_at=datetime.now(UTC),
    )


def _readers(site: Site, name: str, together: Together) -> tuple[str, ...]:
    """The patterns that read the results of the pattern `name`, whatever their table is called."""
    tables = (name, site.lake.warehouse.table_of(name))
    return tuple(
        dict.fromkeys(reader for table in tables for reader in together.readers.get(f"{PUBLISHED}{table}", ()))
    )


def _freshness(
    site: Site,
    pattern: PatternFacts,
    plan: AnyPlan | None,
    contracts: Mapping[str, Contract | None],
    file: Path,
    together: Together,
) -> FreshFacts:
    source, publications = together.sources[pattern.source], together.publications(pattern.name)
    typed = site.project.typed(pattern.name, file)
    times = LocalTimes() if plan is None else LocalTimes.of_windows(pattern.time_zone, plan.windows)
    fresh = read_freshness(site.lake, pattern.name, plan, source, publications, typed, times)
    late = [one.lateness_us or 0 for one in contracts.values() if one is not None]
    lateness = max(late, default=0) if pattern.consistency == "strong" else 0
    fresh = replace(fresh, table=site.lake.warehouse.table_of(pattern.name))
    return replace(fresh, revised=pattern.consistency != "weak", lateness_seconds=lateness / 1e6)


def _docs(site: Site, pattern: PatternFacts, plan: AnyPlan, runs: Sequence[RunFacts]) -> DocsFacts:
    """The pages of Great Expectations, which a pattern's own page can do without."""
    try:
        return build_data_docs(site.lake, site.project, site.places, pattern.name, plan, runs)
    except Exception as error:  # Great Expectations' own
        return DocsFacts(why_not=f"they could not be made: {in_words(error)}")


def plan_of(project: Project, file: Path) -> tuple[AnyPlan | None, str]:
    """The plan, or None and why there is none: what was published outlives a file that no longer compiles."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PatternWarning)
            return compiled(project, file)[1], ""
    except TrendlakeError as error:
        return None, str(error)


def _contract(project: Project, pattern: PatternFacts, source: str) -> Contract | None:
    try:
        return contract_of_events(project, source, (pattern.name,))
    except TrendlakeError:
        return None


def _docs_there(places: Places, pattern: PatternFacts, run_ids: Sequence[str], checked: bool) -> DocsFacts:
    """The Data Docs of the newest run that has some."""
    there = next((run_id for run_id in run_ids if places.checks(pattern.name, run_id).is_file()), None)
    if there is not None:
        return DocsFacts(there, there=True)
    return DocsFacts(why_not="trendlake site makes them" if checked else NOT_CHECKED)


def _under(project: Project, file: Path) -> str:
    """The file as a person would name it."""
    try:
        return str(file.resolve().relative_to(project.root.resolve()))
    except ValueError:
        return str(file)
