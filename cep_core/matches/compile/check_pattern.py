"""The parts of a pattern of kind matches: its variables, in reading order, and its NOTs."""

from __future__ import annotations

from itertools import pairwise

from trendlake.cep_core.errors import BadPatternError, NotSupportedError
from trendlake.cep_core.events.names import TakenNames
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.language import parse
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.matches.compile.model import RESERVED_COLUMNS, MatchesPattern
from trendlake.cep_core.matches.compile.plan import Negation, Part
from trendlake.cep_core.matches.compile.positions import positions_of
from trendlake.cep_core.patterns.resolver import Checking
from trendlake.cep_core.yaml.source import Path_

PATTERN: Path_ = ("pattern",)


class PatternChecker(Checking):
    """Reads `pattern` into `parts`, `negations` (`nodes`: of each its place in the text) and, where it is more than one
    SEQ of types, Kleene parts and NOTs, `tree`. `of_nots`: conditions by the variable of a NOT, found later."""

    def __init__(self, pattern: MatchesPattern, schema: EventSchema) -> None:
        super().__init__(pattern, schema)
        self.query = pattern
        self.parts: list[Part] = []
        self.negations: list[Negation] = []
        self.nodes: list[s.Not] = []
        self.of_nots: dict[str, list[s.Expr]] = {}
        self.tree: s.PatternNode | None = None
        self.refused = False

    def read_pattern(self) -> bool:
        node = self.parsed(parse.parse_pattern, self.query.pattern, PATTERN)
        if node is None:
            self.refused = True
            return False
        self._read(node, outermost=True)
        if not self.parts and not self.refused:
            self._refuse(node, "a SEQ has a part that is not a NOT")
        elif not self.refused:
            simple = simplified(node)
            self.tree = None if _is_sequence(simple) else simple
            self._positions(simple, node.span)
        return bool(self.types)

    def _read(self, node: s.PatternNode, *, many: bool = False, outermost: bool = False) -> None:
        """Adds the parts and NOTs of a pattern, in reading order. `many`: it may be repeated."""
        match node:
            case s.Atom():
                self._add(node, many=many)
            case s.Repeat(body=body, high=high):
                self._read(body, many=many or high != 1)
            case s.Or(options=options):
                for option in options:
                    self._read(option, many=many)
            case s.Seq():
                self._sequence(node, many=many, outermost=outermost)
            case s.Not():
                self._refuse(node, "NOT stands inside SEQ", "write SEQ(A a, NOT B b, C c)")
            case s.And():
                self._refuse(node, "AND counts pairs of trends", "AND is of kind trends; for alternatives write OR")

    def _sequence(self, node: s.Seq, *, many: bool, outermost: bool) -> None:
        parts = node.parts
        present = [number for number, part in enumerate(parts) if not isinstance(part, s.Not)]
        if not present and not outermost:
            self._refuse(node, "a SEQ has a part that is not a NOT")
            return
        for number, part in enumerate(parts):
            if not isinstance(part, s.Not):
                self._read(part, many=many)
            elif not isinstance(part.body, s.Atom):
                self._refuse(part, "NOT takes one type here", "write one NOT for each")
            elif present and not outermost and not present[0] < number < present[-1]:
                message = "here a NOT stands between two parts; first or last it stands only in the outermost SEQ"
                self._refuse(part, message)
            elif self._known(part.body):
                atom = part.body
                self.negations.append(Negation(atom.variable, atom.type_name, len(self.parts), within=part.within))
                self.of_nots[atom.variable] = []
                self.nodes.append(part)

    def _positions(self, node: s.PatternNode, span: s.Span) -> None:
        """Reports what the positions of the pattern do not allow: that it may be empty, and limits of NOTs."""
        number = {negation.variable: k for k, negation in enumerate(self.negations)}
        try:
            positions = positions_of(node, number)
        except BadPatternError as error:
            self.report(error, PATTERN, span)
            self.refused = True
            return
        first, last = (
            {k for ways in ends.values() for way in ways for k in way} for ends in (positions.start, positions.end)
        )
        for k, negation in enumerate(self.negations):
            if k in first and negation.within is not None:
                hint = f"without a limit it looks as far back as within; bound it by a condition on {negation.variable}"
                there = "may be" if negation.after else "is"
                message = f"the limit of a NOT counts from the event before it, and there {there} none"
                self.report(BadPatternError(message, hint=hint), PATTERN, self.nodes[k].span)
        for one, other in pairwise(sorted(last)):
            before, after = self.negations[one], self.negations[other]
            if (before.within is None) != (after.within is None):
                stand = "stand together" if before.after == after.after else "may both stand last"
                message = f"NOT {before.variable} and NOT {after.variable} {stand}: one has a limit, one has none"
                self.report(NotSupportedError(message, hint="give both a limit"), PATTERN, self.nodes[other].span)

    def _refuse(self, part: s.PatternNode, message: str, hint: str | None = None) -> None:
        self.report(BadPatternError(message, hint=hint), PATTERN, part.span)
        self.refused = True
        self.unread |= {atom.variable for atom in s.atoms(part)}

    def _known(self, atom: s.Atom) -> bool:
        self.check_type(atom)
        if atom.variable in self.types:
            message = f"variable '{atom.variable}' stands for another part already"
            self.report(BadPatternError(message, hint="give each part a variable of its own"), PATTERN, atom.span)
            self.refused = True
            return False
        self.types[atom.variable] = atom.type_name
        return True

    def _add(self, atom: s.Atom, *, many: bool) -> None:
        if self._known(atom):
            self.parts.append(Part(atom.variable, atom.type_name, kleene=many))
            columns = TakenNames(RESERVED_COLUMNS, "a column of every results table of kind matches")
            if taken := columns.take(atom.variable, "a variable"):
                message = f"'{atom.variable}' is {taken}"
                self.report(BadPatternError(message, hint="name the variable differently"), PATTERN, atom.span)


def simplified(node: s.PatternNode) -> s.PatternNode:
    """The pattern with fewer nodes and the same positions: `SEQ(A a, SEQ(B b, C c))` -> `SEQ(A a, B b, C c)`,
    `(A a{1})+` -> `A a+`."""
    match node:
        case s.Seq(parts=parts):
            flat: list[s.PatternNode] = []
            for part in map(simplified, parts):
                flat += part.parts if isinstance(part, s.Seq) else (part,)
            return flat[0] if len(flat) == 1 else s.Seq(tuple(flat), node.span)
        case s.Or(options=options):
            return s.Or(tuple(map(simplified, options)), node.span)
        case s.Repeat(body=body, low=low, high=high):
            inner = simplified(body)
            if (low, high) == (1, 1):
                return inner
            again = isinstance(inner, s.Repeat) and (inner.low, inner.high) == (low, high) == (1, None)
            return inner if again else s.Repeat(inner, low, high, node.span)
    return node


def _is_sequence(node: s.PatternNode) -> bool:
    """Whether it is one SEQ of types, Kleene parts and NOTs, or one of the first two."""
    return all(
        isinstance(part, s.Atom | s.Not)
        or (isinstance(part, s.Repeat) and isinstance(part.body, s.Atom) and (part.low, part.high) == (1, None))
        for part in (node.parts if isinstance(node, s.Seq) else (node,))
    )
