"""`trendlake backfill`: computes an interval in chunks, with a line and the remaining time after each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from trendlake.cep_core.errors import TextError, TrendlakeError
from trendlake.cep_core.patterns.lengths import Length
from trendlake.jobs.airflow.notify import notify_of_results
from trendlake.jobs.terminal.hints import as_typed
from trendlake.jobs.terminal.json_output import of_record
from trendlake.jobs.terminal.lines import say
from trendlake.jobs.terminal.times import interval_of
from trendlake.jobs.terminal.workspace import Interval, Place, changed, check_early, session
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import BadNumberError

if TYPE_CHECKING:
    from trendlake.pipelines.lake.lake import Lake
    from trendlake.pipelines.runs.run import Run
    from trendlake.pipelines.steps.backfill import Chunk, Size

SHOWN = 20
"""How many intervals are printed; the others are counted."""


def length_of(chunk: str | None) -> Length | None:
    """`--chunk`. Raises BadNumberError."""
    try:
        return None if chunk is None else Length.of(chunk)
    except TextError as error:
        raise BadNumberError(f"--chunk {chunk!r}: {error.message}", hint="such as 30 days") from None


def backfill_pattern(
    place: Place, pattern: str, interval: Interval, length: Length | None, newest_first: bool, dry_run: bool
) -> Iterator[dict[str, Any]]:
    """As `run_backfill`, in a session of its own; Airflow is notified of new results."""
    name = check_early(place, pattern, interval)
    with session(place, f"trendlake backfill {name}", writes=not dry_run) as lake:
        for document in run_backfill(place, lake, pattern, *interval, length, newest_first, dry_run):
            yield document
    if document.get("changed"):
        notify_of_results(place.project, name)


def run_backfill(
    place: Place,
    lake: Lake,
    pattern: str,
    since: str,
    until: str,
    length: Length | None,
    newest_first: bool,
    dry_run: bool,
) -> Iterator[dict[str, Any]]:
    """Computes the chunks of an interval. Yields a document after each chunk and one for all of them; with `dry_run`
    only the amount of data they would read."""
    from trendlake.cep_core import load_pattern
    from trendlake.pipelines.runs.run import prepare
    from trendlake.pipelines.steps.backfill import chunks, size

    start, end = interval_of(load_pattern(place.project.pattern_path(pattern)), since, until)
    whole = prepare(lake, place.project, place.profile, pattern, "backfill", start, end)
    todo = chunks(whole.plan.windows, start, end, length, newest_first=newest_first)
    if dry_run:
        total = size(lake, whole, len(todo))
        say(describe_size(whole.name, total))
        yield {"pattern": whole.name, **asdict(total)}
        return

    yield from computed(place, lake, pattern, whole.name, todo, stale=False)


def run_stale(
    place: Place, lake: Lake, patterns: Sequence[str], length: Length | None, newest_first: bool, dry_run: bool
) -> Iterator[dict[str, Any]]:
    """Recomputes windows whose rows an older version of the code computed wrongly, or may have. Yields a document with
    the windows of each pattern and, unless `dry_run`, the documents of their chunks. An error of one pattern does not
    stop the others; the first error is raised at the end."""
    from trendlake.cep_core.events.windows import moment
    from trendlake.pipelines.results.ledger import read_ledger
    from trendlake.pipelines.revision.scope import older_versions
    from trendlake.pipelines.runs.intervals import LocalTimes, options_of
    from trendlake.pipelines.runs.intervals import interval_of as moments_of
    from trendlake.pipelines.runs.run import prepare
    from trendlake.pipelines.steps.backfill import stale_chunks

    first: TrendlakeError | None = None
    for pattern in patterns:
        try:
            run = prepare(lake, place.project, place.profile, pattern, "stale", 0, 1)
            ledger = read_ledger(run.lake, run.name, run.plan, run.sources.name)
            stale = older_versions(run, ledger)
        except TrendlakeError as error:
            say(f"{pattern}: {error}")
            first = first or error
            continue
        if stale is None:
            say(f"{run.name}: no window is stale")
            yield {"pattern": run.name, "windows": 0, "stretches": [], "reason": None, "changed": False}
            continue
        say(f"{run.name}: {as_typed(stale.sentence(run.typed))}")
        windows = run.plan.windows
        ends = [moments_of(windows, *stretch) for stretch in stale.windows]
        for stretch in stale.windows[:SHOWN]:
            say(f"  {options_of(windows, *stretch, LocalTimes.of(run.pattern))}")
        if len(ends) > SHOWN:
            say(f"  and {len(ends) - SHOWN} more")
        stretches = [{"from": moment(start), "to": moment(end)} for start, end in ends]
        yield {"pattern": run.name, "windows": stale.count, "stretches": stretches, "reason": stale.reason}
        if not dry_run:
            todo = stale_chunks(windows, stale, length, newest_first=newest_first)
            yield from computed(place, lake, pattern, run.name, todo, stale=True)
    if first is not None:
        raise first


def computed(
    place: Place, lake: Lake, pattern: str, name: str, todo: list[Chunk], *, stale: bool
) -> Iterator[dict[str, Any]]:
    """Yields a document after each chunk, then one for all of them."""
    from trendlake.cep_core.events.windows import moment
    from trendlake.pipelines.runs.run import prepare
    from trendlake.pipelines.steps.backfill import backfill

    def prepared(chunk: Chunk) -> Run:
        return prepare(lake, place.project, place.profile, pattern, chunk.run_id, chunk.start_us, chunk.end_us)

    began, worked, skipped, new = time.monotonic(), 0, 0, False
    for number, (chunk, record) in enumerate(backfill(lake, prepared, todo, stale=stale), start=1):
        new = new or (record is not None and changed(record))
        worked, skipped = worked + (record is not None), skipped + (record is None)
        spent = time.monotonic() - began
        left = spent / worked * (len(todo) - number) if worked else None
        say(f"chunk {number:>3}/{len(todo)}  {_days(chunk)}  {_done(record)}{_left(left, number == len(todo))}")
        yield {
            "chunk": number,
            "of": len(todo),
            "from": moment(chunk.start_us),
            "to": moment(chunk.end_us),
            "run_id": chunk.run_id,
            "publication": record and of_record(record),
        }
    seconds = time.monotonic() - began
    say(f"{name}: {plural(worked, 'chunk')} computed, {skipped} done before, in {seconds:.0f} s")
    about = {"pattern": name, "chunks": len(todo), "computed": worked, "done_before": skipped}
    yield {**about, "seconds": seconds, "changed": new}


def describe_size(name: str, total: Size) -> str:
    """The line that a dry run prints."""
    return (
        f"{name}: {plural(total.windows, 'window')} in {plural(total.chunks, 'chunk')}, "
        f"{plural(total.events, 'event')} in their time range, "
        f"files of {total.bytes / 1e6:,.1f} MB"
    )


def _days(chunk: Chunk) -> str:
    from trendlake.cep_core.events.windows import clock_text

    return " to ".join(clock_text(end, " ").removesuffix(":00") for end in (chunk.start_us, chunk.end_us))


def _done(record: object) -> str:
    from trendlake.pipelines.runs.stage import Record

    if not isinstance(record, Record):
        return "done before"
    return f"{record.rows_inserted:,} inserted, {record.rows_updated:,} updated, {record.rows_deleted:,} deleted"


def _left(seconds: float | None, last: bool) -> str:
    if seconds is None or last:
        return ""
    return f"  (about {seconds / 60:.0f} min left)" if seconds >= 90 else f"  (about {seconds:.0f} s left)"
