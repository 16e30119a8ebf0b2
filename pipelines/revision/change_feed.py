"""The changes of a source between two versions, as far as results can depend on them.

The change feed lists a row as often as it was changed. Only the difference of the two versions as bags of rows counts:
`NET` copies of a row came (or went, below 0). Results see only the good rows of it. A row that was quarantined and is
repaired comes; one that breaks the contract now goes; and where a key was repeated, the change of one row decides about
the others that share the key.

Exact: a row's verdict by rules of single rows depends on the row. By rules of uniqueness it depends on the rows that
share its key; so the rows whose verdict can differ are those that share a key with a changed row, or with such a row
by a later rule. All of them, of both versions, are judged again, and the difference of the good ones is the change.

Mostly no key is repeated. Where that is known of the older version, and of one rule, only rows that came can repeat a
key of another row: their keys are looked for in the newer version, a scan of one column, and where each occurs once, a
verdict depends on the row alone.

Where the results speak of several versions, the oldest is compared. A row that went and came again in between has then
changed too, and so has each row that shares a key with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.rules import Rule, unique_rules
from trendlake.pipelines.lake.lake import Lake, read_at
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.quality.uniqueness import BROKEN, KEY, annotate_duplicates, has_key, related
from trendlake.pipelines.revision.source_changes import NET
from trendlake.pipelines.spark.columns import column
from trendlake.pipelines.spark.session import quiet

COPIES = "__trendlake_copies"
CAME = "__trendlake_came"
LOST = (
    "DELTA_MISSING_CHANGE_DATA",
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE",
    "DELTA_CHANGE_TABLE_FEED_DISABLED",
    "DELTA_VERSION_NOT_FOUND",
    "DELTA_VERSIONS_NOT_CONTIGUOUS",
    "DELTA_LOG_FILE_NOT_FOUND",
    "DELTA_TRUNCATED_TRANSACTION_LOG",
    "DELTA_NO_REPRODUCIBLE_HISTORY_FOUND",
    "FAILED_READ_FILE.FILE_NOT_EXIST",
)
"""Delta's errors where the feed was off, or its files or versions are vacuumed."""


@dataclass(frozen=True)
class NoFeed:
    """The change feed does not tell: why, in words."""

    reason: str


@dataclass(frozen=True)
class Changes:
    """`every`: good rows that came or went, with `NET`, and perhaps others; all that have changed where `settled` is
    False. `bad`: whole rows with `BROKEN` that break the contract now and did not before. `rows`: rows that came or
    went, good or bad. `unique`: whether no row of the windows that are published repeats a key in the newer version."""

    every: DataFrame
    settled: bool
    bad: DataFrame
    rows: int
    unique: bool
    persisted: tuple[DataFrame, ...]
    """The DataFrames that are held in memory for them."""

    def good(self, columns: Sequence[str]) -> DataFrame:
        """Those of `every` that differ in `columns`."""
        return (summed_rows if self.settled else _any)(self.every, columns)


def feed(
    lake: Lake, path: str, after: int, upto: int, names: Sequence[str] | None = None, *, net_only: bool = True
) -> tuple[DataFrame, int] | NoFeed:
    """The rows (columns `names`, else all) that came or went between two versions, with `NET` and with `CAME`, whether
    they came at all, kept in memory; and how many kinds of them. Without `net_only` also those that came as often as
    they went. `NoFeed` where the table's change feed does not reach from one version to the other."""
    try:
        with quiet(lake.spark):
            reader = lake.spark.read.format("delta").option("readChangeFeed", "true")
            rows = reader.option("startingVersion", after + 1).option("endingVersion", upto).load(path)
            columns = names or [name for name in rows.columns if not name.startswith(("_change_type", "_commit_"))]
            came = sf.col("_change_type").isin("insert", "update_postimage")
            sums = sf.sum(sf.when(came, 1).otherwise(-1)).alias(NET), sf.bool_or(came).alias(CAME)
            changed = rows.groupBy(*map(column, columns)).agg(*sums)
            changed = (changed.where(sf.col(NET) != 0) if net_only else changed).persist(StorageLevel.MEMORY_AND_DISK)
            return changed, changed.count()
    except (PySparkException, Py4JJavaError) as error:
        missing = lost(error)
        if missing is None:
            raise
        return NoFeed(f"no change feed of versions {after + 1} to {upto} ({missing})")


def lost(error: Exception) -> str | None:
    """Delta's name for an error by which the feed is no longer available; None for any other error."""
    return next((name for name in LOST if name in str(error)), None)


def changes(
    lake: Lake, path: str, contract: Contract, after: int, upto: int, *, settled: bool, unique: bool
) -> Changes | NoFeed:
    """The rows that came and went in the source between two versions, split by its contract. `settled`: all results
    speak of version `after`, none of a newer one. `unique`: in the versions they speak of none of their rows repeated a
    key."""
    keyed = unique_rules(contract.rules)
    # Of rows that share a key the first in the order of all columns stays, so then all columns count.
    names = None if keyed else [item.name for item in contract.columns]
    changed = feed(lake, path, after, upto, names, net_only=settled)
    if isinstance(changed, NoFeed):
        return changed
    net, rows = changed
    source = read_at(lake, path, upto)
    # By a later rule a row could be the first again because an earlier rule no longer sets another row apart.
    alone = not keyed or (
        unique and len(keyed) == 1 and not (rows and _meets(source, _fresh(net, contract, settled), keyed[0]))
    )
    net = net.drop(CAME)
    if alone or not rows:
        flagged = q.annotate(net, contract.rules, unique=False)
        bad = flagged.where((sf.col(NET) > 0) & (sf.size(BROKEN) > 0))
        return Changes(q.good_rows(flagged), settled, _repeated(bad, sf.col(NET)), rows, alone, (net,))
    touched = _judged_anew(source, net, contract).persist(StorageLevel.MEMORY_AND_DISK)
    now = _judged(_repeated(touched, sf.col(COPIES)), contract).withColumn(NET, sf.lit(1))
    then = _judged(_repeated(touched, sf.col(COPIES) - sf.col(NET)), contract).withColumn(NET, sf.lit(-1))
    both = now.unionByName(then)
    bad = both.where(sf.size(BROKEN) > 0)
    bad = summed_rows(bad, [name for name in bad.columns if name != NET]).where(sf.col(NET) > 0)
    every = q.good_rows(both) if settled else touched
    return Changes(every, settled, _repeated(bad, sf.col(NET)), rows, False, (net, touched))


def _fresh(changed: DataFrame, contract: Contract, settled: bool) -> DataFrame:
    """Of the rows that came those that may repeat a key where none was repeated: not a good row that comes for another
    of its key and time, as when a price is corrected. Where some results speak of a version between, the sums do not
    say what came since."""
    came = changed.where(sf.col(CAME))
    if not settled:
        return came
    (rule,) = unique_rules(contract.rules)
    place = [column(name) for name in dict.fromkeys((*rule.columns, contract.event_time)) if name]
    return q.keeping(changed, contract.rules).groupBy(*place).agg(sf.sum(NET).alias(NET)).where(sf.col(NET) > 0)


def _meets(source: DataFrame, came: DataFrame, rule: Rule) -> bool:
    """Whether one of the rows that came shares its key with another row of `source`."""
    key = [column(name) for name in rule.columns]
    came = came.where(has_key(rule)).select(*[value.alias(f"{KEY}{i}") for i, value in enumerate(key)]).distinct()
    if came.isEmpty():
        return False
    same = [value.eqNullSafe(sf.col(f"{KEY}{i}")) for i, value in enumerate(key)]
    sharing = source.select(*key).join(came, same, "left_semi")
    return not sharing.groupBy(*key).count().where(sf.col("count") > 1).isEmpty()


def _judged(rows: DataFrame, contract: Contract) -> DataFrame:
    """Rows that hold all who decide about each other, with `BROKEN`."""
    flagged = q.annotate(rows, contract.rules, unique=False)
    return annotate_duplicates(flagged, unique_rules(contract.rules), None)


def _judged_anew(source: DataFrame, net: DataFrame, contract: Contract) -> DataFrame:
    """The rows whose verdict the changes can touch, with those that decide about them: all columns, `COPIES` in the
    newer version, `NET` of them new."""
    names = [name for name in net.columns if name != NET]
    flagged = q.annotate(source.select(*map(column, names)), contract.rules, unique=False)
    changed = q.annotate(net, contract.rules, unique=False).drop(NET)
    keyed = unique_rules(contract.rules)
    parts: list[DataFrame] = []
    for rule in (*keyed, *keyed[-2::-1]):  # whom a rule touches, forwards; who decides about them, backwards
        more = related(flagged, changed, rule)
        parts.append(more.groupBy(*map(column, names)).agg(sf.count(sf.lit(1)).alias(COPIES)))
        changed = changed.unionByName(more)
    there = reduce(DataFrame.unionByName, parts).withColumn(NET, sf.lit(0).cast("bigint"))
    fresh = net.withColumn(COPIES, sf.greatest(sf.col(NET), sf.lit(0)).cast("bigint"))
    every = there.unionByName(fresh).groupBy(*map(column, names))
    return every.agg(sf.max(COPIES).alias(COPIES), sf.sum(NET).alias(NET))


def _repeated(rows: DataFrame, times: Column) -> DataFrame:
    """Each row as many times as its count says; without the count."""
    counted = rows.withColumn(COPIES, times).where(sf.col(COPIES) > 0)
    more = counted.withColumn(COPIES, sf.explode(sf.sequence(sf.lit(1), sf.col(COPIES).cast("int"))))
    return more.drop(COPIES, NET)


def _any(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The rows over `columns`, each once, whatever their `NET`."""
    return rows.select(*map(column, columns)).distinct()


def summed_rows(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The bag of rows over `columns`, with `NET`, without what cancels out."""
    summed = rows.groupBy(*map(column, columns)).agg(sf.sum(NET).cast("bigint").alias(NET))
    return summed.where(sf.col(NET) != 0)
