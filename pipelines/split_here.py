"""The split of a table that this process holds, without Spark: rows that keep the contract, rows that break it.

The same rows as `pipelines.quarantine` sets apart (tests/pipeline/test_split_here.py). A rule that means something of
its own to Spark (a function that patterns have not, a regular expression of Java's, an order of NaN) is not judged, and
named: nobody is left to think it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cep_core import syntax as s
from cep_core.buffers import arrow, numbers
from cep_core.codes import group_codes
from cep_core.errors import TrendlakeError
from cep_core.schema import family
from cep_core.typing_rules import infer
from cep_core.values import doubles, evaluate, normalise, true_rows
from pipelines.contract import Contract
from pipelines.contract_rules import Rule
from pipelines.duplicates import unique_rules
from pipelines.repeated_rows import exact, repeated_rows

Array = Any
ONLY_JAVAS = re.compile(r"&&|\[[^\]]*\[|\(\?(?!:)|[*+?}]\+|\\[^dwsDWS.\-\[\](){}*+?|^$/\\]")
"""Intersections, classes in classes, flags and the like, possessive repeats, escapes but the plainest."""
LINES_END = "[\n\x0b\r\x85\u2028\u2029]"


@dataclass(frozen=True)
class Split:
    """`broken`: for each row the first rule it breaks, as its place among the contract's rules; -1 for a good row.
    `unjudged`: names of rules that would set rows apart and were not judged."""

    broken: Array
    unjudged: tuple[str, ...]


def split(table: pa.Table, contract: Contract) -> Split:
    """`table` has the contract's columns in its types; others are behind them, as ingestion puts them."""
    found = split_alone(table, contract)
    for rule in unique_rules(contract.rules):
        rows = np.flatnonzero(found.broken < 0)
        found.broken[_repeated(table, rule, rows)] = contract.rules.index(rule)
    return found


def split_alone(table: pa.Table, contract: Contract) -> Split:
    """As `split`, by the rules of single rows."""
    broken = np.full(table.num_rows, -1)
    unjudged = []
    for number, rule in enumerate(contract.rules):
        if not rule.quarantines or rule.kind == "unique":
            continue
        kept = kept_rows(rule, table, contract)
        if kept is None:
            unjudged.append(rule.name)
        else:
            broken[(broken < 0) & ~kept] = number
    return Split(broken, tuple(unjudged))


def kept_rows(rule: Rule, table: pa.Table, contract: Contract) -> Array | None:
    """Which rows keep a rule of single rows; None where that cannot be said here. NULLs as `quarantine.is_good`."""
    if rule.condition is not None:
        return _condition(rule.condition, table, contract)
    column = table.column(rule.columns[0]).combine_chunks()
    if rule.kind == "not_null":
        return numbers(pc.is_valid(column))
    try:
        kept = _of_column(rule, column)
    except (pa.ArrowException, TypeError):
        return None
    if kept is None or rule.kind == "not_missing":
        return None if kept is None else numbers(kept)
    return numbers(pc.fill_null(kept, True))


def _of_column(rule: Rule, column: Array) -> Array | None:
    if rule.kind in ("in_set", "not_missing"):
        wanted = [value for value in rule.values if value is not None]
        if pa.types.is_floating(column.type):  # as Spark compares them: as doubles, of one zero
            column = pc.add(column.cast(pa.float64()), 0.0)
            wanted = [value + 0.0 if isinstance(value, float) else value for value in wanted]
        listed = pa.array(wanted, column.type)
        found = pc.is_in(column, value_set=listed)
        if rule.kind == "in_set":
            return pc.or_(found, pc.is_null(column))
        return pc.invert(pc.or_(found, pc.is_null(column)) if None in rule.values else found)
    if rule.kind == "pattern":
        return _matched(column, rule.text)
    if rule.kind == "length":
        return _within(pc.utf8_length(column), rule)
    if rule.kind == "range":
        return _within(doubles(column) if pa.types.is_decimal(column.type) else column, rule)
    if rule.kind == "multiple" and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        divisor: Any = rule.high
        with np.errstate(invalid="ignore"):  # an infinite value is a multiple of nothing
            return arrow(np.fmod(numbers(column, 0), divisor) == 0)
    return None


def _matched(column: Array, pattern: str) -> Array | None:
    """None where Arrow's regular expressions (RE2's) and Spark's (Java's) may differ: over the end of a line, the order
    of letters in classes of classes, and what only one of them has."""
    if ONLY_JAVAS.search(pattern) or pc.any(pc.match_substring_regex(column, LINES_END)).as_py():
        return None
    return pc.match_substring_regex(column, pattern)


def _within(value: Array, rule: Rule) -> Array:
    """As Spark orders them: a NaN is above every number."""
    kept = arrow(np.ones(len(value), np.bool_))
    above = pc.is_nan(value) if pa.types.is_floating(value.type) else arrow(np.zeros(len(value), np.bool_))
    if rule.low is not None:
        compared = (pc.greater if rule.low_strict else pc.greater_equal)(value, pa.scalar(rule.low))
        kept = pc.and_kleene(kept, pc.or_kleene(compared, above))
    if rule.high is not None:
        compared = (pc.less if rule.high_strict else pc.less_equal)(value, pa.scalar(rule.high))
        kept = pc.and_kleene(kept, pc.and_kleene(compared, pc.invert(above)))
    return kept


def _condition(condition: s.Expr, table: pa.Table, contract: Contract) -> Array | None:
    families = {item.name: family(item.type) for item in contract.columns}
    names = {node.name for node in _nodes(condition) if isinstance(node, s.Attribute)}
    try:
        infer(condition, lambda attribute: families[attribute.name])
    except (TrendlakeError, KeyError):
        return None
    if any(pa.types.is_floating(table.column(name).type) and pc.any(pc.is_nan(table[name])).as_py() for name in names):
        return None
    columns = {name: normalise(table.column(name)) for name in names}
    widths = [table.column(name).type.bit_width for name in names if pa.types.is_integer(table.column(name).type)]
    if widths and _largest(condition, columns) >= 1 << (min(widths) - 1):
        return None  # Spark's arithmetic may overflow the columns' type, and then it has no answer
    return true_rows(evaluate(condition, lambda attribute: columns[attribute.name], table.num_rows))


def _largest(node: s.Expr, columns: Mapping[str, Array]) -> int:
    """A bound on the magnitude of every whole number that the expression computes on its way."""
    match node:
        case s.Literal(value=int(value), kind=kind) if kind not in ("duration", "timestamp"):
            return abs(value)
        case s.Attribute(name=name) if pa.types.is_integer(columns[name].type):
            ends: dict[str, int | None] = pc.min_max(columns[name]).as_py()
            return max(abs(end or 0) for end in ends.values())
    found = [_largest(child, columns) for child in s.children(node)]
    match node:
        case s.Binary(op="+" | "-"):
            return sum(found)
        case s.Binary(op="*"):
            return max(*found, found[0] * found[1])
    return max(found, default=0)


def _nodes(node: s.Expr) -> Iterator[s.Expr]:
    yield node
    for child in s.children(node):
        yield from _nodes(child)


def _repeated(table: pa.Table, rule: Rule, rows: Array) -> Array:
    """Of `rows`, good so far, those that repeat a key and do not count."""
    keys = [exact(table.column(name)) for name in rule.columns]
    if len(keys) == 1:  # a single column's NULL is no key
        rows = rows[numbers(pc.is_valid(keys[0]))[rows]]
    codes = group_codes([key.take(arrow(rows)) for key in keys], len(rows))
    return repeated_rows(table, rows, codes, rule)
