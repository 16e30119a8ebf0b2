"""Backfills: a long stretch of history in chunks, one after another in one Spark session.

A chunk is a run like any other, so it may meet the daily schedule's runs, be killed, and be done again: its rows are
published in one commit, and equal rows are left alone. A chunk whose windows show the source's newest version, by the
pattern as it is, is skipped: a backfill that was cut short goes on where it stopped. Windows whose rows an older
version of the code got wrong are skipped too: they have chunks of their own (`stale_chunks`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from trendlake.cep_core.events.windows import DAY, CalendarWindows, Windows, clock_text
from trendlake.cep_core.patterns.lengths import Length
from trendlake.pipelines.errors import BadNumberError
from trendlake.pipelines.lake.lake import Lake, read_at
from trendlake.pipelines.progress import doing
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.results.ledger import read_ledger
from trendlake.pipelines.results.row_versions import StaleRows
from trendlake.pipelines.results.windows import united
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.spark.jvm import java_class
from trendlake.pipelines.steps.sequence import STEPS

CHUNKS = 12
"""The number of chunks of a backfill without `--chunk`: a sign of life every so often, and little lost to a kill."""

MOST_CHUNKS = 100_000
"""Chunks of a backfill: each is a run."""


@dataclass(frozen=True)
class Chunk:
    """The windows that end in `(start_us, end_us]`, microseconds since the epoch."""

    start_us: int
    end_us: int

    @property
    def run_id(self) -> str:
        """The same for the same chunk, so that a second attempt is one."""
        ends = (re.sub("[-:]", "", clock_text(end)) for end in (self.start_us, self.end_us))
        return "_".join(["backfill", *ends])


@dataclass(frozen=True)
class Size:
    """The size of a backfill: rows of the source in the windows' time range, and bytes of the files that hold them."""

    windows: int
    chunks: int
    events: int
    bytes: int


def chunks(windows: Windows, start_us: int, end_us: int, length_us: int | None, *, newest_first: bool) -> list[Chunk]:
    """The interval in chunks of `length_us` (made a multiple of the slide), else in a few. Raises BadNumberError."""
    if isinstance(windows, CalendarWindows):
        chunked = _in_calendar(windows, start_us, end_us, length_us)
        return chunked[::-1] if newest_first else chunked
    if isinstance(length_us, Length) and length_us.months:
        raise BadNumberError("--chunk in months is for patterns with calendar windows", hint="write it in days")
    slide = windows.step
    if length_us is None:
        length_us = -(-(end_us - start_us) // CHUNKS)
    elif length_us < slide:
        raise BadNumberError("a chunk is at least as long as the windows' slide", hint="give a longer --chunk")
    length = -(-length_us // slide) * slide
    if (parts := -(-(end_us - start_us) // length)) > MOST_CHUNKS:
        raise BadNumberError(f"{parts:,} chunks, more than {MOST_CHUNKS:,}", hint="give a longer --chunk")
    edges = [*range(start_us, end_us, length), end_us]
    chunked = [Chunk(low, high) for low, high in pairwise(edges) if windows.ending_in(low, high)]
    return chunked[::-1] if newest_first else chunked


def _in_calendar(windows: CalendarWindows, start_us: int, end_us: int, length: int | None) -> list[Chunk]:
    """Chunks that are cut where windows end; of `length`, where each unit of the calendar that `length` counts in ends:
    `1 month` for windows of days is from one first of the month to the next."""
    own = windows.ending_in(start_us, end_us)
    if not own:
        return []
    if length is None:
        size = -(-len(own) // CHUNKS)
        lasts = [*range(own[0] + size - 1, own[-1], size), own[-1]]
    else:
        if length < windows.step:
            raise BadNumberError("a chunk is at least as long as the windows' slide", hint="give a longer --chunk")
        parts = windows.consecutive(max(1, -(-int(length) // DAY)), length.months if isinstance(length, Length) else 0)
        if len(own) > MOST_CHUNKS and (end_us - start_us) // int(length) > MOST_CHUNKS:
            raise BadNumberError(f"more than {MOST_CHUNKS:,} chunks", hint="give a longer --chunk")
        lasts, at = list[int](), parts.after(windows.end(own[0]) - 1)
        while not lasts or lasts[-1] < own[-1]:
            last = min(own[-1], windows.after(parts.end(at)) - 1)
            if last >= own[0] and (not lasts or last > lasts[-1]):
                lasts.append(last)
            at += 1
    ends = list(dict.fromkeys(windows.end(last) for last in lasts))
    edges = [start_us, *ends[:-1], end_us]
    return [Chunk(low, high) for low, high in pairwise(edges)]


def stale_chunks(windows: Windows, stale: StaleRows, length_us: int | None, *, newest_first: bool) -> list[Chunk]:
    """Chunks of exactly the windows that `stale` names, none longer than `length_us` (None: than a twelfth of them).
    Raises BadNumberError."""
    length_us = -(-stale.count // CHUNKS) * windows.step if length_us is None else length_us
    parts: list[Chunk] = []
    for first, last in stale.windows:
        start, end = windows.since(first), windows.end(last)
        parts += chunks(windows, start, end, length_us, newest_first=False)
    return parts[::-1] if newest_first else parts


def size(lake: Lake, run: Run, count: int) -> Size:
    """The size of `run`, over the whole interval, in `count` chunks. Raises SourceMissingError."""
    newest, counted, read = run.known(run.newest()), 0, 0
    for part in run.parts:
        path = part.warehouse.source(part.contract.name)
        rows = read_at(lake, path, newest.at(part.key).version).where(q.in_range(part.contract, *part.span))
        counted, read = counted + rows.count(), read + sum(_file_sizes(lake, rows.inputFiles()))
    return Size(len(run.windows), count, counted, read)


def _file_sizes(lake: Lake, uris: list[str]) -> Iterator[int]:
    path_of = java_class(lake.spark, "org.apache.hadoop.fs.Path")
    conf = lake.spark.sparkContext._jsc.hadoopConfiguration()
    for uri in uris:
        path = path_of(uri)
        yield int(path.getFileSystem(conf).getFileStatus(path).getLen())


def backfill(
    lake: Lake, prepared: Callable[[Chunk], Run], todo: list[Chunk], *, stale: bool = False
) -> Iterator[tuple[Chunk, Record | None]]:
    """Each chunk with the record of its publishing; None where it was done before. `prepared` makes a chunk's run.
    `stale`: the chunks are those of `stale_chunks`: none was done before, and no other window than theirs is
    computed."""
    with doing("backfill", "chunks", len(todo)) as work:
        for chunk in todo:
            run = prepared(chunk)
            if stale:
                run = run.narrowed(run.plan.windows.ending_in(chunk.start_us, chunk.end_us))
            record: Record | None = None
            if stale or not _done(lake, run):
                for step in STEPS.values():
                    record = step(run)
            work.advance()
            yield chunk, record


def _done(lake: Lake, run: Run) -> bool:
    """Whether all windows of the run show the version that is the newest now, in the pattern's and its contract's
    present form: whoever has published them, and whatever was published in between."""
    wanted = run.windows
    present = (run.plan.hash, run.sources.fingerprint, run.known(run.newest()))
    shown = [
        (segment.first, segment.last)
        for segment in read_ledger(run.lake, run.name, run.plan, run.sources.name).segments
        if segment.sources is not None
        and segment.sources.identified
        and (segment.plan_hash, segment.contract, segment.sources) == present
    ]
    stretches = united([(first, last + 1) for first, last in shown])
    return bool(wanted) and any(first <= wanted[0] and wanted[-1] < end for first, end in stretches)
