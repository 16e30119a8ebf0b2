"""Checks staged rows against the results contract: few rows in this process, those of several runs at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import read_metadata
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, MapType, StringType

from trendlake.cep_core.events.array_types import Bools
from trendlake.pipelines.check import Check
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.rules import Rule, unique_rules
from trendlake.pipelines.errors import ChecksFailedError
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.parquet_scan import plain_batches
from trendlake.pipelines.lake.here.row_groups import all_groups
from trendlake.pipelines.lake.road import NotHere, refuse, refuse_more, tried
from trendlake.pipelines.quality.scan import scan, sharing
from trendlake.pipelines.quality.shared_keys import shared_keys
from trendlake.pipelines.quality.verdict import Question, Verdict, joined
from trendlake.pipelines.results.staging import ORIGIN, staged_folder, staged_here
from trendlake.pipelines.rules.great_expectations import judge, judge_counts, judge_truth_values_of, truth_values
from trendlake.pipelines.runs.run import Run
from trendlake.pipelines.spark.columns import column
from trendlake.pipelines.spark.session import uncompiled


@dataclass(frozen=True)
class StagedRows:
    """Staged rows in this process, and the contract that they are judged by. `owned`: (column, low, high), as of
    `Run.owned`."""

    rows: pa.Table
    contract: Contract
    owned: tuple[str, int, int]

    @property
    def outside(self) -> int:
        return rows_outside(self.rows, self.owned)


def staged_rows(run: Run, number: int, recorded: int, contract: Contract, most: int) -> StagedRows | NotHere:
    """The rows that the attempt `number` has staged, `recorded` in number, where they are no more than `most`, and on
    this machine's disk."""
    if recorded > most:
        together = limits.CHECKED - most + recorded
        return NotHere(f"{together:,} staged rows of the run's patterns, more than {limits.CHECKED:,}")
    rows = staged_here(run, number, most)
    return rows if isinstance(rows, NotHere) else StagedRows(rows, contract, run.owned)


def judged_here(staged: Mapping[int, StagedRows]) -> dict[int, list[Check]]:
    """The check of each rule on the rows of each number. Rows of equal columns and rules are looked at together, and
    Great Expectations judges all of them at once. None of a number whose rows only Spark can judge."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for number, item in staged.items():
        key = (tuple(item.rows.schema), item.contract.rules, tuple(column.type for column in item.contract.columns))
        alike.setdefault(key, []).append(number)
    truth: dict[int, dict[str, Bools]] = {}
    for numbers in alike.values():
        answer = tried(partial(_truth_of, {number: staged[number] for number in numbers}))
        truth |= {} if isinstance(answer, NotHere) else answer
    tables = [(truth[number], staged[number].contract.rules, staged[number].rows.num_rows) for number in truth]
    checks = judge_truth_values_of(tables, "results")
    return dict(zip(truth, checks, strict=True))


def judged_by_file(
    files: Sequence[Path], columns: pa.Schema, rules: Sequence[Rule], name: str, owned: tuple[str, int, int]
) -> tuple[list[Check], int, int]:
    """As `judged` of many rows with `columns`, file by file in this process, as the files of a source are judged.
    Raises NotHereError where rows share a key or its hash, and where there are more of them than hashes are held of."""
    question = Question.of(rules)
    nested = {field.name for field in columns if pa.types.is_nested(field.type)}
    refuse({"keys that have lists": any(nested.intersection(key) for key in question.keys)})
    counts = [read_metadata(file).num_rows for file in files]
    refuse_more(sum(counts), limits.KEYS_COMPARED, "staged rows")
    constant = [one.name for one in ORIGIN if one.name in question.columns and one.dataType == StringType()]
    read = pa.schema([columns.field(name) for name in dict.fromkeys((*question.columns, owned[0]))])

    def answer(file: Path, rows: int) -> tuple[Verdict, int]:
        outside = list[int]()

        def answers() -> Iterator[Verdict]:
            for batch in plain_batches(str(file), read, all_groups, constant, threads=True):
                outside.append(rows_outside(batch, owned))
                yield question.answer(batch)

        return joined(answers(), rows, question), sum(outside)

    with ThreadPoolExecutor(pa.cpu_count()) as pool:
        parts = list(pool.map(answer, files, counts))
    verdicts = [verdict for verdict, _ in parts]
    shared = any(len(one.rows) for one in shared_keys(verdicts, question).values())
    refuse({"staged rows that share a key, or its hash": shared})
    masks: Counter[bytes] = Counter()
    for verdict in verdicts:
        for mask, count in zip(verdict.masks, verdict.counts(True).tolist(), strict=True):
            masks[mask[: len(question.single)].tobytes()] += count
    counted = [(np.frombuffer(mask, np.bool_), count) for mask, count in sorted(masks.items()) if count]
    names, alone = [rule.name for rule in question.single], {rule.name: 0 for rule in question.unique}
    checks = judge_counts(counted, names, alone, rules, name)
    return checks, sum(counts), sum(outside for _, outside in parts)


def _truth_of(staged: Mapping[int, StagedRows]) -> dict[int, dict[str, Bools]]:
    """As `truth_values` of each, whose columns and rules are the same."""
    (first, *_) = staged.values()
    ends = np.cumsum([item.rows.num_rows for item in staged.values()]).tolist()
    starts = [0, *ends[:-1]]
    whole = pa.concat_tables([item.rows for item in staged.values()]).combine_chunks()
    truth = truth_values(whole, first.contract.rules, starts)
    return {
        number: {name: good[start:end] for name, good in truth.items()}
        for number, start, end in zip(staged, starts, ends, strict=True)
    }


def judged(
    staged: DataFrame, rules: Sequence[Rule], name: str, rows: int, owned: tuple[str, int, int] | None
) -> tuple[list[Check], int, int]:
    """The check of each rule, the number of staged rows (some `rows` are expected), and of those outside of `owned`."""
    if rows <= limits.VALIDATED:
        with uncompiled(staged.sparkSession):
            table = staged.toArrow()
        return judge(table, rules, name), table.num_rows, 0 if owned is None else rows_outside(table, owned)
    time = sf.lit(None) if owned is None else sf.unix_micros(column(owned[0]))
    keyed = _hashed(staged, unique_rules(rules))
    scanned = scan(staged, rules, keyed, time, [] if owned is None else [owned[1:]])
    every = scanned.within()
    counted = sum(count for _, count in every)
    outside = 0 if owned is None else counted - sum(count for _, count in scanned.within(owned[1:]))
    # The hashes of keys are of rows that keep the other rules, and are compared with those of rows of the windows.
    alone = not outside and all(keeps.all() for keeps, _ in every)
    different = [rule for rule in keyed if alone and rule.name not in scanned.repeated]
    shared = dict.fromkeys((rule.name for rule in different), 0)
    shared |= sharing(staged, [rule for rule in rules if rule.name not in shared])
    return scanned.checks(every, shared, rules, name), counted, outside


def _hashed(staged: DataFrame, rules: Sequence[Rule]) -> list[Rule]:
    """The rules of uniqueness whose keys have hashes: those without lists."""
    nested = {field.name for field in staged.schema.fields if isinstance(field.dataType, ArrayType | MapType)}
    return [rule for rule in rules if not nested & set(rule.columns)]


def rows_outside(rows: pa.Table | pa.RecordBatch, owned: tuple[str, int, int]) -> int:
    """The rows whose time `owned` does not delimit; a row without a time is not one of them."""
    column, low, high = owned
    time = rows[column].cast(pa.int64())
    return int(pc.sum(pc.or_(pc.less(time, low), pc.greater_equal(time, high))).as_py() or 0)


def refuse_failed(run: Run, staged_version: int, checks: Sequence[Check], rules: Sequence[Rule]) -> None:
    """Raises ChecksFailedError if a check of the staged rows fails, unless it is of a rule of severity warning."""
    warnings = {rule.name for rule in rules if rule.warning}
    failed = [check.name for check in checks if not check.success and check.name not in warnings]
    if failed:
        raise ChecksFailedError(
            f"staged results of {run.name} break the results contract: {', '.join(failed)}",
            hint=f"the rows are in {staged_folder(run, staged_version)}; nothing was published",
        )
