"""The parts of a pattern of kind matches: variables that bind one event, Kleene parts, and NOTs."""

from __future__ import annotations

from trendlake.cep_core.errors import BadPatternError, NotSupportedError
from trendlake.cep_core.events.names import TakenNames
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.language import parse
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.matches.compile.model import RESERVED_COLUMNS, MatchesPattern
from trendlake.cep_core.matches.compile.plan import Negation, Part
from trendlake.cep_core.patterns.resolver import Checking
from trendlake.cep_core.yaml.source import Path_

PATTERN: Path_ = ("pattern",)


class PatternChecker(Checking):
    """Reads `pattern` into `parts` and `negations`. `of_nots`: conditions by the variable of a NOT, found later."""

    def __init__(self, pattern: MatchesPattern, schema: EventSchema) -> None:
        super().__init__(pattern, schema)
        self.query = pattern
        self.parts: list[Part] = []
        self.negations: list[Negation] = []
        self.of_nots: dict[str, list[s.Expr]] = {}

    def read_pattern(self) -> bool:
        node = self.parsed(parse.parse_pattern, self.query.pattern, PATTERN)
        if node is None:
            return False
        for part in node.parts if isinstance(node, s.Seq) else (node,):
            match part:
                case s.Atom():
                    self._add(part, kleene=False)
                case s.Repeat(body=s.Atom() as atom, low=1, high=None):
                    self._add(atom, kleene=True)
                case s.Not(body=s.Atom() as atom, within=within) if isinstance(node, s.Seq):
                    if self._known(atom):
                        negation = Negation(atom.variable, atom.type_name, len(self.parts), within=within)
                        self.negations.append(negation)
                        self.of_nots[atom.variable] = []
                        self._limits(negation, part)
                case _:
                    self._no_part(part)
        if not self.parts and not self.errors:
            self.report(BadPatternError("a SEQ has a part that is not a NOT"), PATTERN, node.span)
        return bool(self.types)

    def _limits(self, negation: Negation, node: s.Not) -> None:
        """Reports a limit of a NOT that counts from no event, and a last NOT without one next to one that has it."""
        if negation.within is not None and not negation.after:
            hint = f"without a limit it looks as far back as within; bound it by a condition on {negation.variable}"
            message = "the limit of a NOT counts from the event before it, and there is none"
            self.report(BadPatternError(message, hint=hint), PATTERN, node.span)
        beside = self.negations[-2] if len(self.negations) > 1 else negation
        if beside.after == negation.after and (beside.within is None) != (negation.within is None):
            message = f"NOT {beside.variable} and NOT {negation.variable} stand together: one has a limit, one has none"
            self.report(NotSupportedError(message, hint="give both a limit"), PATTERN, node.span)

    def _no_part(self, part: s.PatternNode) -> None:
        message = "a pattern of kind matches is one SEQ (or one part) of types, Kleene parts T v+ and NOT T v"
        hints = {
            s.Repeat: "of the operators only + stands here, after one type",
            s.Not: "NOT takes one type here, inside SEQ",
            s.Seq: "write the inner SEQ's parts in the outer one",
        }
        self.report(BadPatternError(message, hint=hints.get(type(part))), PATTERN, part.span)
        self.unread |= {atom.variable for atom in s.atoms(part)}

    def _known(self, atom: s.Atom) -> bool:
        self.check_type(atom)
        if atom.variable in self.types:
            message = f"variable '{atom.variable}' stands for another part already"
            self.report(BadPatternError(message, hint="give each part a variable of its own"), PATTERN, atom.span)
            return False
        self.types[atom.variable] = atom.type_name
        return True

    def _add(self, atom: s.Atom, *, kleene: bool) -> None:
        if self._known(atom):
            self.parts.append(Part(atom.variable, atom.type_name, kleene))
            columns = TakenNames(RESERVED_COLUMNS, "a column of every results table of kind matches")
            if taken := columns.take(atom.variable, "a variable"):
                message = f"'{atom.variable}' is {taken}"
                self.report(BadPatternError(message, hint="name the variable differently"), PATTERN, atom.span)
