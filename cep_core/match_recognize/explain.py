"""A row pattern in words: the class of each condition, the search for matches, and its cost."""

from __future__ import annotations

from collections.abc import Iterator

from trendlake.cep_core.language.unparse import duration, expression
from trendlake.cep_core.match_recognize.compile.chain import reach_of
from trendlake.cep_core.match_recognize.compile.classes import CLASSES, Class, class_of_plan, conditions_of
from trendlake.cep_core.match_recognize.compile.leaves import Number, every, spelled
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan

SEARCH: dict[Class, str] = {
    "local": "two passes over the rows: time in proportion to rows and places, whatever the pattern",
    "numbered": "forward from each row, one state for each place: time in proportion to the rows that a search "
    "looks at",
    "of the start": "forward from each row, one state for each place: time in proportion to the rows that a search "
    "looks at; searches that fail late, from every row, take the square of that",
    "registers": "forward from each row, one state for each place and what conditions remember: in the worst case "
    "exponentially many, so that limit_per_start may end it",
}


def explain_match_recognize(plan: RowPatternPlan) -> str:
    """Text for a terminal."""
    return "\n".join(_lines(plan))


def _lines(plan: RowPatternPlan) -> Iterator[str]:
    program = plan.program
    yield f"plan {plan.hash}, match_recognize"
    yield f"reads     {', '.join(plan.columns)}"
    if plan.where is not None:
        yield f"rows      events with {expression(plan.where)}"
    yield f"partition {', '.join(plan.partition_by) or 'none: all rows are one partition'}"
    yield f"order     {_order(plan)}"
    if plan.bound is not None:
        yield f"within    {duration(plan.bound)}: the last row comes sooner after the first"
    places = "1 place" if program.length == 1 else f"{program.length:,} places"
    yield f"pattern   {places}: {_few(program.variables)}"
    sets = {members: name for name, members in plan.subsets}
    for one in conditions_of(plan):
        asked = "any row" if one.value is None else spelled(one.value, sets)
        yield f"  {one.variable}: {asked}  ({one.cls})"
    cls = class_of_plan(plan)
    deciding = [one.variable for one in conditions_of(plan) if one.cls == cls]
    because = "" if cls == CLASSES[0] else f", because of {', '.join(deciding)}"
    yield f"class     {cls}{because}"
    yield f"search    {SEARCH[cls]}"
    if cls != CLASSES[0]:
        yield f"limit     {plan.limit_per_start:,} steps of the search from one row"
    yield f"onward    {_onward(plan)}"
    yield f"result    {_rows(plan)}: {', '.join(plan.result_schema.names)}"
    for measure in plan.measures:
        if measure.value is not None:
            yield f"  {measure.name}: {spelled(measure.value, sets)}"
    yield f"limit     {plan.limit:,} rows of a partition in {duration(plan.pane)}"
    yield f"revision  {_revision(plan)}"
    yield from plan.warnings
    yield from _advice(plan)


def _few(variables: tuple[str, ...]) -> str:
    shown = " ".join(variables[:20])
    return f"{shown} ..." if len(variables) > 20 else shown


def _order(plan: RowPatternPlan) -> str:
    keys = [
        f"{key.column}{' DESC' if key.descending else ''} NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        for key in plan.order_by
    ]
    ties = [] if any(key.column == plan.schema.event_time for key in plan.order_by) else [plan.schema.event_time]
    ties += [plan.schema.sequence] if plan.schema.sequence else []
    return ", ".join([*keys, *ties, plan.schema.event_id])


def _onward(plan: RowPatternPlan) -> str:
    words = {"past_last": "behind the last row of a match", "next": "at the row behind the first row of a match"}
    onward = plan.onward
    return words.get(onward.mode, f"at the {onward.mode} row of a match that is mapped to {onward.name}")


def _rows(plan: RowPatternPlan) -> str:
    return {
        "one": "a row for each match",
        "show": "a row for each row of a match, and for each empty match",
        "omit": "a row for each row of a match",
        "unmatched": "a row for each row of a match, each empty match, and each row without a match",
    }[plan.rows]


def _revision(plan: RowPatternPlan) -> str:
    """How far a changed row reaches, and from where on a revision computes matches again."""
    if not plan.windows.endless:
        return f"{_reached(plan)}; only the time around it is read"
    reach = reach_of(plan)
    if isinstance(reach, str):
        return f"{_reached(plan)}; a revision begins with its partition, as {reach}"
    return f"{_reached(plan)}; a revision begins before the change, and ends where old and new matches meet"


def _reached(plan: RowPatternPlan) -> str:
    if plan.onward.mode == "next" and plan.bound is not None:
        return f"a changed row affects matches that begin less than {duration(plan.bound)} before it"
    if plan.bound is not None:
        return f"a changed row affects matches up to the next gap of {duration(plan.bound)} in its partition, at most"
    return "a changed row affects matches of its partition, from before it to where old and new matches meet"


def _advice(plan: RowPatternPlan) -> Iterator[str]:
    if plan.order_by and (plan.order_by[0].column != plan.schema.event_time or plan.order_by[0].descending):
        yield "note: the first key of ORDER BY is not the event time, ascending: a run reads each partition whole"
    numbered = any(isinstance(one, Number) for _, node in plan.defines for one in every(node))
    if numbered:
        yield "note: DEFINE reads MATCH_NUMBER(): each match depends on how many come before it"
    if any(isinstance(one, Number) for column in plan.measures if column.value for one in every(column.value)):
        yield "note: MATCH_NUMBER() is a measure: a change numbers all later matches of its partition anew"
    if plan.bound is None and plan.onward.mode != "next":
        yield "note: nothing bounds how far a change reaches: within, or PARTITION BY a computed day, would"
