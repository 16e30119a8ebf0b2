"""A plan of kind xml_join in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trendlake.cep_core.language.unparse import duration
from trendlake.cep_core.xml_join.compile.plan import XmlJoinPlan

MOST = 20
"""Templates, queries and definitions that are listed one by one."""


def explain_xml_join(plan: XmlJoinPlan) -> str:
    """Text for a terminal."""
    return "\n".join(_lines(plan))


def _lines(plan: XmlJoinPlan) -> Iterator[str]:
    yield f"plan {plan.hash}, {_count(len(plan.queries), 'query', 'queries')}, {len(plan.joins):,} distinct"
    reach = "unbounded: a run reads all history" if plan.unbounded else f"{duration(plan.within)}, inclusive"
    yield f"within    {reach} (the largest)"
    yield f"reads     {', '.join(plan.columns)}"
    yield f"limit     {plan.limit:,} answers of a query that end with one document"
    plans = len({template.plan for template in plan.templates})
    yield f"templates {len(plan.templates):,}; {plans:,} if one and its mirror image count once: a plan serves both"
    joins = dict(Counter(join for _, join in plan.queries))
    queries: Counter[int] = Counter()
    for number, join in enumerate(plan.joins):
        queries[join.template] += joins.get(number, 0)
    for template, count in queries.most_common(MOST):
        yield f"  {_count(count, 'query', 'queries')}: {plan.templates[template].text}"
    if len(queries) > MOST:
        yield f"  and {len(queries) - MOST:,} more"
    yield f"blocks    {plan.blocks:,} written, {len(plan.sides):,} distinct"
    yield f"paths     {_count(len(plan.definitions), 'definition')}, found in one walk over a document"
    for definition in plan.definitions[:MOST]:
        above = f"of {plan.definitions[definition.parent].path.text}: " if definition.parent >= 0 else ""
        yield f"  {above}{definition.path.text}"
    if len(plan.definitions) > MOST:
        yield f"  and {len(plan.definitions) - MOST:,} more"
    yield "cost      O(nodes) a document; O(witnesses + answers) a distinct query, by a merge on equal values and time"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
