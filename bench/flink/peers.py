"""All that Flink is measured on."""

from __future__ import annotations

from pathlib import Path

from bench.flink.falling_prices import falling_prices
from bench.flink.sequence import sequence
from bench.flink.templates import templates
from bench.measured import Measured


def peers(folder: Path) -> list[Measured]:
    """GRETA's first query, of kind trends, SASE+'s templates, of kind matches, and a sequence of kind algebra."""
    return [*falling_prices(folder), *templates(folder), *sequence(folder)]
