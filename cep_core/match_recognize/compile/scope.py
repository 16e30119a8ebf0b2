"""The scope of MEASURES and DEFINE: columns of rows, navigations, aggregates, CLASSIFIER and MATCH_NUMBER."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trendlake.cep_core.errors import (
    BadConditionError,
    TrendlakeError,
    TypeMismatchError,
    UnknownVariableError,
    did_you_mean,
)
from trendlake.cep_core.expressions.types import ExpressionError
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.match_recognize.compile import syntax as r
from trendlake.cep_core.match_recognize.compile.checking import Checking, Table, described, settled
from trendlake.cep_core.match_recognize.compile.leaves import LIST, Cell, Label, Navigation, Number, Total, mapped
from trendlake.cep_core.match_recognize.compile.parse_expression import inside
from trendlake.cep_core.patterns.parameters import typed

ORDERED = ("int", "double", "string", "timestamp", "date", "duration", "null")
_ZERO, _ONE = s.Literal(0, "int"), s.Literal(1, "int")


def listed(words: Sequence[str]) -> str:
    """Words with commas and an `and` between them."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


@dataclass(frozen=True)
class Names:
    """The variables of PATTERN, in its order, and the sets that SUBSET names."""

    variables: tuple[str, ...]
    subsets: Mapping[str, tuple[str, ...]]

    def find(self, name: str) -> tuple[str, ...] | None:
        """The variables that a name means; () for all there are, None for none."""
        if name not in self.variables and name not in self.subsets:
            return None
        members = self.subsets.get(name, (name,))
        return () if set(members) == set(self.variables) else members

    @property
    def unknown_hint(self) -> str:
        return f"the pattern has {listed(self.variables)}"


class Scope:
    """The reading of MEASURES, or of DEFINE `variable`."""

    def __init__(self, checking: Checking, rows: Table, names: Names, variable: str | None = None) -> None:
        self.checking, self.rows, self.names, self.variable = checking, rows, names, variable
        self.named: set[str] = set()
        """Variables and sets that were read by name."""

    def leaf(self, node: s.Attribute) -> s.Expr:
        """The resolved form of an attribute of the text. Raises ExpressionError."""
        match node:
            case r.MatchNumber(span=span):
                return Number("", "", False, span, "int")
            case r.Classifier(variable=name, span=span):
                variables = self._current(self._set(name, span))
                if self.variable is not None and not variables:
                    return s.Literal(self.variable, "string", span)
                return self._last(variables, Label("", "", False, span, "string"), span)
            case r.Navigate():
                return self._navigation(node)
            case r.Aggregate():
                return self._total(node)
        variables = self._current(self._set(node.variable, node.span))
        return self._last(variables, self._cell(node), node.span)

    def _last(self, variables: tuple[str, ...], argument: Cell | Label, span: s.Span) -> Navigation:
        return Navigation("", "", False, span, argument.family, variables, argument=argument)

    def _cell(self, node: s.Attribute) -> Cell:
        column = self.rows.column(node.name, node.span)
        if column.family == "other":
            message = f"the type of column '{column.name}', {column.type_name}, is none that is computed with"
            raise ExpressionError(TypeMismatchError(message), node.span)
        return Cell("", column.name, False, node.span, column.family)

    def _set(self, name: str, span: s.Span) -> tuple[str, ...]:
        if not name:
            return ()
        variables = self.names.find(name)
        if variables is None:
            close = did_you_mean(name, (*self.names.variables, *self.names.subsets)) or ""
            hint = close if close.startswith("did you mean") and len(name) > 1 else self.names.unknown_hint
            raise ExpressionError(UnknownVariableError(f"unknown pattern variable '{name}'", hint=hint), span)
        self.named |= {name, *self.names.subsets.get(name, ())}
        return variables

    def _current(self, variables: tuple[str, ...]) -> tuple[str, ...]:
        """In DEFINE the last row of a set that has the variable is the current one, as of all rows."""
        return () if self.variable in variables else variables

    # --- navigations

    def _navigation(self, node: r.Navigate) -> Navigation:
        word, inner = node.function, node.argument
        self._refuse_final(node)
        if word in ("FIRST", "LAST"):
            return self._based(node)
        sign = -1 if word == "PREV" else 1
        shift = self._offset(word, node.offset, _ONE)
        if isinstance(inner, r.Navigate) and inner.function in ("FIRST", "LAST"):
            self._refuse_final(inner)
            base = self._based(inner)
        else:
            base = self._based(r.Navigate("", "", False, node.span, "LAST", inner), word)
        return replace(base, sign=sign, shift=shift, span=node.span)

    def _based(self, node: r.Navigate, word: str | None = None) -> Navigation:
        """FIRST or LAST; `word`: the navigation that it is a part of."""
        offset = self._offset(node.function, node.offset, _ZERO)
        argument, family, variables = self._argument(word or node.function, (node.argument,), node.span)
        first = node.function == "FIRST"
        if not first and offset == _ZERO:
            variables = self._current(variables)
        final = node.semantics == "FINAL"
        return Navigation(
            "", "", False, node.span, family[0], variables, first, offset, final=final, argument=argument[0]
        )

    def _refuse_final(self, node: r.Navigate | r.Aggregate) -> None:
        if node.semantics == "FINAL" and self.variable is not None:
            raise self._error("FINAL is for MEASURES", "the match is not finished", node.span)

    def _offset(self, word: str, node: s.Expr | None, missing: s.Expr) -> s.Expr:
        if node is None:
            return missing
        hint = {"PREV": "NEXT looks forward", "NEXT": "PREV looks back"}.get(word)
        if isinstance(node, s.Literal) and node.kind == "int" and isinstance(node.value, int) and node.value < 2**31:
            return s.Literal(node.value, "int", node.span)
        if isinstance(node, s.Parameter):
            known = typed(node, self.checking.pattern.parameters)
            parameters = self.checking.pattern.parameters
            at = parameters.names.index(node.name) if parameters else 0
            values = [row[at] for row in parameters.rows] if parameters else []
            if known.kind == "int" and all(isinstance(value, int) and 0 <= value < 2**31 for value in values):
                offset: s.Expr = known
                return offset
        raise self._error(f"the offset of {word} is a whole number from 0", hint, node.span)

    # --- arguments

    def _argument(
        self, word: str, nodes: tuple[s.Expr, ...], span: s.Span, *, aggregate: bool = False
    ) -> tuple[tuple[s.Expr, ...], tuple[str, ...], tuple[str, ...]]:
        """Arguments, their families, and the set of variables that they read."""
        read: dict[str, None] = {}
        columns = labels = False
        left = list(reversed(nodes))
        while left:
            one = left.pop()
            match one:
                case r.Navigate(function=function):
                    raise self._nested(function, word, one, aggregate)
                case r.Aggregate():
                    message = "an aggregate inside an aggregate" if aggregate else f"an aggregate inside {word}"
                    raise self._error(message, "measures may be computed of one another in SELECT", one.span)
                case r.Classifier(variable=variable):
                    labels = True
                    if variable:
                        read.setdefault(variable)
                case r.MatchNumber():
                    pass
                case s.Attribute(variable=variable):
                    columns = True
                    read.setdefault(variable)
                case _:
                    left.extend(reversed(inside(one)))
        sets = {name: self._set(name, span) for name in read}
        if len(sets) > 1:
            names = listed([name or "all rows" for name in read])
            if aggregate:
                raise self._error(f"{word} reads {names}", "make a SUBSET of them", span)
            raise self._error(f"the argument of {word} reads {names}", "one is allowed", span)
        if not columns and not labels and not aggregate:
            raise self._error(f"the argument of {word} reads no column", "a constant needs no navigation", span)
        result = [settled(self._of_row(node)) for node in nodes]
        variables = next(iter(sets.values()), ())
        return tuple(node for node, _ in result), tuple(kind for _, kind in result), variables

    def _of_row(self, node: s.Expr) -> s.Expr:
        """An argument, resolved. Raises ExpressionError, UnknownHereError."""

        def change(one: s.Expr) -> s.Expr:
            match one:
                case s.Parameter():
                    known: s.Expr = typed(one, self.checking.pattern.parameters)
                    return known
                case r.MatchNumber(span=span):
                    return Number("", "", False, span, "int")
                case r.Classifier(span=span):
                    return Label("", "", False, span, "string")
                case s.Attribute():
                    return self._cell(one)
            return one

        return mapped(node, change)

    def _nested(self, function: str, word: str, node: s.Expr, aggregate: bool) -> ExpressionError:
        if aggregate:
            hint = "an aggregate reads columns of its rows"
        elif function in ("PREV", "NEXT") and word in ("FIRST", "LAST"):
            hint = f"{function}({word}(x)) is possible"
        elif function == word:
            hint = f"{word}(x, 2) goes two rows" if word in ("PREV", "NEXT") else f"{word}(x, 1) is the row next to it"
        else:
            hint = "PREV and NEXT may hold FIRST or LAST"
        return self._error(f"{function} inside {word}", hint, node.span)

    def _error(self, message: str, hint: str | None, span: s.Span) -> ExpressionError:
        cause: TrendlakeError = BadConditionError(message, hint=hint)
        return ExpressionError(cause, span)

    # --- aggregates

    def _total(self, node: r.Aggregate) -> Total:
        self._refuse_final(node)
        word, span, final = node.function, node.span, node.semantics == "FINAL"
        if node.all_of is not None:
            variables = self._set(node.all_of, span)
            return Total("", "", False, span, "int", word, variables, rows=True, final=final)
        arguments, kinds, variables = self._argument(word, node.arguments, span, aggregate=True)
        family = self._gives(word, arguments, kinds, node)
        if kinds[0] == "duration":
            arguments = (s.SqlCall("microseconds", (arguments[0],), span), *arguments[1:])
            kinds = ("int", *kinds[1:])
        return Total(
            "", "", False, span, family, word, variables, arguments, kinds, distinct=node.distinct, final=final
        )

    def _gives(self, word: str, arguments: tuple[s.Expr, ...], kinds: tuple[str, ...], node: r.Aggregate) -> str:
        kind = "int" if kinds[0] == "duration" else kinds[0]

        def wrong(what: str, at: int = 0) -> ExpressionError:
            message = f"{word} takes {what}, this is {described(kinds[at])}"
            return ExpressionError(TypeMismatchError(message), arguments[at].span)

        if word in ("SUM", "AVG"):
            if kind not in ("int", "double", "null"):
                raise wrong("numbers")
            return "int" if word == "SUM" and kind == "int" else "double"
        if word in ("MIN", "MAX") and kind not in ORDERED:
            raise wrong("values that have an order")
        if word in ("MAX_BY", "MIN_BY") and kinds[1] not in ORDERED:
            raise wrong("values that have an order", 1)
        if word in ("BOOL_AND", "BOOL_OR"):
            if kind not in ("boolean", "null"):
                raise wrong("conditions")
            return "boolean"
        if word == "STRING_AGG":
            if kind not in ("string", "null"):
                raise wrong("texts")
            if not isinstance(arguments[1], s.Literal | s.Parameter) or kinds[1] != "string":
                raise self._error("the separator of STRING_AGG is a text in quotes", None, node.span)
            return "string"
        if word == "COUNT":
            return "int"
        return f"{LIST}{kind}" if word == "ARRAY_AGG" else kind
