"""From a pattern file of kind match_recognize to its plan."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Iterable
from dataclasses import replace

from trendlake.cep_core.errors import (
    BadPatternError,
    NotSupportedError,
    PatternErrors,
    PatternSyntaxError,
    PatternWarning,
    TrendlakeError,
    TypeMismatchError,
    UnknownVariableError,
)
from trendlake.cep_core.events.names import reserved, same_name
from trendlake.cep_core.events.schema import EventSchema, family
from trendlake.cep_core.events.windows import AGES
from trendlake.cep_core.expressions.types import ExpressionError
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.unparse import duration
from trendlake.cep_core.match_recognize.compile import syntax as r
from trendlake.cep_core.match_recognize.compile.checking import Checking, Table, type_of
from trendlake.cep_core.match_recognize.compile.classes import variables_in
from trendlake.cep_core.match_recognize.compile.leaves import Cell, Navigation, columns_of
from trendlake.cep_core.match_recognize.compile.model import RESERVED_COLUMNS, MatchRecognizePattern
from trendlake.cep_core.match_recognize.compile.parse import parse_query
from trendlake.cep_core.match_recognize.compile.plan import Column, Onward, RowPatternPlan, SortKey
from trendlake.cep_core.match_recognize.compile.program import MOST_PARTS, parts_of
from trendlake.cep_core.match_recognize.compile.scope import Names, Scope, listed


def compile_match_recognize(pattern: MatchRecognizePattern, schema: EventSchema) -> RowPatternPlan:
    """Check `pattern` against `schema` and compile it. Raises PatternErrors with all mistakes."""
    parsed = parse_query(pattern.pattern)
    checker = _Checker(pattern, schema, parsed.query)
    for where, error in parsed.errors:
        cause = PatternSyntaxError(error.message, hint=error.hint)
        checker.report(where, cause, (error.offset, error.offset + error.width))
    plan = checker.plan()
    if plan is None or checker.errors:
        raise PatternErrors(sorted(checker.errors, key=_place))
    for warning in plan.warnings:
        python_warnings.warn(warning, PatternWarning, stacklevel=2)
    return plan


def _place(error: TrendlakeError) -> tuple[int, int]:
    return (error.place.line, error.place.column) if error.place else (0, 0)


class _Checker(Checking):
    """The checks of one text, part by part."""

    def __init__(self, pattern: MatchRecognizePattern, schema: EventSchema, query: r.Query) -> None:
        super().__init__(pattern, schema)
        self.query = query
        of_source = {name: Column(name, kind, family(kind), None, name) for name, kind in schema.columns}
        self.source = Table(of_source, "the source", (schema.event_id, schema.event_time, schema.event_type))
        self.rows = self.source
        variables = () if query.pattern is None else r.variables_of(query.pattern)
        self.names = Names(variables, {})

    def plan(self) -> RowPatternPlan | None:
        """The plan; None where mistakes leave it without."""
        query = self.query
        where = self._input()
        self.names = Names(self.names.variables, self._subsets())
        self._pattern()
        partition = self._partition()
        order = self._order()
        named: set[str] = set()
        defines = self._defines(named)
        measures = self._measures(partition, named)
        onward = self._onward(named)
        bound = self._bound(order)
        given = self._given(partition, order, measures)
        selected, chosen = self._around(given, partition)
        if query.pattern is None or self.errors:
            return None
        rows = query.empty if query.all_rows else "one"
        plan = RowPatternPlan(
            self.schema,
            tuple(self.rows.columns.values()),
            where,
            tuple(column.name for column in partition),
            order,
            query.pattern,
            defines,
            measures,
            rows,
            onward,
            bound,
            tuple(given),
            tuple(selected),
            chosen,
            self.pattern.limit_per_partition,
            self.pattern.limit_per_start,
            tuple(self.names.subsets.items()),
        )
        plan = _pruned(plan)
        self._warnings(plan, named)
        self._consistency(plan)
        return replace(plan, warnings=tuple(self.warnings), advice=tuple(self.adviser.advice))

    def _consistency(self, plan: RowPatternPlan) -> None:
        """Reports a pattern that waits for what no time decides."""
        if self.pattern.consistency != "strong" or plan.windows.ahead < AGES:
            return
        message = "consistency: strong waits until no later row can change a match, and here any later row may"
        hint = "state within, and use neither NEXT nor $ nor another order than by time; or consistency: middle"
        place = self.pattern.document.place(("consistency",))
        self.errors.append(NotSupportedError(message, place=place, hint=hint))

    # --- the input

    def _roles(self) -> list[str]:
        schema = self.schema
        names = (schema.event_id, schema.event_time, schema.event_type, schema.sequence)
        return [name for name in names if name and name in self.source.columns]

    def _input(self) -> s.Expr | None:
        """Reads the query behind FROM; its condition."""
        query = self.query.input
        if query is None:
            return None
        table, source = query.table, self.pattern.source
        known = {source, source.removeprefix("results/")} if source else set()  # of several tables any word will do
        if source and same_name(table.text) not in {same_name(name) for name in known if name}:
            message = f"the text reads '{table.text}', the source is '{source}'"
            self.report("", BadPatternError(message, hint=f"FROM {source.removeprefix('results/')}"), table.span)
        if query.items is not None:
            self._input_items(query.items)
        return None if query.condition is None else self.condition("WHERE", query.condition, self._of_source)

    def _of_source(self, node: s.Attribute) -> s.Expr:
        """A column of the source in the query behind FROM. Raises ExpressionError."""
        return self._plain(node, self.source, "the query behind FROM reads columns of each event only")

    def _plain(self, node: s.Attribute, table: Table, hint: str) -> s.Expr:
        if type(node) is not s.Attribute:
            raise ExpressionError(BadPatternError("no navigation and no aggregate here", hint=hint), node.span)
        column = table.column(node.name, node.span)
        return Cell("", column.name, False, node.span, column.family)

    def _input_items(self, items: Iterable[r.Item]) -> None:
        columns: dict[str, Column] = {}
        taken: set[str] = set()
        roles = self._roles()

        def add(column: Column, span: s.Span) -> None:
            plain = same_name(column.name)
            if plain in taken:
                self.report("FROM", BadPatternError(f"two are called '{column.name}'"), span)
            elif column.name in roles and column.origin != column.name:
                message = f"'{column.name}' is a column that each event has"
                self.report("FROM", BadPatternError(message, hint="choose another name"), span)
            else:
                columns[column.name] = column
            taken.add(plain)

        for item in items:
            if item.value is None:
                for column in self.source.columns.values():
                    add(column, item.span)
                continue
            result = self.expression("FROM", item.value, self._of_source)
            name = item.name.text if item.name else getattr(result[0] if result else None, "name", "")
            if result is None:
                if name:
                    columns[name] = Column(name, "null", "null", None, "")
                continue
            if not name:
                self.report("FROM", BadPatternError("a column needs a name", hint="expression AS name"), item.span)
                continue
            node, kind = result
            span = item.name.span if item.name else item.span
            if isinstance(node, Cell):
                add(Column(name, self.source.columns[node.name].type_name, kind, None, node.name), span)
            else:
                add(Column(name, type_of(kind), "int" if kind == "duration" else kind, node), span)
        for name in roles:
            columns.setdefault(name, self.source.columns[name])
        self.rows = Table(columns, "the source", self._roles())

    # --- the clause

    def _column(self, where: str, name: r.Name) -> Column | None:
        try:
            return self.rows.column(name.text, name.span)
        except ExpressionError as error:
            self.report(where, self.cause(error.cause, name.text), name.span)
            return None

    def _partition(self) -> list[Column]:
        result: list[Column] = []
        for name in self.query.partition_by:
            column = self._column("PARTITION BY", name)
            if column is None:
                continue
            if column in result:
                self.report("PARTITION BY", BadPatternError(f"'{column.name}' stands here twice"), name.span)
            elif same_name(column.name) in map(same_name, RESERVED_COLUMNS):
                message = f"'{column.name}' is a column of every result"
                self.report(
                    "PARTITION BY", BadPatternError(message, hint="rename it in a query behind FROM"), name.span
                )
            elif column.family == "other":
                self.report("PARTITION BY", self._unknown_type(column), name.span)
            else:
                result.append(column)
        return result

    def _unknown_type(self, column: Column) -> TrendlakeError:
        message = f"the type of column '{column.name}', {column.type_name}, is none that has an order"
        return TypeMismatchError(message)

    def _order(self) -> tuple[SortKey, ...]:
        result: list[SortKey] = []
        for key in self.query.order_by:
            column = self._column("ORDER BY", key.column)
            if column is not None and column.family == "other":
                self.report("ORDER BY", self._unknown_type(column), key.column.span)
            elif column is not None:
                first = key.descending if key.nulls_first is None else key.nulls_first
                result.append(SortKey(column.name, key.descending, first))
        return tuple(result)

    def _subsets(self) -> dict[str, tuple[str, ...]]:
        result: dict[str, tuple[str, ...]] = {}
        variables = self.names.variables
        for name, members in self.query.subsets:
            where = f"SUBSET {name.variable}"
            if name.variable in variables:
                self.report(where, BadPatternError("the pattern has a variable of that name"), name.span)
                continue
            if name.variable in result:
                self.report("SUBSET", BadPatternError(f"{name.variable} is defined twice"), name.span)
                continue
            for member in members:
                if variables and member.variable not in variables:
                    error = UnknownVariableError(f"'{member.variable}' is not in PATTERN", hint=self.names.unknown_hint)
                    self.report(where, error, member.span)
            wanted = {member.variable for member in members}
            result[name.variable] = tuple(variable for variable in variables if variable in wanted)
        return result

    def _pattern(self) -> None:
        pattern = self.query.pattern
        if pattern is None:
            return
        span = pattern.span
        if not self.names.variables:
            self.report("PATTERN", BadPatternError("a pattern has at least one variable"), span)
        elif (count := parts_of(pattern)) > MOST_PARTS:
            shown = f"{count:,}" if count < 10**18 else "more than 10^18"
            message = f"{shown} parts, its bounds written out; at most {MOST_PARTS:,} are possible"
            self.report("PATTERN", NotSupportedError(message, hint="smaller bounds, or a loop without one"), span)
        excluded = next((part for part in r.walk(pattern) if isinstance(part, r.Excluded)), None)
        if excluded is not None and self.query.all_rows and self.query.empty == "unmatched":
            message = "{- -} leaves rows out, WITH UNMATCHED ROWS asks for all"
            self.report("", BadPatternError(message), excluded.span)

    def _defines(self, named: set[str]) -> tuple[tuple[str, s.Expr], ...]:
        result: dict[str, s.Expr] = {}
        seen: set[str] = set()
        for name, node in self.query.defines:
            variable, where = name.variable, f"DEFINE {name.variable}"
            if variable in self.names.subsets:
                hint = f"define {listed(self.names.subsets[variable])}"
                self.report(where, BadPatternError(f"'{variable}' is a SUBSET", hint=hint), name.span)
            elif variable in seen:
                self.report(where, BadPatternError("the variable is defined twice"), name.span)
            elif self.query.pattern is not None and variable not in self.names.variables:
                known = self.names.unknown_hint if self.names.variables else None
                self.report(where, UnknownVariableError(f"'{variable}' is not in PATTERN", hint=known), name.span)
            elif node is not None and self.query.pattern is not None:
                scope = Scope(self, self.rows, self.names, variable)
                condition = self.condition(where, node, scope.leaf)
                named |= scope.named
                if condition is not None:
                    result[variable] = condition
            seen.add(variable)
        named |= seen
        return tuple((variable, result[variable]) for variable in self.names.variables if variable in result)

    def _measures(self, partition: list[Column], named: set[str]) -> tuple[Column, ...]:
        result: list[Column] = []
        taken: set[str] = set()
        scope = Scope(self, self.rows, self.names)
        for item in self.query.measures:
            if item.value is None:
                self.report("MEASURES", BadPatternError("a measure is an expression, not *"), item.span)
                continue
            if item.name is None:
                hint = "expression AS name"
                self.report("MEASURES", BadPatternError("a measure needs a name", hint=hint), item.span)
                continue
            name, where = item.name.text, f"MEASURES {item.name.text}"
            free = self._measure_name(name, item.name.span, taken, partition)
            if self.query.pattern is None:
                continue
            value = self.expression(where, item.value, scope.leaf) or (s.Literal(None, "null"), "null")
            if free:
                node, kind = value
                result.append(Column(name, self._type(node, kind), "int" if kind == "duration" else kind, node))
        named |= scope.named
        return tuple(result)

    def _type(self, node: s.Expr, kind: str) -> str:
        """A column keeps its type."""
        if isinstance(node, Navigation) and isinstance(node.argument, Cell):
            return self.rows.columns[node.argument.name].type_name
        return type_of(kind)

    def _measure_name(self, name: str, span: s.Span, taken: set[str], partition: list[Column]) -> bool:
        """Whether a measure may have a name; reports why not."""
        before = len(self.errors)
        plain, where = same_name(name), f"MEASURES {name}"
        columns = self.rows.columns if self.query.all_rows else [column.name for column in partition]
        if plain in taken:
            first = next(i.name.text for i in self.query.measures if i.name and same_name(i.name.text) == plain)
            self.report("MEASURES", BadPatternError(f"two are called '{first}'"), span)
        elif plain in map(same_name, RESERVED_COLUMNS):
            error = BadPatternError(f"'{name}' is a column of every result", hint="choose another name")
            self.report(where, error, span)
        elif plain in map(same_name, columns):
            mode = "with ALL ROWS PER MATCH " if self.query.all_rows else ""
            self.report(where, BadPatternError(f"{mode}the result has a column '{name}' already"), span)
        elif reserved(name) is not None:
            self.report(where, BadPatternError(f"'{name}' is {reserved(name)}", hint="choose another name"), span)
        taken.add(plain)
        return len(self.errors) == before

    def _onward(self, named: set[str]) -> Onward:
        skip = self.query.skip
        if skip.target is None:
            return Onward(skip.mode)
        name = skip.target.variable
        where = f"AFTER MATCH SKIP TO {skip.mode.upper()} {name}"
        variables = self.names.subsets.get(name, (name,) if name in self.names.variables else None)
        if variables is None:
            if self.query.pattern is not None and self.names.variables:
                error = UnknownVariableError(f"unknown pattern variable '{name}'", hint=self.names.unknown_hint)
                self.report(where, error, skip.target.span)
            return Onward()
        named |= {name, *variables}
        return Onward(skip.mode, variables, name)

    def _bound(self, order: tuple[SortKey, ...]) -> int | None:
        own, stated = self.query.within, self.pattern.within
        if own is not None and stated is not None and own[0] != stated:
            message = f"within is {duration(stated)} in the file and {duration(own[0])} here"
            self.report("WITHIN", BadPatternError(message, hint="state it once"), own[1])
        bound = own[0] if own is not None else stated
        if bound is not None and order and order[0].column != self.schema.event_time:
            span = self.query.order_by[0].column.span
            message = f"within needs '{self.schema.event_time}' as the first key"
            self.report("ORDER BY", BadPatternError(message), span)
        return bound

    # --- the result

    def _given(self, partition: list[Column], order: tuple[SortKey, ...], measures: tuple[Column, ...]) -> list[Column]:
        """The columns that the clause gives."""
        schema = self.schema
        of_id = self.source.columns.get(schema.event_id)
        id_type = of_id.type_name if of_id else "string"
        given = [Column(one.name, one.type_name, one.family, None, one.name) for one in partition]
        given.append(Column("match_id", id_type, family(id_type)))
        names = {column.name for column in given}

        def add(name: str) -> None:
            column = self.rows.columns.get(name)
            if column is not None and name not in names and name not in ("start", "end"):
                names.add(name)
                given.append(Column(name, column.type_name, column.family, None, name))

        if self.query.all_rows:
            add(schema.event_id)
        given += [Column("start", "timestamp", "timestamp"), Column("end", "timestamp", "timestamp")]
        if self.query.all_rows:
            for key in order:
                add(key.column)
        given += [replace(measure, value=None) for measure in measures]
        if self.query.all_rows:
            for name in self.rows.columns:
                add(name)
        return given

    def _around(self, given: list[Column], partition: list[Column]) -> tuple[list[Column], s.Expr | None]:
        """SELECT and WHERE around the clause."""
        query = self.query
        table = Table({column.name: column for column in given}, "the result")
        called = same_name(query.called)

        def leaf(node: s.Attribute) -> s.Expr:
            if type(node) is s.Attribute and node.variable and same_name(node.variable) != called:
                hint = f"write {query.called}.{node.name}" if called else f"write {node.name}"
                error = UnknownVariableError(f"there is no table '{node.variable}' here", hint=hint)
                raise ExpressionError(error, node.span)
            return self._plain(node, table, "a measure stands in MEASURES, under a name")

        key = {*(one.name for one in partition), "match_id", "start", "end"}
        key |= {self.schema.event_id} if query.all_rows else set()
        fixed = [column for column in given if column.name in key]
        others = [column for column in given if column.name not in key]
        chosen = None if query.condition is None else self.condition("WHERE", query.condition, leaf)
        if query.items is None:
            selected = [*fixed, *others]
        else:
            selected = list(fixed)
            taken = {same_name(column.name) for column in selected}
            for item in query.items:
                for column in self._selected(item, leaf, others, table):
                    if column in fixed:
                        continue
                    if (plain := same_name(column.name)) in taken:
                        self.report("SELECT", BadPatternError(f"two are called '{column.name}'"), item.span)
                    elif plain in map(same_name, RESERVED_COLUMNS):
                        error = BadPatternError(
                            f"'{column.name}' is a column of every result", hint="choose another name"
                        )
                        self.report("SELECT", error, item.span)
                    taken.add(plain)
                    selected.append(column)
        for column in selected:
            if column.family == "other":
                hint = "SELECT the columns that are needed"
                message = f"a row cannot have '{column.name}': its type is not known"
                self.report("", TypeMismatchError(message, hint=hint), query.rows_span)
            elif (
                column not in fixed
                and column.value is None
                and same_name(column.name) in map(same_name, RESERVED_COLUMNS)
            ):
                hint = "SELECT the columns that are needed, or rename it in a query behind FROM"
                self.report(
                    "", BadPatternError(f"'{column.name}' is a column of every result", hint=hint), query.rows_span
                )
        return selected, chosen

    def _selected(self, item: r.Item, leaf: object, others: list[Column], table: Table) -> list[Column]:
        """The columns of an item of SELECT."""
        if item.value is None:
            return others
        result = self.expression("SELECT", item.value, leaf)  # type: ignore[arg-type]
        if result is None:
            return []
        node, kind = result
        if isinstance(node, Cell):
            column = table.columns[node.name]
            return [column] if item.name is None else [replace(column, name=item.name.text, value=node)]
        if item.name is None:
            self.report("SELECT", BadPatternError("a column needs a name", hint="expression AS name"), item.span)
            return []
        return [Column(item.name.text, type_of(kind), "int" if kind == "duration" else kind, node)]

    # --- warnings

    def _warnings(self, plan: RowPatternPlan, named: set[str]) -> None:
        seen: set[str] = set()
        for part in r.walk(plan.pattern):
            if isinstance(part, r.Variable) and part.name not in named | seen:
                seen.add(part.name)
                message = f"nothing names '{part.name}', and DEFINE leaves it out: any row is one"
                self.warn(message, "did you misspell one?", part.span)
        onward, program = plan.onward, plan.program
        if onward.mode not in ("first", "last"):
            return
        first, later = variables_in(program, program.mask(None)), 0
        for place in range(program.length):
            later |= program.mask(place)
        of_set = set(onward.variables)
        if first and first <= of_set and (onward.mode == "first" or not variables_in(program, later) & of_set):
            word = f"AFTER MATCH SKIP TO {onward.mode.upper()} {onward.name}"
            message = f"{word} is the first row of every match, so matching would not go on"
            self.warn(message, "skip to another variable", self.query.skip.span)


def _pruned(plan: RowPatternPlan) -> RowPatternPlan:
    """Without the columns and measures that nothing reads."""
    asked = {column.name for column in plan.selected}
    for node in (plan.chosen, *(column.value for column in plan.selected)):
        asked |= set(columns_of(node)) if node is not None else set()
    measures = tuple(one for one in plan.measures if one.name in asked)
    given = tuple(one for one in plan.given if one.name in asked)
    read = {*plan.partition_by, *(key.column for key in plan.order_by)}
    read |= {one.origin for one in given if one.origin}
    for node in (*(condition for _, condition in plan.defines), *(one.value for one in measures)):
        read |= set(columns_of(node)) if node is not None else set()
    inputs = tuple(one for one in plan.inputs if one.name in read)
    return replace(plan, inputs=inputs, measures=measures, given=given)
