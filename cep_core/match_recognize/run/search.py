"""The search in Python, for conditions of every class: depth first by the ways of the program, best first, and never
twice from one row, place and registers. It is the reference of the kernels, and runs what they do not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trendlake.cep_core.errors import SearchTooLongError
from trendlake.cep_core.expressions.scalar import Reader, compiled
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.match_recognize.compile.classes import Condition, class_of_plan, conditions_of
from trendlake.cep_core.match_recognize.compile.leaves import Navigation, Number, Total, whole
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.match_recognize.compile.program import ACCEPT
from trendlake.cep_core.match_recognize.compile.registers import (
    AllLabels,
    LabelAt,
    Register,
    Registers,
    SomeLabels,
    SomeRows,
    by_of,
    label_at,
    rows_register,
    total_register,
)
from trendlake.cep_core.match_recognize.run.registers import LabelChains, SomeOf, Stepped, Totals
from trendlake.cep_core.match_recognize.run.rows import Rows


@dataclass
class Moment:
    """Where a condition is asked: `values` of the registers, the row included; `start`: the match's first row; `low`
    and `high`: the partition."""

    values: tuple[Any, ...]
    start: int
    low: int
    high: int
    number: int


class Search:
    """The search over the partitions of one run."""

    def __init__(self, plan: RowPatternPlan, rows: Rows, hopeful: Sequence[int] | None = None) -> None:
        self.plan, self.rows, self.hopeful = plan, rows, hopeful
        self.program = plan.program
        self.conditions = {one.variable: one for one in conditions_of(plan)}
        self.every = frozenset(self.program.variables)
        self.memory = Registers(self.program, tuple(self.conditions.values()))
        self.registers = [self._stepped(one) for one in self.memory.listed]
        self.asked = {name: self._compiled(one) for name, one in self.conditions.items()}
        self.local = class_of_plan(plan) == "local"
        self._partition = (-1, -1)
        self._can: list[int] = []

    # --- conditions

    def _stepped(self, register: Register) -> Stepped:
        match register:
            case SomeRows(variables=variables, first=first, count=count):
                return SomeOf(frozenset(variables), first, count, labels=False)
            case SomeLabels(variables=variables, first=first, count=count):
                return SomeOf(frozenset(variables) or None, first, count, labels=True)
            case Total(variables=variables, arguments=arguments):
                values = [self.rows.values(one) for one in arguments]
                most = self.memory.most.get(register, math.inf)
                return Totals(register, frozenset(variables) or self.every, values, most)
        return LabelChains()

    def _compiled(self, condition: Condition) -> Reader | None:
        if condition.value is None:
            return None

        def leaf(read: s.Attribute) -> Reader:
            match read:
                case Number():
                    return lambda moment, row, at: moment.number
                case Navigation():
                    return self._navigation(read)
                case Total():
                    return self._total(read)
            raise AssertionError(read)  # pragma: no cover - CLASSIFIER() of the current row is a literal

        return compiled(condition.value, leaf)

    def _total(self, read: Total) -> Reader:
        place = self.memory.places[total_register(read)]
        totals = self.registers[place]
        assert isinstance(totals, Totals)
        result, function = totals.result, read.function
        return lambda moment, row, at: result(moment.values[place], function)

    def _navigation(self, read: Navigation) -> Reader:
        base, by = self._base(read), by_of(read)
        argument = self.rows.values(read.argument)
        at = label_at(read)
        label = None if at is None else self._label(at)

        def run(moment: Moment, row: int, at: Any) -> Any:
            result = base(moment, row)
            if result is None or not moment.low <= result + by < moment.high:
                return None
            result += by
            if label is None:
                return argument(None, result, moment.number)
            return argument(label(moment, row, result), result, moment.number)

        return run

    def _base(self, read: Navigation) -> Any:
        """A function of a moment and its row: the row that the navigation starts from, or None."""
        offset, register = whole(read.offset), rows_register(read)
        if register is None:
            if read.first:
                return lambda moment, row: moment.start + offset if moment.start + offset <= row else None
            return lambda moment, row: row - offset if row - offset >= moment.start else None
        place = self.memory.places[register]

        def some(moment: Moment, row: int) -> int | None:
            result: tuple[int, ...] = moment.values[place]
            return None if len(result) <= offset else result[offset if read.first else -offset - 1]

        return some

    def _label(self, at: LabelAt) -> Any:
        """A function of a moment, its row and another: the variable that the other one is mapped to, None for none."""
        register, among = at.register, at.place
        if register is None:
            return lambda moment, row, other: None
        place = self.memory.places[register]
        if isinstance(register, AllLabels):
            chains = self.registers[place]
            assert isinstance(chains, LabelChains)

            def any_row(moment: Moment, row: int, other: int) -> str | None:
                if not moment.start <= other <= row:
                    return None
                variable: str = chains.listed(moment.values[place])[other - moment.start]
                return variable

            return any_row
        least = among + 1 if among >= 0 else -among

        def some(moment: Moment, row: int, other: int) -> str | None:
            result: tuple[str, ...] = moment.values[place]
            return None if len(result) < least else result[among]

        return some

    # --- the search

    def find(self, start: int, low: int, high: int, number: int) -> list[int] | None:
        """The places of the preferred match from a row of the partition [low, high); None where there is none."""
        if self.local:
            return self._find_local(start, low, high)
        failed: set[Any] = set()
        times, bound, most = self.rows.times, self.plan.bound, self.plan.limit_per_start
        variables, live, program, hopeful = self.program.variables, self.memory.live, self.program, self.hopeful
        path: list[int] = []
        steps = 0
        ways = iter(program.begin(first=start == low))
        stack: list[tuple[Iterator[int], int, tuple[Any, ...], Any]] = [
            (ways, start, tuple(register.start for register in self.registers), None)
        ]
        while stack:
            ways, row, values, own = stack[-1]
            for way in ways:
                if way == ACCEPT:
                    return path
                if row >= high or (bound is not None and abs(int(times[row]) - int(times[start])) >= bound):
                    continue
                if hopeful is not None and not hopeful[row] >> way & 1:
                    continue
                steps += 1
                if steps > most:
                    raise search_too_long(self.plan, self.rows, start)
                variable = variables[way]
                now = values and tuple(
                    register.step(value, row, variable, number)
                    for register, value in zip(self.registers, values, strict=True)
                )
                key = (row, way, tuple(now[place] for place in live[way]))
                if key in failed:
                    continue
                condition = self.asked[variable]
                if condition is None or condition(Moment(now, start, low, high, number), row, None) is True:
                    path.append(way)
                    stack.append((iter(program.behind(way, last=row + 1 == high)), row + 1, now, key))
                    break
            else:
                stack.pop()
                if path:
                    path.pop()
                    failed.add(own)
        return None

    def _find_local(self, start: int, low: int, high: int) -> list[int] | None:
        """As `find`, where conditions read the row and rows near it: at each row the first way that leads to the
        end."""
        stop, times, bound = high, self.rows.times, self.plan.bound
        if bound is not None:
            stop = start
            while stop < high and abs(int(times[stop]) - int(times[start])) < bound:
                stop += 1
        begin = low if bound is None else start
        if self._partition != (begin, stop):
            self._partition, self._can = (begin, stop), self._able(begin, stop, high)
        path: list[int] = []
        ways = self.program.begin(first=start == low)
        for row in range(start, stop + 1):
            able = self._can[row - begin]
            way = next((one for one in ways if one == ACCEPT or able >> one & 1), None)
            if way is None:
                return None
            if way == ACCEPT:
                return path
            path.append(way)
            ways = self.program.behind(way, last=row + 1 == high)
        return None

    def _able(self, begin: int, stop: int, high: int) -> list[int]:
        """Of each row from begin to stop, and behind them, the places that may take it so that a match ends before
        stop, a bit each."""
        program, end = self.program, 1 << self.program.length
        masks = [program.mask(place) for place in range(program.length)]
        of_variable: dict[str, list[int]] = {}
        for place, name in enumerate(program.variables):
            of_variable.setdefault(name, []).append(place)
        able = [0] * (stop - begin + 1)
        for row in range(stop - 1, begin - 1, -1):
            after, places = able[row + 1 - begin] | end, []
            moment = Moment((), row, self._low(row), high, 0)
            for name, own in of_variable.items():
                condition = self.asked[name]
                if condition is None or condition(moment, row, None) is True:
                    if row + 1 == high:
                        places += [place for place in own if program.ends(place)]
                    else:
                        places += [place for place in own if masks[place] & after]
            able[row - begin] = sum(1 << place for place in places)
        return able

    def _low(self, row: int) -> int:
        return int(self.rows.bounds[self.rows.partition_of[row]])


def search_too_long(plan: RowPatternPlan, rows: Rows, start: int) -> SearchTooLongError:
    """The error of a search from a row that takes too many steps."""
    names = [one.variable for one in conditions_of(plan) if one.cls != "local"]
    return SearchTooLongError(
        f"{rows.described(start)}row {rows.id_of(start)}: the search takes more than "
        f"{plan.limit_per_start:,} steps (limit_per_start), for the sake of DEFINE {', '.join(names)}",
        hint="let conditions read the row and its neighbours only, bound it by within, or raise the limit",
    )
