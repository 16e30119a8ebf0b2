"""From a pattern file of kind matches to its plan: names resolved, types right, every condition at its moment.

All mistakes are collected, each with its place, and raised together.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import combinations

from trendlake.cep_core.errors import (
    BadConditionError,
    BadPatternError,
    NotSupportedError,
    PatternErrors,
    PatternWarning,
    UnknownAttributeError,
    did_you_mean,
)
from trendlake.cep_core.events.names import same_name
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.matches.compile.check_pattern import PATTERN
from trendlake.cep_core.matches.compile.check_return import MeasureChecker
from trendlake.cep_core.matches.compile.model import MatchesPattern
from trendlake.cep_core.matches.compile.plan import MatchesPlan, is_fence
from trendlake.cep_core.matches.compile.states import states_of


def compile_matches(pattern: MatchesPattern, schema: EventSchema) -> MatchesPlan:
    """Check `pattern` against `schema` and compile it. Raises PatternErrors with every mistake found."""
    return _Checker(pattern, schema).plan()


class _Checker(MeasureChecker):
    def plan(self) -> MatchesPlan:
        if self.read_pattern():
            for index, text in enumerate(self.query.where):
                self.read_condition(text, ("where", index))
        measures = [measure for name, text in self.query.returns.items() if (measure := self.read_measure(name, text))]
        self._names()
        if len(self.types) > 63:
            self.report(NotSupportedError("more than 63 variables"), PATTERN)
        if self.schema.event_id not in self.families:
            hint = did_you_mean(self.schema.event_id, self.families)
            message = f"a match lists its events' ids, and the source has no column '{self.schema.event_id}'"
            self.report(UnknownAttributeError(message, hint=hint), PATTERN)
        elif self.families[self.schema.event_id] == "other":
            message = f"a match lists its events' ids, and '{self.schema.event_id}' is neither text nor a number"
            self.report(NotSupportedError(message), PATTERN)
        plan = MatchesPlan(
            parts=tuple(self.parts),
            negations=tuple(
                replace(negation, conditions=tuple(self.of_nots[negation.variable])) for negation in self.negations
            ),
            conditions=tuple(self.conditions),
            partition=tuple(dict.fromkeys(self.partition)),
            scoped=tuple(dict.fromkeys(self.scoped)),
            measures=tuple(measures),
            within=self.query.within,
            select=self.query.select,
            output=self.query.output,
            limit=self.query.limit_per_partition,
            never=self.never,
            schema=self.schema_read,
            advice=tuple(self.adviser.advice),
            tree=self.tree,
        )
        if plan.output == "compressed":
            self._compressed(plan)
        if not self.refused:
            self._states(plan)
            one_part = [part.kleene for part in plan.parts] == [True] and plan.tree is None
            if plan.leads and plan.trails and plan.output == "all" and one_part:
                self._sub_runs(plan.parts[0].variable)
        if self.errors:
            raise PatternErrors(self.errors)
        for warning in self.warnings:
            warnings.warn(warning, PatternWarning, stacklevel=2)
        return replace(plan, warnings=tuple(self.warnings))

    def _states(self, plan: MatchesPlan) -> None:
        """Reports a pattern of too many states, and warns of conditions that nothing ever asks."""
        if not self.errors:
            try:
                states_of(plan)
            except BadPatternError as error:
                self.report(error, PATTERN, (0, len(self.query.pattern)))
        for names, part, path in self.compared:
            pairs = (pair for pair in combinations(names, 2) if not plan.positions.together(*pair))
            if pair := next(pairs, None):
                message = f"no match has events of both {' and '.join(pair)}: the condition is never asked"
                place = self.place_of(path, part.span)
                self.warnings.append(str(BadConditionError(message, hint="write a condition for each", place=place)))

    def _names(self) -> None:
        columns: dict[str, str] = {}
        for variable in (part.variable for part in self.parts):
            if same_name(variable) in columns:
                message = f"variables '{columns[same_name(variable)]}' and '{variable}' would be one column"
                self.report(BadPatternError(message), PATTERN)
            columns[same_name(variable)] = variable
        for name in self.query.returns:
            if same_name(name) in columns:
                place = self.pattern.document.place(("return", name), key=True)
                error = BadConditionError(f"'{name}' is the column of the variable '{columns[same_name(name)]}'")
                error.place = place
                self.errors.append(error)

    def _sub_runs(self, variable: str) -> None:
        """Warns of a pattern whose rows are the stretches of a run, where the whole run is mostly meant."""
        message = (
            f"each stretch of events of {variable} is a match of its own: n events in a row give up to n^2 / 2 rows"
        )
        hint = "for whole runs, once: kind: trends with select: partition_contiguous and output: maximal"
        place = self.place_of(PATTERN, (0, len(self.query.pattern)))
        self.warnings.append(str(BadPatternError(message, hint=hint, place=place)))

    def _compressed(self, plan: MatchesPlan) -> None:
        """Reports keys that a row cannot have if it represents many matches."""
        for key, given in (("return", self.query.returns), ("limit_per_partition", self.query.limit_per_partition)):
            if given:
                message = f"a compressed row stands for any number of matches: it has no {key}"
                self.report(BadConditionError(message, hint=f"leave out {key}, or write output: all"), ("output",))
        for negation in () if self.refused else plan.negations:
            if not is_fence(plan, negation):
                v = negation.variable
                message = f"output: compressed where more than its place says what NOT {v} rules out"
                hint = f"write output: all, or conditions that speak of {v} alone"
                self.report(NotSupportedError(message, hint=hint), ("output",))
