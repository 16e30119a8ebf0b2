"""The judgement of `check_source` in this process: which rows of a run's windows break the contract.

Of few rows all are read. Of many each data file has a verdict on its rows by themselves (`Question`), which is kept, so
that the next run judges new files only; whether keys are repeated is asked of the hashes of all files at each run. Rows
are read where they break a rule or may share a key. Tables that this process does not read are left to Spark
(`pipelines.quality.scan`).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Bools, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.pipelines.check import Check
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.rules import unique_rules
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.form import arrow_schema
from trendlake.pipelines.lake.here.parquet_scan import BATCH_ROWS, plain_batches
from trendlake.pipelines.lake.here.read import SEARCHED_ROWS, TableHere, inside
from trendlake.pipelines.lake.here.row_groups import all_groups, times
from trendlake.pipelines.lake.road import NotHere, refuse_more
from trendlake.pipelines.quality.quarantine_counts import Broken
from trendlake.pipelines.quality.shared_keys import SharedKey, related, shared_keys, shared_with
from trendlake.pipelines.quality.verdict import Key, Question, Verdict, joined
from trendlake.pipelines.quality.verdict_cache import VerdictCache
from trendlake.pipelines.rules.great_expectations import judge_counts, judge_truth_values
from trendlake.pipelines.rules.keep import keep
from trendlake.pipelines.rules.split import Split, split
from trendlake.pipelines.rules.unique import DIFFER, EQUAL, not_repeating

Span = tuple[int, int]
"""A time range, half-open, microseconds. Rows without a time are in every one."""
HELD = 4
"""Versions of sources whose verdicts are held; their arrays are memory maps."""


@dataclass(frozen=True)
class Judged:
    """Of `rows` rows: the check of each rule of the contract; the `bad` ones, with all columns of the table and
    `REASONS`, counted in `broken`, and how many of them are `repeated`: quarantined because they repeat a key. `times`:
    of all rows of the table that keep the rules of single rows, whatever the windows, int64, microseconds; None of a
    table of many rows."""

    rows: int
    checks: list[Check]
    bad: pa.Table
    broken: Broken
    repeated: int
    times: pa.Array | None


def judge_of(table: TableHere, contract: Contract, verdicts: Path | None) -> FewRows | ManyRows:
    """Reads and judges the rows of `table` by themselves; of many rows the verdicts on files are kept in the folder
    `verdicts`. Raises NotHereError, as the methods of what it returns."""
    most = limits.JUDGED_WHOLE if contract.documents is None else limits.DOCUMENTS_JUDGED
    if table.counted > most:
        return many_rows(table, contract, verdicts)
    if contract.documents is not None:
        table.refuse_large()
    rows = table.every([item.name for item in contract.columns], limits.JUDGED_WHOLE).combine_chunks()
    return FewRows(table, contract, rows, split(rows, contract))


@lru_cache(maxsize=HELD)
def many_rows(table: TableHere, contract: Contract, verdicts: Path | None) -> ManyRows:
    """Held for the next run of this process over the same version: the runs of a backfill have it in common."""
    return ManyRows.of(table, contract, VerdictCache(verdicts))


@dataclass(frozen=True)
class FewRows:
    """The `rows` of a small table, all of them, and which break the contract."""

    table: TableHere
    contract: Contract
    rows: pa.Table
    parted: Split

    def judged(self, span: Span) -> Judged | NotHere:
        contract, rows, parted = self.contract, self.rows, self.parted
        time = pa.nulls(rows.num_rows, pa.int64())
        asked = np.ones(rows.num_rows, np.bool_)
        if not contract.is_reference:
            time = rows[contract.event_time].combine_chunks()
            asked = numbers(inside(rows, contract.event_time, [span]).combine_chunks()) | ~valid(time)
        bad = _set_apart(self.table, contract, parted, asked, np.arange(rows.num_rows))
        if isinstance(bad, NotHere):
            return bad
        alone_good = (parted.broken < 0) | (parted.repeats > 0)
        times_of_good = time.filter(arrow(alone_good)).cast(pa.int64())
        count = int(asked.sum())
        checks = judge_truth_values(self._truth_values(asked), contract.rules, contract.name, count)
        return Judged(count, checks, *bad, times_of_good)

    def _truth_values(self, asked: Bools) -> dict[str, Bools]:
        """For each rule, by its name, whether each row that is asked about keeps it; in a rule of uniqueness their keys
        are compared with each other's, whatever else they break."""
        chosen, truth = self.rows.filter(arrow(asked)), {}
        for rule in self.contract.rules:
            if rule.kind == "unique":
                truth[rule.name] = not_repeating(rule, chosen, [0])
            elif rule.name in self.parted.keeping:
                truth[rule.name] = self.parted.keeping[rule.name][asked]
            elif rule.kind != "row_count":
                truth[rule.name] = keep(rule, chosen)
        return truth


@dataclass(frozen=True)
class ManyRows:
    """The rows of a table of any size, by the verdict on each of its files. Rows are numbered in the order of `files`
    of the table and of the rows there."""

    table: TableHere
    contract: Contract
    question: Question
    verdicts: Sequence[Verdict]

    @classmethod
    def of(cls, table: TableHere, contract: Contract, cache: VerdictCache) -> ManyRows:
        """The rows of all files that have no verdict in `cache` are read. Raises NotHereError."""
        question = Question.of(contract.rules, contract.event_time)
        by_file = {name: cache.find(table.folder, name, question) for name in table.files}
        new = [name for name, verdict in by_file.items() if verdict is None]
        if contract.documents is not None:
            table.part(new).refuse_large()
        by_file |= _verdicts(table, new, question, cache)
        verdicts = [verdict for name in table.files if (verdict := by_file[name]) is not None]
        return cls(table, contract, question, verdicts)

    @cached_property
    def firsts(self) -> Int64s:
        """The number of the first row of each file, and of all rows."""
        return np.cumsum([0, *(verdict.rows for verdict in self.verdicts)], dtype=np.int64)

    @cached_property
    def shared(self) -> Mapping[Key, SharedKey]:
        """All rows that share a key."""
        return shared_keys(self.verdicts, self.question)

    def judged(self, span: Span) -> Judged | NotHere:
        contract, question = self.contract, self.question
        asked = [self._asked(at, span) for at in range(len(self.verdicts))]
        counts: Counter[bytes] = Counter()
        broken = [np.zeros(0, np.int64)]
        for verdict, first, own in zip(self.verdicts, self.firsts, asked, strict=False):
            for mask, count in zip(verdict.masks, verdict.counts(own).tolist(), strict=True):
                counts[mask[: len(question.single)].tobytes()] += count
            bad = verdict.where(~question.good(verdict.masks))
            if bad is not False and own is not False:
                broken.append(first + np.flatnonzero(np.full(verdict.rows, fill_value=True) & bad & own))
        refuse_more(sum(map(len, broken)), limits.JUDGED, "rows that break the contract")
        within = partial(self._within, asked)
        few = counts.total() * limits.ASKED_OF_MANY < self.firsts[-1]
        shared = shared_with(self.verdicts, question, asked) if few else self.shared
        keys = [rule.columns for rule in unique_rules(contract.rules)]
        looked_at = np.union1d(np.concatenate(broken), related(shared, keys, within))
        refuse_more(len(looked_at), limits.JUDGED, "rows that break the contract or share a key")
        rows = self.table.taken([item.name for item in contract.columns], looked_at).combine_chunks()
        bad_rows = _set_apart(self.table, contract, split(rows, contract), within(looked_at), looked_at)
        if isinstance(bad_rows, NotHere):
            return bad_rows
        masks = [(np.frombuffer(mask, np.bool_), count) for mask, count in sorted(counts.items()) if count]
        names = [rule.name for rule in question.single]
        checks = judge_counts(masks, names, self._sharing(shared, within), contract.rules, contract.name)
        return Judged(counts.total(), checks, *bad_rows, None)

    def _asked(self, at: int, span: Span) -> Bools | bool:
        """The rows of a file that are in the span, and those without a time."""
        verdict = self.verdicts[at]
        timeless = verdict.where(~self.question.has_time(verdict.masks))
        if timeless is True:
            return True
        in_span = self.table.in_slice(self.table.files[at], self.contract.event_time, span)
        if isinstance(timeless, bool) or isinstance(in_span, bool):
            return in_span if timeless is False else timeless if in_span is False else True
        return in_span | timeless

    def _within(self, asked: Sequence[Bools | bool], rows: Int64s) -> Bools:
        """Of `rows`, ascending, those that are asked about."""
        bounds = np.searchsorted(rows, self.firsts)
        return np.concatenate(
            [
                np.full(high - low, own) if isinstance(own, bool) else own[rows[low:high] - first]
                for own, first, low, high in zip(asked, self.firsts, bounds, bounds[1:], strict=False)
            ]
            or [np.zeros(0, np.bool_)]
        )

    def _sharing(self, by_key: Mapping[Key, SharedKey], within: partial[Bools]) -> dict[str, int]:
        """How many rows that are asked about share their key with another of them, by the name of each rule of
        uniqueness; whatever else they break."""
        counts = {}
        for rule in self.question.unique:
            shared = by_key[rule.columns]
            rows = shared.rows[shared.among(within(shared.rows))]
            refuse_more(len(rows), limits.JUDGED, "rows that share a key")
            keys = self.table.taken(rule.columns, rows)
            counts[rule.name] = int(np.count_nonzero(~not_repeating(rule, keys, [0])))
        return counts


def _set_apart(
    table: TableHere, contract: Contract, parted: Split, asked: Bools, numbered: Int64s
) -> tuple[pa.Table, Broken, int] | NotHere:
    """The bad rows of those that are `asked` about, as of `Judged`. `parted`: the split of the rows of `table` that
    have the numbers `numbered`."""
    bad = np.flatnonzero(asked & (parted.broken >= 0))
    why = parted.repeats[bad]
    if (why == EQUAL).any() and len(table.schema.names) > len(contract.columns):
        return NotHere("rows that may differ in columns which the contract does not have")
    whole = table.taken(table.schema.names, numbered[bad]) if len(bad) else table.none()
    rows = parted.with_reasons(contract, bad, whole)
    broken = Broken(Counter(rows["rule"].to_pylist()), int(np.count_nonzero((why > 0) & (why != DIFFER))))
    return rows, broken, int(np.count_nonzero(why))


def _verdicts(table: TableHere, files: Sequence[str], question: Question, cache: VerdictCache) -> Mapping[str, Verdict]:
    """Reads and judges `files` of the table: several at once, as many as there are cores, and few are in memory."""
    schema, by_file = arrow_schema(table.schema, question.columns), dict[str, Verdict]()
    at_once = SEARCHED_ROWS if question.reads_documents else BATCH_ROWS
    with ThreadPoolExecutor(pa.cpu_count()) as pool:
        running: deque[Future[dict[str, Verdict]]] = deque()
        try:
            for group in _groups(table, files, at_once):
                running.append(pool.submit(_judged_files, table.folder, group, schema, question, cache, at_once))
                if len(running) > pa.cpu_count():
                    by_file |= running.popleft().result()
            for future in running:
                by_file |= future.result()
        finally:
            for future in running:
                future.cancel()
    pa.default_memory_pool().release_unused()
    return by_file


def _groups(table: TableHere, files: Sequence[str], at_once: int) -> Iterator[list[tuple[str, int]]]:
    """`files` with their rows, small ones together, as many as are judged `at_once`."""
    group: list[tuple[str, int]] = []
    for name in files:
        rows = sum(part.rows for part in times(table.folder / name, ""))
        if group and sum(count for _, count in group) + rows > at_once:
            yield group
            group = []
        group.append((name, rows))
    if group:
        yield group


def _judged_files(
    folder: Path,
    files: Sequence[tuple[str, int]],
    schema: pa.Schema,
    question: Question,
    cache: VerdictCache,
    at_once: int,
) -> dict[str, Verdict]:
    names, sizes = [name for name, _ in files], [rows for _, rows in files]
    batches = (
        batch
        for name in names
        for batch in plain_batches(str(folder / name), schema, all_groups, threads=True, rows=at_once)
    )
    if len(files) == 1:
        verdicts = [joined(map(question.answer, batches), sizes[0], question)]
    else:
        verdicts = question.answer(pa.Table.from_batches(batches, schema).combine_chunks()).parts(sizes)
    return {name: cache.keep(folder, name, verdict, question) for name, verdict in zip(names, verdicts, strict=True)}
