"""A plan of kind matches in words: states, conditions at their moments, what a run remembers, what it costs."""

from __future__ import annotations

from collections.abc import Iterator

from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.unparse import duration, expression
from trendlake.cep_core.language.unparse import pattern as pattern_text
from trendlake.cep_core.matches.compile.encode import NotCompiledError, assembled, extreme
from trendlake.cep_core.matches.compile.plan import Condition, MatchesPlan, Negation, is_fence
from trendlake.cep_core.matches.compile.registers import Slot, live_slots
from trendlake.cep_core.matches.compile.states import START, states_of

_IGNORES = {
    "skip_till_any_match": "ignores any event",
    "skip_till_next_match": "ignores what it cannot take (at a Kleene part) or begin the next part with (elsewhere)",
    "partition_contiguous": "ignores events of other partitions only",
    "contiguous": "ignores nothing",
}

_WHEN = {
    "each": "each event",
    "first": "the first event",
    "later": "each event after the first",
    "last": "when the part is done",
}


def explain_matches(plan: MatchesPlan) -> str:
    """Text for a terminal."""
    return "\n".join(_lines(plan))


def _lines(plan: MatchesPlan) -> Iterator[str]:
    ignores = _IGNORES[plan.select]
    if plan.tree is not None and plan.select == "skip_till_next_match":
        ignores = "ignores what it cannot go on with; in a repetition, what that cannot go on with"
    yield f"plan {plan.hash}, {plan.select}: a run {ignores}"
    yield f"within    {duration(plan.within)} from the first to the last event of a match"
    yield f"reads     {', '.join(plan.columns)}"
    kinds = plan.event_types
    yield f"events    {', '.join(kinds) if kinds else 'all types: an event that no part binds breaks contiguity'}"
    parts = [*plan.partition, *(f"{name} (of {', '.join(sorted(scope))})" for name, scope in plan.scoped)]
    yield f"partition {', '.join(parts) or 'none: all events may meet'}"
    yield f"shards    by {', '.join(plan.shard_key)} and time" if plan.shard_key else "shards    by time only"
    if plan.never:
        yield "filter    a constant condition is never true: no match at all"
    yield from _parts(plan) if plan.tree is None else _tree(plan, plan.tree)
    for negation in plan.negations:
        where = _gap(plan, negation)
        conditions = " AND ".join(expression(one) for one in negation.conditions)
        how = "known beforehand" if is_fence(plan, negation) else "checked on each match"
        yield f"NOT {negation.type_name} {negation.variable} {where}{f': {conditions}' if conditions else ''}; {how}"
    yield f"output    {_output(plan)}"
    yield f"steps     {_steps(plan)}"
    yield f"cost      {_cost(plan)}"
    yield from plan.warnings


def _parts(plan: MatchesPlan) -> Iterator[str]:
    for number in range(len(plan.parts)):
        yield from _state(plan, number)


def _tree(plan: MatchesPlan, tree: s.PatternNode) -> Iterator[str]:
    """A pattern whose parts are not one after the other: its variables, and the size of its automaton."""
    yield f"pattern   {pattern_text(tree)}"
    for number, part in enumerate(plan.parts):
        often = "one event"
        if plan.positions.optional(part.variable):
            often = "any number of events" if part.kleene else "one event or none"
        elif part.kleene:
            often = "one event or more"
        yield f"{part.variable:<9} {part.type_name}: {often}"
        for condition in plan.conditions:
            if condition.part == number:
                yield f"  {_moment(plan, condition)}: {expression(condition.expression)}"
    states = states_of(plan)
    between = sum(edge.source != START for edge in states.edges)
    ends = sum(bool(ways) for ways in states.ends)
    sizes = f"{len(states.states):,}, {between:,} steps between them; matches begin by {len(states.starting)}, end in"
    yield f"states    {sizes} {ends}{'' if states.unambiguous else '; equal matches of several runs are one row'}"
    slots = sorted({slot for live in live_slots(plan) for slot in live})
    remembered = ", ".join(_slot(plan, slot) for slot in slots)
    yield f"remembers {remembered or 'nothing: all runs of a state are one'}"


def _moment(plan: MatchesPlan, condition: Condition) -> str:
    reads = s.attributes(condition.expression)
    last = sorted({read.variable for read in reads if isinstance(read, s.Indexed) and read.index == "LEN"})
    if last:
        return f"when {' and '.join(last)} can bind no more"
    if len({read.variable for read in reads}) > 1:
        return "each choice of their events, as soon as all are bound"
    return _WHEN[condition.when] if plan.parts[condition.part].kleene else "the event"


def _state(plan: MatchesPlan, number: int) -> Iterator[str]:
    part = plan.parts[number]
    yield f"part {number + 1}    {part.type_name} {part.variable}{'+' if part.kleene else ''}"
    for condition in plan.conditions:
        if condition.part == number:
            when = _WHEN[condition.when] if part.kleene else "the event"
            yield f"  {when}: {expression(condition.expression)}"
    slots = live_slots(plan)[number]
    if slots:
        yield f"  remembers {', '.join(_slot(plan, slot) for slot in slots)}"
    elif number < len(plan.parts) - 1 or part.kleene:
        yield "  remembers nothing: all runs here are one"


def _slot(plan: MatchesPlan, slot: Slot) -> str:
    v = plan.parts[slot.part].variable
    if slot.what == "seen":
        condition = expression(plan.conditions[slot.condition].expression)
        try:
            return f"the {'greatest' if extreme(plan, slot).greatest else 'least'} value of {v} in [{condition}]"
        except NotCompiledError:
            return f"the distinct values of {v} in [{condition}]"
    if slot.what == "running":
        return f"{slot.function}({v}[..].{slot.name})"
    if slot.what == "scope":
        return f"{slot.name} of {v}"
    if not plan.parts[slot.part].kleene:
        return f"{v}.{slot.name}"
    return f"{v}[1].{slot.name}" if slot.what == "first" else f"{v}[{v}.LEN].{slot.name}"


def _gap(plan: MatchesPlan, negation: Negation) -> str:
    after, limit = negation.after, "" if negation.within is None else f", within {duration(negation.within)} of it"
    if plan.tree is not None:
        held = plan.limit_of_last is not None and negation.within is not None
        back = "; a match is held back until then" if held else ""
        return f"between the events around it{limit}{back}"
    if after == len(plan.parts) and limit:
        return f"after {plan.parts[-1].variable}{limit}; a match is held back until then"
    if after == 0:
        return f"before {plan.parts[0].variable}"
    if after == len(plan.parts):
        return f"after {plan.parts[-1].variable}, until the window of the first event ends"
    return f"between {plan.parts[after - 1].variable} and {plan.parts[after].variable}{limit}"


def _output(plan: MatchesPlan) -> str:
    limit = f", fewer than {plan.limit:,} of a partition in {duration(plan.pane)}" if plan.limit else ""
    return {
        "all": f"every match{limit}",
        "non_overlap": f"of a partition the match that ends first, then starts first, and so on after it{limit}",
        "compressed": "a graph for each event that ends matches",
    }[plan.output]


def _steps(plan: MatchesPlan) -> str:
    try:
        fields = assembled(plan).width - 1
    except NotCompiledError as reason:
        return f"in Python: {reason}"
    return f"compiled, a register of {fields} field{'' if fields == 1 else 's'}; in Python from a number beyond 64 bits"


def _cost(plan: MatchesPlan) -> str:
    remembered = max((len(slots) for slots in live_slots(plan)), default=0)
    runs = "one run a state" if not remembered else "a run for each state and distinct register"
    late = ", then against its NOTs" if any(not is_fence(plan, one) for one in plan.negations) else ""
    return f"O(runs) an event: {runs}; O(length) a match to write it{late}"
