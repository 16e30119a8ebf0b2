"""A plan in words: states, transitions, how predecessors are found on each and why, what is shared, what it costs."""

from __future__ import annotations

from collections.abc import Iterator

from trendlake.cep_core.events.windows import CalendarWindows, Windows
from trendlake.cep_core.language.unparse import duration, expression, moment
from trendlake.cep_core.trends.compile.check_return import Lengths
from trendlake.cep_core.trends.compile.dfa import Automaton, Cube, Transition
from trendlake.cep_core.trends.compile.plan import Plan, filtered
from trendlake.cep_core.trends.compile.predecessors import Method, PairPredicate

_COST = {
    Method.RUNNING: "O(1) an event",
    Method.HASH: "O(1) an event",
    Method.ORDERED: "O(log n) an event",
    Method.HASH_ORDERED: "O(log n) an event",
    Method.RANGE: "O(log n) an event",
    Method.DIVIDE: "O(log^2 n) an event",
    Method.SCAN: "O(n) an event",
}


def explain(plan: Plan) -> str:
    """Text for a terminal."""
    return "\n".join(_lines(plan))


def _lines(plan: Plan) -> Iterator[str]:
    windows = plan.windows
    overlap = windows.overlap
    yield f"plan {plan.hash}, {plan.select}"
    yield f"windows   {_windows(windows)}" + (f"; each event is in {overlap:,}" if overlap > 1 else "")
    if plan.interval_start is not None:
        span = f"{plan.interval_start} to {plan.schema.event_time}"
        yield f"intervals {span}: an event is in each window that it overlaps"
    yield f"reads     {', '.join(plan.columns)}"
    kinds = plan.event_types
    yield f"events    {', '.join(kinds) if kinds else 'all types: ' + _why_all(plan)}"
    parts = [*plan.shared, *(f"{name} (of {', '.join(sorted(scope))})" for name, scope in plan.scoped)]
    yield f"partition {', '.join(parts) or 'none: all events of a window may meet'}"
    yield f"shards    by {', '.join(plan.shard_key)} and time" if plan.shard_key else "shards    by time only"
    for variable, condition in plan.local:
        yield f"filter    {variable}: {expression(condition)}"
    if plan.never:
        yield "filter    a constant condition is never true: no trend at all"
    names = ("pattern",) if len(plan.automata) == 1 else ("left of AND", "right of AND", "both")
    for name, automaton in zip(names, plan.automata, strict=True):
        yield f"{name}:"
        yield from _automaton(plan, automaton)
    for index, automaton in enumerate(plan.guards):
        yield f"NOT {index + 1} (its latest start before an event bounds the gap):"
        yield from _automaton(plan, automaton)
    yield from _measures(plan)
    yield f"cost      {_cost(plan, overlap)}"
    yield from plan.warnings


def _windows(windows: Windows) -> str:
    if isinstance(windows, CalendarWindows):
        return windows.in_words
    sliding = "tumbling" if windows.step == windows.longest else f"sliding by {duration(windows.step)}"
    return f"{duration(windows.longest)}, {sliding}, from {moment(windows.start(0))}"


def _measures(plan: Plan) -> Iterator[str]:
    """Passes other than that over all trends."""
    if plan.output == "maximal":
        yield "output    maximal: a pass backwards finds the stretches of events that are no part of a longer trend"
    for measure in plan.measures:
        if measure.lengths is not None:
            automaton = filtered(plan.automata[0], measure.lengths)
            states = f"{len(automaton.states)} state{'' if len(automaton.states) == 1 else 's'}"
            yield f"measure   {measure.name}: a pass of its own, over {_of_length(measure.lengths)}; {states}"
    if plan.longest:
        yield "measure   LONGEST: a pass for the longest way to each event, then a walk back"
    if plan.turns > 1:
        yield f"turns     {plan.turns:,}: windows that overlap are computed apart"


def _of_length(lengths: Lengths) -> str:
    of = "" if lengths.variable is None else f" under {lengths.variable}"
    if lengths.high is None:
        return f"trends of {lengths.low} events or more{of}"
    return f"trends of {lengths.low} to {lengths.high} events{of}"


def _why_all(plan: Plan) -> str:
    return f"{plan.select} speaks of the whole stream" if plan.whole_stream else "empty_windows asks for every group"


def _automaton(plan: Plan, automaton: Automaton) -> Iterator[str]:
    for transition in automaton.transitions:
        yield f"  {_step(plan, automaton, transition)}"
    for index, state in enumerate(automaton.states):
        for option in state.accepts:
            after = " and ".join(f"no NOT {g + 1} after it" for g in option)
            yield f"  {_name(automaton, index)} -> end" + (f", {after}" if after else "")


def _name(automaton: Automaton, state: int | None) -> str:
    return "start" if state is None else f"{automaton.states[state].variable}#{state}"


def _step(plan: Plan, automaton: Automaton, transition: Transition) -> str:
    arrow = f"{_name(automaton, transition.source)} -> {_name(automaton, transition.target)}"
    gap = _gap(transition.gap, "before it" if transition.source is None else "between")
    if transition.source is None:
        return arrow + gap
    earlier = automaton.states[transition.source].variable
    pair = plan.pair(earlier, automaton.states[transition.target].variable)
    if plan.select != "skip_till_any_match":
        return f"{arrow}: linked to {linked(plan, transition.gap)}{_conditions(pair)}{gap}"
    layer = plan.layer(pair.earlier, pair.later, transition.gap)
    method = method_of(plan, automaton, transition)
    reason = "what a NOT rules out, too" if transition.gap.fails else pair.reason(len(layer.resets), bool(layer.bounds))
    return f"{arrow}: {method.value}, because {reason}{_conditions(pair)}{gap}"


def linked(plan: Plan, gap: Cube) -> str:
    """Where the event after the gap comes, by a selection that does not skip at will."""
    if plan.select != "skip_till_next_match":
        return "the very next"
    nexts = [f"the next {' or '.join(names)}" for names in gap.next]
    return " and ".join(nexts + [f"not the next {' or '.join(names)}" for names in gap.later])


def method_of(plan: Plan, automaton: Automaton, transition: Transition) -> Method:
    """How predecessors are found on an inner transition."""
    if transition.gap.fails:
        return Method.SCAN
    return plan.method(plan.layer(*_variables(automaton, transition), transition.gap))


def _gap(gap: Cube, where: str) -> str:
    holds = [f"no NOT {g + 1} {where}" for g in gap.holds]
    fails = [f"a NOT {g + 1} {where}" for g in gap.fails]
    return f"; {' and '.join(holds + fails)}" if holds or fails else ""


def _conditions(pair: PairPredicate) -> str:
    shown = [f"{expression(x.earlier)} {x.op} {expression(x.later)}" for x in pair.splits]
    shown += [expression(condition) for condition in pair.mixed]
    return f" [{' AND '.join(shown)}]" if shown else ""


def _variables(automaton: Automaton, transition: Transition) -> tuple[str, str]:
    """Of an inner transition."""
    source = transition.target if transition.source is None else transition.source
    return automaton.states[source].variable, automaton.states[transition.target].variable


def _cost(plan: Plan, overlap: int) -> str:
    methods = {method_of(plan, a, t) for a in (*plan.automata, *plan.guards) for t in a.inner}
    worst = _COST[max(methods, key=list(Method).index, default=Method.RUNNING)]
    shared = f", once for each of the {overlap:,} windows an event is in" if overlap > 1 else ""
    return f"{worst} of a window of n{shared}; memory O(n) of the largest window of a partition"
