"""Data Docs: the pages that Great Expectations writes of its findings in a run's results, and of the rules it checked.

They come of a real validation: the rows that the run staged, judged again by the suite of its results contract. As
written, the pages load style and script from the network, and are bare without it. Their contents are arranged here as
the site's other pages are. Its own index is a script's work, and is left out: the pattern's page links to both.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
from markupsafe import Markup, escape
from pyspark.errors import AnalysisException

from trendlake.cep_core import AnyPlan
from trendlake.pipelines.contracts.results import contract_name, results_contract
from trendlake.pipelines.contracts.rule_text import expected_of
from trendlake.pipelines.contracts.rules import Rule
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import folder_name
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.report.facts import RunFacts
from trendlake.pipelines.report.places import Places, write_whole
from trendlake.pipelines.report.render import rendered
from trendlake.pipelines.results.staging import read_folder
from trendlake.pipelines.rules.great_expectations import NATIVE, expectation_of, import_package, quiet_context, renamed
from trendlake.pipelines.site.facts import DocsFacts

WITHOUT_VALUES = {kind: types for kind, types in NATIVE.items() if kind != "in_set"}
"""Kinds of rules whose expectations hold no text of a contract. Great Expectations writes texts into its pages as they
are, HTML too: it gets a token in place of each, and the text is put in afterwards, escaped."""
NOT_CHECKED = "no run of the pattern has checked results yet"


def build_data_docs(
    lake: Lake, project: Project, places: Places, name: str, plan: AnyPlan, runs: Sequence[RunFacts]
) -> DocsFacts:
    """The pages of the newest of `runs` that has checked results; pages that exist are left alone."""
    run = last_checked(runs)
    if run is None or run.staged_version is None:
        return DocsFacts(why_not=NOT_CHECKED)
    if places.checks(name, run.run_id).is_file():
        return DocsFacts(run.run_id, there=True)
    if run.plan_hash != plan.hash:
        return DocsFacts(run.run_id, why_not="the pattern has changed since its results were last checked")
    try:
        staged = read_folder(lake, f"{lake.warehouse.staging(name, run.run_id)}/{run.staged_version}", plan)
    except AnalysisException as error:
        if "PATH_NOT_FOUND" not in str(error):
            raise
        return DocsFacts(run.run_id, why_not="the rows that were checked are no longer staged")
    if staged.limit(limits.VALIDATED + 1).count() > limits.VALIDATED:
        return DocsFacts(
            run.run_id, why_not=f"the run has staged more than {limits.VALIDATED:,} rows, which are judged on Spark"
        )
    rules = results_contract(project.contract_path(contract_name(plan)), plan, name).rules
    judged, names = renamed(staged.toArrow(), rules, WITHOUT_VALUES)
    pandas_rows = judged.to_pandas(types_mapper=pd.ArrowDtype)
    # A column of truth values is called what its rule asks: that is what the pages say of it.
    asks = {f"rule {rule.name}": f"{rule.name}: {expected_of(rule)}" for rule in rules}
    said = {held: asks.get(key, key.removeprefix("column ")) for key, held in names.items()}
    tokens = {held: f"zz{place:05}zz" for place, held in enumerate(sorted(said, key=lambda held: said[held]))}
    pandas_rows = pandas_rows.rename(columns=tokens)
    results, suite = _written(pandas_rows, rules, {key: tokens[held] for key, held in names.items()}, name, run.run_id)
    texts = {token: escape(said[held]) for held, token in tokens.items()}
    pages = (places.checks(name, run.run_id), places.suite(name))
    for page, content, other in ((pages[1], suite, pages[0]), (pages[0], results, pages[1])):
        laid_out = _TOKEN.sub(lambda token: texts.get(token[0], token[0]), content_of(content, other.name))
        html = rendered(
            "checks.html.j2",
            datetime.now(UTC),
            name=name,
            run_id=run.run_id,
            found=page is pages[0],
            other=other.name,
            content=Markup(laid_out),
        )
        write_whole(page, html.encode())
    return DocsFacts(run.run_id, there=True)


def last_checked(runs: Sequence[RunFacts]) -> RunFacts | None:
    """The newest of `runs` (the newest first) that has checked results."""
    return next((run for run in runs if run.stage("check_results") and run.staged_version is not None), None)


def _written(
    table: pd.DataFrame, rules: Sequence[Rule], names: dict[str, str], name: str, run_id: str
) -> tuple[str, str]:
    """The pages of the validation and of the suite, as Great Expectations writes them."""
    context, gx = quiet_context(), import_package()

    with tempfile.TemporaryDirectory() as folder:
        for there in list(context.variables.data_docs_sites or {}):
            context.delete_data_docs_site(there)
        store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": folder}
        site = {"class_name": "SiteBuilder", "show_how_to_buttons": False, "store_backend": store}
        context.add_data_docs_site("site", site | {"site_index_builder": {"class_name": "DefaultSiteIndexBuilder"}})
        batches = context.data_sources.add_pandas("staged").add_dataframe_asset(name)
        expectations = [expectation_of(rule, names) for rule in rules]
        suite = context.suites.add(gx.ExpectationSuite(f"results_{name}", expectations=expectations))
        asked = gx.ValidationDefinition(
            name=name, data=batches.add_batch_definition_whole_dataframe("rows"), suite=suite
        )
        context.validation_definitions.add(asked).run(
            batch_parameters={"dataframe": table},
            result_format={"result_format": "BASIC", "partial_unexpected_count": 0},
            run_id=gx.RunIdentifier(run_name=folder_name(run_id)),  # it names a file of theirs
        )
        context.build_data_docs()
        return _page(folder, "validations"), _page(folder, "expectations")


def _page(folder: str, part: str) -> str:
    """The one page of a part of Great Expectations' site. Raises RuntimeError where it has written none."""
    page = next(Path(folder, part).rglob("*.html"), None)
    if page is None:
        raise RuntimeError(f"Great Expectations has written no page of {part}")
    return page.read_text(encoding="utf-8")


_TOKEN = re.compile(r"zz\d{5}zz")
_CONTENT = re.compile(r'(<div id="section-1".*)</div>\s*</div>\s*</div>\s*(?:<footer|</body)', re.S)
_UNWANTED = re.compile(r'<(script|style)\b.*?</\1>|<link\b[^>]*>|\s(?:style|on[a-z]+|data-[a-z-]+)="[^"]*"', re.S)
_COLLAPSE = re.compile(r'<p class="m-0"\s*>\s*<a\b[^>]*aria-controls[^>]*>.*?</a>\s*</p>', re.S)
_LINK = re.compile(r'href="(?!#)[^"]*"')


def content_of(page: str, other: str) -> str:
    """The contents of a page of Great Expectations, without its frame: no script, no style, no address but `other`.

    Raises RuntimeError where the page is not of the shape that is known.
    """
    body = _CONTENT.search(page)
    if body is None:
        raise RuntimeError("Great Expectations writes its pages in a way that is not known here")
    words = _COLLAPSE.sub("", _UNWANTED.sub("", body[1]))
    return _LINK.sub(f'href="{other}"', words)
