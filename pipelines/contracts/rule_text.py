"""Rules in words, for the reason of a quarantined row and the verdict in a report."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trendlake.pipelines.contracts.rules import Limit, Rule

COMPARISONS = {
    "must_be": "exactly {low}",
    "must_not_be": "not {low}",
    "must_be_greater_than": "more than {low}",
    "must_be_greater_or_equal_to": "at least {low}",
    "must_be_less_than": "fewer than {low}",
    "must_be_less_or_equal_to": "at most {low}",
    "must_be_between": "{low} to {high}",
    "must_not_be_between": "not {low} to {high}",
}


XML_FAULTS = {
    "xml_too_large": "is larger than 8 MiB",
    "xml_doctype": "has a DOCTYPE",
    "xml_too_deep": "has more than 256 elements within one another",
    "xml_not_well_formed": "is not well-formed XML",
}
"""The fault of a document that breaks a rule of documents, in words."""


def reason_of(rule: Rule) -> str:
    """Why a row breaks the rule: `dep_delay_range: dep_delay is not in [-30, 1440]`."""
    column = ", ".join(rule.columns)
    said = {
        "not_null": f"{column} is missing",
        "not_missing": f"{column} is missing",
        "in_set": f"{column} is none of {', '.join(str(value) for value in rule.values)}",
        "pattern": f"{column} does not match {rule.text}",
        "range": f"{column} is not in {interval(rule)}",
        "length": f"the length of {column} is not in {interval(rule)}",
        "multiple": f"{column} is no multiple of {rule.high}",
        "unique": f"another row has the same {column}",
        "row_count": "number of rows",
        "items": f"the number of items of {column} is not in {interval(rule)}",
        "distinct_items": f"an item comes twice in {column}",
        "xml": f"{column} {XML_FAULTS.get(rule.text, rule.text)}",
        "row": f"breaks: {rule.description or rule.text}",
    }[rule.kind]
    return f"{rule.name}: {said}"


@dataclass(frozen=True)
class RepeatReasons:
    """Why a row that repeats a key is quarantined: an `equal` row counts already; a row of a higher sequence counts,
    this is `older`; the rows `differ`, and nothing says which counts."""

    equal: str
    older: str
    differ: str


def repeat_reasons(rule: Rule) -> RepeatReasons:
    """Of a rule of uniqueness: `id_unique: another row has the same id and equal values`."""
    column = ", ".join(rule.columns)
    other = f"{rule.name}: another row has the same {column}"
    undecided = f"the same {rule.sequence}" if rule.sequence else "no sequence says which row counts"
    return RepeatReasons(
        f"{other} and equal values",
        f"{other} and a higher {rule.sequence}",
        f"{other} and other values, and {undecided}",
    )


def expected_of(rule: Rule) -> str:
    """The requirement of the rule: `in [-30, 1440]`, with the bound on how many rows may break it, if not none."""
    said = {
        "not_null": "not null",
        "not_missing": f"none of {', '.join(str(value) for value in rule.values)}",
        "in_set": f"one of {', '.join(str(value) for value in rule.values)}",
        "pattern": f"matches {rule.text}",
        "range": f"in {interval(rule)}",
        "length": f"length in {interval(rule)}",
        "multiple": f"multiple of {rule.high}",
        "unique": "unique",
        "row_count": f"{amount(rule.limit)} rows",
        "items": f"number of items in {interval(rule)}",
        "distinct_items": "no item twice, none missing",
        "xml": f"no document that {XML_FAULTS.get(rule.text, rule.text)}",
        "row": rule.text,
    }[rule.kind]
    if rule.kind == "row_count" or rule.limit.none_allowed:
        return said
    return f"{said}; broken by {amount(rule.limit)} {'% of rows' if rule.limit.percent else 'rows'}"


def interval(rule: Rule) -> str:
    """`[low, high)`, an open end where a bound is strict or not given."""
    left = "(" if rule.low_strict or rule.low is None else "["
    right = ")" if rule.high_strict or rule.high is None else "]"
    low = "-inf" if rule.low is None else _value(rule.low)
    high = "inf" if rule.high is None else _value(rule.high)
    return f"{left}{low}, {high}{right}"


def amount(limit: Limit) -> str:
    return COMPARISONS[limit.operator].format(low=f"{limit.low:g}", high=f"{limit.high:g}")


def _value(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
