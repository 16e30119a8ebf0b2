"""Expressions that are legal in a contract and rarely meant: see `cep_core.expressions.advice`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from trendlake.cep_core.errors import Place, TextError
from trendlake.cep_core.expressions.advice import Advice, Adviser
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.yaml.source import Path_, Source
from trendlake.pipelines.contracts.odcs import Document
from trendlake.pipelines.contracts.row_conditions import parse_row_condition


def advice_of(document: Document, source: Source, families: Mapping[str, str]) -> tuple[Advice, ...]:
    """Advice on every condition of the document. `families`: column -> type family."""
    adviser = Adviser()
    for text, path in _conditions(document):

        def place(span: s.Span, path: Path_ = path) -> Place:
            return source.place(path, offset=span[0], width=span[1] - span[0])

        with suppress(TextError, KeyError):  # whose mistakes the rules report
            adviser.look(parse_row_condition(text), lambda read: families[read.name], place)
    for index, item in enumerate(document.table.properties):
        if item.custom("eventRole") == "sequence" and families.get(item.name) == "string":
            adviser.order("the role sequence", [item.name], source.place(("schema", 0, "properties", index, "name")))
    return tuple(adviser.advice)


def _conditions(document: Document) -> Iterator[tuple[str, Path_]]:
    table: Path_ = ("schema", 0)
    rules = [((*table, "quality", number), one) for number, one in enumerate(document.table.quality)]
    for index, item in enumerate(document.table.properties):
        rules += [((*table, "properties", index, "quality", number), one) for number, one in enumerate(item.quality)]
    for path, rule in rules:
        if rule.engine == "trendlake" and isinstance(rule.implementation, str):
            yield rule.implementation.strip(), (*path, "implementation")
