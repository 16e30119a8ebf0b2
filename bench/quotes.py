"""A day of ticks for the bench: prices that swing and jitter, so that Double-Top has work, and some answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from bench.trades import DAY
from trendlake.cep_core.yaml.source import plain, read_yaml
from trendlake.pipelines.project.paths import find_project

CONTRACT = "quotes"


def double_top() -> dict[str, Any]:
    """The shipped pattern, as it is."""
    path: Path = find_project().root / "examples" / "automata" / "double_top.yaml"
    query: dict[str, Any] = plain(read_yaml(path).data)
    del query["name"]
    return query


def write_quotes(spark: SparkSession, path: str, events: int, symbols: int) -> None:
    """`events` ticks in order of time through one day, of each symbol in turn, as a Delta table."""
    number = sf.col("id")
    key, turn = number % symbols, sf.floor(number / symbols)
    quotes = spark.range(0, events, 1, 8).select(
        sf.concat(sf.lit("quote-"), number).alias("event_id"),
        sf.timestamp_micros(number * (DAY // events)).alias("event_time"),
        sf.lit("Tick").alias("event_type"),
        sf.format_string("S%04d", key).alias("symbol"),
        _price(key, turn).alias("price"),
        (_price(key, turn) - _price(key, turn - 1)).alias("change"),
    )
    quotes.write.format("delta").save(path)


def _price(key: Column, turn: Column) -> Column:
    """Dollars: two slow swings, of periods of their own for each key, and a jitter, the same in every run."""
    jitter = sf.pmod(sf.xxhash64(key, turn), sf.lit(1_000)) / 20_000
    return 100 + 25 * sf.sin(turn / (3 + key % 7)) + 5 * sf.sin(turn / 40 + key) + jitter
