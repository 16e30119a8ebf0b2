"""Expectations in a step's record: the windows that were checked, those they were compared with, and which groups in
which windows break it.

A window is compared with those before it as they are published, in the pattern's present form, and with those that the
same step computes. Where some of these are missing it is not checked, and the verdict reports that: its `success` is
None where nothing could be checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sf

from trendlake.cep_core import AnyPlan
from trendlake.cep_core.events.windows import clock_text, moment
from trendlake.cep_core.patterns.expectations import ExpectationModel, shown
from trendlake.pipelines.check import Check
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import ChecksFailedError
from trendlake.pipelines.history_checks.evaluate import Judged, Stretch, judged_of
from trendlake.pipelines.history_checks.read import cells, group_outcomes, groups_of, missing_of
from trendlake.pipelines.lake.lake import read_at
from trendlake.pipelines.results.coverage import slice_of
from trendlake.pipelines.results.ledger import Ledger, read_ledger
from trendlake.pipelines.results.staging import staged_folder
from trendlake.pipelines.results.windows import MOST, fewer, united
from trendlake.pipelines.runs.consistency import last_ready, ready
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.source_versions import Versions
from trendlake.pipelines.spark.columns import column

SHOWN = 10
"""Groups in windows that a check names; the others are counted."""


@dataclass(frozen=True)
class Beside:
    """The windows that are checked: `wanted`, in result rows `parts`, which hold all of them and those before that are
    `covered`. `then`, `then_covered`: the same before a revision, which answers only for what it breaks; None of a run.
    `version`: of the results."""

    wanted: tuple[Stretch, ...]
    covered: tuple[Stretch, ...]
    parts: tuple[DataFrame, ...]
    version: int | None
    then: DataFrame | None = None
    then_covered: tuple[Stretch, ...] = ()


def of_run(run: Run, staged: DataFrame, sources: Versions) -> list[Check]:
    """The checks of the run's windows, as staged, that may be published; none where nothing is expected."""
    windows = ready(run.windows, last_ready(run, sources)) if run.pattern.expect else range(0)
    if not windows:
        return [_nothing(run, expected) for expected in run.pattern.expect]
    ledger = read_ledger(run.lake, run.name, run.plan, run.sources.name)
    wanted, published = ((windows[0], windows[-1]),), _published(run, ledger)
    back = (windows[0] - _longest(run), windows[0] - 1)
    parts = (staged, _read(run, ledger, (back,))) if _meet(published, back) else (staged,)
    beside = Beside(wanted, _united((*published, *wanted)), parts, ledger.version)
    return [_judged(run, expected, beside) for expected in run.pattern.expect]


def of_revision(
    run: Run,
    ledger: Ledger,
    windows: tuple[Stretch, ...],
    recomputed: Callable[[DataFrame], DataFrame],
    staged: DataFrame,
) -> list[Check]:
    """The checks of what a revision would publish in the `windows` it has computed; `recomputed` selects the published
    rows that `staged` replaces. Breaks that the published rows had before do not count."""
    if not run.pattern.expect or not windows:
        return []
    published = _published(run, ledger)
    back = _united((first - _longest(run), last) for first, last in windows)
    then = _read(run, ledger, back).persist(StorageLevel.MEMORY_AND_DISK)
    left = _without(run.plan, then, recomputed(then)).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        covered = _united((*published, *windows))
        beside = Beside(windows, covered, (left, staged), ledger.version, then, published)
        return [_judged(run, expected, beside) for expected in run.pattern.expect]
    finally:
        left.unpersist()
        then.unpersist()


def refuse_unexpected(run: Run, staged_version: int, checks: Sequence[Check]) -> None:
    """Raises ChecksFailedError if staged rows break an expectation, unless it only warns."""
    warnings = {expected.name for expected in run.pattern.expect if expected.on_break == "warn"}
    failed = [check for check in checks if check.failed and check.name not in warnings]
    if failed:
        reasons = ", ".join(f"{check.name} ({check.observed})" for check in failed)
        raise ChecksFailedError(
            f"staged results of {run.name} are not as it expects: {reasons}",
            hint=f"the rows are in {staged_folder(run, staged_version)}; nothing was published. "
            "Where they are right: on_break: warn",
        )


def _published(run: Run, ledger: Ledger) -> tuple[Stretch, ...]:
    mine = (item for item in ledger.segments if item.sources is not None and item.plan_hash == run.plan.hash)
    return _united((item.first, item.last) for item in mine)


def _united(stretches: Iterable[Stretch]) -> tuple[Stretch, ...]:
    return tuple(united([(first, last + 1) for first, last in stretches], last=True))


def _meet(stretches: Iterable[Stretch], other: Stretch) -> bool:
    return any(first <= other[1] and last >= other[0] for first, last in stretches)


def _longest(run: Run) -> int:
    return max(expected.of_last for expected in run.pattern.expect)


def _read(run: Run, ledger: Ledger, stretches: Sequence[Stretch]) -> DataFrame:
    """Published rows of the windows, and perhaps of some between them."""
    time = column(run.plan.owned(range(1))[0])
    slices = fewer([slice_of(run.plan, *stretch) for stretch in stretches], MOST)
    near = [time.between(moment(low), moment(high - 1)) for low, high in slices]
    path = run.warehouse.results(run.name)
    return read_at(run.lake, path, int(ledger.version or 0)).where(reduce(lambda a, b: a | b, near))


def _without(plan: AnyPlan, rows: DataFrame, others: DataFrame) -> DataFrame:
    """The rows whose key none of `others` has."""
    names = {name: f"__trendlake_gone_{i}" for i, name in enumerate(plan.key)}
    gone = others.select(*[column(name).alias(other) for name, other in names.items()])
    same: list[Column] = [column(name).eqNullSafe(sf.col(other)) for name, other in names.items()]
    return rows.join(gone, same, "anti")


def _judged(run: Run, expected: ExpectationModel, beside: Beside) -> Check:
    judged = judged_of(beside.wanted, beside.covered, expected.of_last)
    if not judged:
        return _check(run, expected, beside, judged, 0, 0, 0, [])
    missing = missing_of(run.pattern, run.plan, expected)
    outcomes = group_outcomes(cells(run.pattern, run.plan, expected, beside.parts), expected, judged, missing)
    outcomes = outcomes.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        total = outcomes.agg(sf.sum("kept"), sf.sum("unjudged"), sf.count("window")).collect()[0]
        satisfied, unjudged, broken = (int(number or 0) for number in total)
        fresh, named = broken, []
        if broken:
            breaks = outcomes.where(sf.col("window").isNotNull())
            if beside.then is not None:
                breaks = _fresh(run, expected, beside, breaks)
                fresh = breaks.count()
            named = breaks.orderBy("window", "group").limit(SHOWN).collect()
        return _check(run, expected, beside, judged, satisfied + broken, unjudged, fresh, named)
    finally:
        outcomes.unpersist()


def _fresh(run: Run, expected: ExpectationModel, beside: Beside, breaks: DataFrame) -> DataFrame:
    """The breaks that were not there before a revision."""
    judged = judged_of(beside.wanted, beside.then_covered, expected.of_last)
    if beside.then is None or not judged:
        return breaks
    missing = missing_of(run.pattern, run.plan, expected)
    old = group_outcomes(cells(run.pattern, run.plan, expected, [beside.then]), expected, judged, missing)
    old = old.where(sf.col("window").isNotNull()).select(
        sf.col("group").alias("old_group"), sf.col("window").alias("old_window")
    )
    same = [sf.col("group").eqNullSafe(sf.col("old_group")), sf.col("window") == sf.col("old_window")]
    return breaks.join(old, same, "anti")


def _nothing(run: Run, expected: ExpectationModel) -> Check:
    return _check(run, expected, Beside((), (), (), None), Judged(()), 0, 0, 0, [])


def _check(
    run: Run,
    expected: ExpectationModel,
    beside: Beside,
    judged: Judged,
    number: int,
    unjudged: int,
    broken: int,
    named: Sequence[Row],
) -> Check:
    """`number`: groups in windows that were judged; `broken`: those of them that break it; `named`: some of the broken
    ones."""
    groups = groups_of(run.pattern, expected)
    windows = sum(last - first + 1 for first, last in beside.wanted)
    what = "groups in windows" if groups else "windows"
    of = f"{plural(number, 'group')} in windows" if groups else plural(number, "window")
    sentences = [f"{broken} of {of} break it" if broken else f"none of {of} breaks it"]
    if broken:
        more = [f"and {broken - len(named)} more"] if broken > len(named) else []
        sentences = [f"{sentences[0]}: {'; '.join([*(_name(run.plan, groups, row) for row in named), *more])}"]
    if not number:
        sentences = ["not judged"] if windows else ["not judged: there is no window"]
    if unjudged:
        sentences.append(f"{unjudged} {what} not judged: no value, or none that is usual")
    if windows > len(judged):
        before = f"the {expected.of_last} before" if expected.of_last > 1 else "the one before"
        missed = f"{windows - len(judged)} of {plural(windows, 'window')} not judged"
        sentences.append(f"{missed}: not all of {before} are published in this form of the pattern")
    data = {
        "judged": number,
        "broken": broken,
        "unjudged": unjudged,
        "windows": windows,
        "windows_judged": len(judged),
        "results_version": beside.version,
    }
    success = None if not number else not broken
    sentence = _asked(expected, groups, beside.version)
    return Check(expected.name, success, "; ".join(sentences), sentence, expected.measure or ", ".join(groups), data)


def _name(plan: AnyPlan, groups: Sequence[str], row: Row) -> str:
    """A group in a window, with its numbers."""
    owner, low, _ = plan.owned(range(row["window"], row["window"] + 1))
    at = f"{owner} {'' if plan.result_shape.of_windows else 'from '}{clock_text(low, ' ')}"
    group = [f"{name}={'NULL' if value is None else value}" for name, value in zip(groups, row["group"], strict=True)]
    numbers = "" if row["usual"] is None else f": {row['value']}, usually {row['usual']}"
    return f"{', '.join([*group, at])}{numbers}"


def _asked(expected: ExpectationModel, groups: Sequence[str], version: int | None) -> str:
    windows = f"{expected.of_last} windows" if expected.of_last > 1 else "window"
    beside = "" if version is None else f"; beside version {version} of the results"
    if expected.between is None:
        each = f"each of the {windows}" if expected.of_last > 1 else "the window"
        return f"a row for every group ({', '.join(groups)}) that has one in {each} before{beside}"
    low, high = (None if bound is None else shown(bound) for bound in expected.between)
    times = f"at most {high}" if low is None else f"at least {low}" if high is None else f"{low} to {high}"
    by = f", by {', '.join(groups)}" if groups else ""
    return f"{times} times the median of the {windows} before{by}{beside}"
