"""A pattern for those who read its results, as Markdown: what it finds, its automaton, what its source promises."""

from __future__ import annotations

from collections.abc import Iterator

from cep_core import AnyPlan, Pattern, explain
from pipelines.contracts.contract import Contract
from pipelines.contracts.rule_text import expected_of
from pipelines.project.paths import upstream


def pattern_page(pattern: Pattern, plan: AnyPlan, contract: Contract, text: str) -> str:
    """`text`: the pattern file's. The automaton is drawn in letters: pages that show Markdown leave out pictures that
    are part of it."""
    parts = (
        pattern.description.strip(),
        "## The pattern",
        fenced(text, "yaml"),
        "## Its automaton",
        fenced(explain(plan)),
        f"## What the source `{contract.name}` promises",
        contract.description.strip(),
        "\n".join(columns(contract)),
        promise(contract),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def promise(contract: Contract) -> str:
    name = upstream(contract.name)
    if name is not None:
        return (
            f"Each row of the results of the pattern `{name}` is an event of type `{name}`, at its "
            f"`{contract.event_time}`. They were checked before they were published."
        )
    return (
        f"By `data_contracts/{contract.name}.yaml`, version {contract.version}. Rows that break a rule are quarantined "
        f"in `{contract.name}_quarantine`; a run fails where more than {contract.tolerance:.2%} of its rows do."
    )


def columns(contract: Contract) -> Iterator[str]:
    """A table: each column with its type and what its rules ask."""
    yield "| column | type | rules |"
    yield "|---|---|---|"
    for column in contract.columns:
        rules = [expected_of(rule) for rule in contract.rules if rule.columns == (column.name,)]
        yield f"| `{column.name}` | {column.type} | {cell('; '.join(rules))} |"
    for rule in contract.rules:
        if len(rule.columns) != 1:
            named = ", ".join(f"`{name}`" for name in rule.columns)
            yield f"| {named or cell(rule.name)} | | {cell(expected_of(rule))} |"


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def fenced(text: str, language: str = "") -> str:
    """A block that `text` cannot end: its fence is longer than any in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
