"""A pattern for those who read its results, as Markdown: what it finds, its automaton, what its source promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trendlake.cep_core import AnyPlan, Pattern, explain
from trendlake.pipelines.authoring.markdown import block, cell, code, plain
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.rule_text import expected_of
from trendlake.pipelines.project.paths import upstream


def pattern_page(pattern: Pattern, plan: AnyPlan, contracts: Sequence[Contract], text: str) -> str:
    """`text`: the pattern file's. The automaton is drawn in letters: pages that show Markdown leave out pictures that
    are part of it."""
    parts = (
        plain(pattern.description),
        "## The pattern",
        block(text, "yaml"),
        "## Its automaton",
        block(explain(plan)),
        *(part for contract in contracts for part in _promises(contract)),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _promises(contract: Contract) -> Iterator[str]:
    """The parts of the page about one table."""
    yield f"## What the source {code(contract.name)} promises"
    yield plain(contract.description)
    yield "\n".join(columns(contract))
    yield promise(contract)


def batch_page(name: str, patterns: Sequence[Pattern]) -> str:
    """The patterns of a batch for those who read its results, as Markdown: a table. They read the same tables."""
    over = [(table, upstream(table)) for table in patterns[0].tables]
    source = " and ".join(f"the results of {code(above)}" if above else code(table) for table, above in over)
    rows = [f"| {code(item.name)} | {item.kind} | {cell(item.owner)} | {cell(item.description)} |" for item in patterns]
    head = f"The batch {code(name)}: patterns over {source} that run together, in one Spark application."
    return "\n".join([head, "", "| pattern | kind | owner | description |", "|---|---|---|---|", *rows, ""])


def promise(contract: Contract) -> str:
    name = upstream(contract.name)
    if name is not None:
        return (
            f"Each row of the results of the pattern {code(name)} is an event of type {code(name)}, at its "
            f"{code(contract.event_time)}. They were checked before they were published."
        )
    file, aside = code(f"data_contracts/{contract.name}.yaml"), code(f"{contract.name}_quarantine")
    return (
        f"By {file}, version {cell(contract.version)}. Rows that break a rule are quarantined in {aside}; a run fails "
        f"where more than {contract.tolerance:.2%} of its rows do."
    )


def columns(contract: Contract) -> Iterator[str]:
    """A table: each column with its type and what its rules ask."""
    yield "| column | type | rules |"
    yield "|---|---|---|"
    for column in contract.columns:
        rules = [expected_of(rule) for rule in contract.rules if rule.columns == (column.name,)]
        yield f"| {code(column.name)} | {cell(column.type)} | {cell('; '.join(rules))} |"
    for rule in contract.rules:
        if len(rule.columns) != 1:
            named = ", ".join(map(code, rule.columns))
            yield f"| {named or cell(rule.name)} | | {cell(expected_of(rule))} |"
