"""Hypothesis strategies for patterns, as text: every operator nested, NOT in every place it may stand."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.reference.trends.shape import shape_of
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.parse import parse_pattern

ATOMS = (*("A", "A x", "A y", "B", "B z", "C", "D", "D w") * 2, "ANY v")
"""Several variables for a type; a variable may come up several times."""

REPEATS = ("+", "+", "+", "*", "*", "?", "?", "{2}", "{2,}", "{0,2}", "{1,3}", "{2,3}", "{3,}")


@dataclass(frozen=True)
class Drawn:
    """A pattern and what the other strategies ask of it. Types are in reading order, with repetitions."""

    text: str
    types: tuple[str, ...]
    negated_types: tuple[str, ...]
    positive: tuple[str, ...]
    negated: tuple[str, ...]
    adjacent: tuple[tuple[str, str], ...]
    conjunction: bool


def drawn(text: str) -> Drawn:
    """The pattern's variables and the pairs that may be adjacent."""
    tree = parse_pattern(text)
    sides = tree.parts if isinstance(tree, s.And) else (tree,)
    shapes = [shape_of(side) for side in sides] + [shape_of(node.body) for node in nots(tree)]
    return Drawn(
        text=text,
        types=tuple(atom.type_name for atom in s.atoms(tree, negated=False)),
        negated_types=tuple(atom.type_name for atom in s.atoms(tree, negated=True)),
        positive=_variables(tree, negated=False),
        negated=_variables(tree, negated=True),
        adjacent=tuple(sorted({(v.variable, w.variable) for shape in shapes for v, w in shape.follows})),
        conjunction=isinstance(tree, s.And),
    )


def _variables(tree: s.PatternNode, *, negated: bool) -> tuple[str, ...]:
    return tuple(dict.fromkeys(atom.variable for atom in s.atoms(tree, negated=negated)))


def nots(node: s.PatternNode) -> list[s.Not]:
    """Every NOT of a pattern, nested ones too."""
    match node:
        case s.Not(body=body):
            return [node, *nots(body)]
        case s.Repeat(body=body):
            return nots(body)
        case s.Seq(parts=parts) | s.Or(options=parts) | s.And(parts=parts):
            return [negation for part in parts for negation in nots(part)]
        case _:
            return []


atoms = st.sampled_from(ATOMS)


@st.composite
def parts(draw: st.DrawFn, depth: int, negation: bool) -> str:
    """A positive part; it may match the empty sequence."""
    kind = draw(st.integers(0, 9)) if depth else 0
    if kind <= 2:
        return draw(atoms)
    if kind <= 6:
        return _grouped(draw(parts(depth - 1, negation))) + draw(st.sampled_from(REPEATS))
    if kind <= 8:
        return draw(sequences(depth, negation, outermost=False))
    return f"({draw(parts(depth - 1, negation))} OR {draw(parts(depth - 1, negation))})"


def _grouped(text: str) -> str:
    """A part as an operand of a postfix operator."""
    return text if text.isalpha() or text.endswith(")") else f"({text})"


@st.composite
def sequences(draw: st.DrawFn, depth: int, negation: bool, outermost: bool) -> str:
    """`SEQ(...)` of one to three positive parts; NOTs between them, and at the ends of an outermost one."""
    sizes = st.sampled_from((1, 2, 2, 3) if outermost else (2, 2, 3))
    positive = [draw(parts(depth - 1, negation)) for _ in range(draw(sizes))]
    written: list[str] = []
    for gap in range(len(positive) + 1):
        inside = 0 < gap < len(positive)
        if negation and (inside or outermost) and draw(st.integers(0, 2)) == 2:
            written += [f"NOT {draw(negatives(1))}" for _ in range(draw(st.sampled_from((1, 1, 1, 2))))]
        written += positive[gap : gap + 1]
    return f"SEQ({', '.join(written)})"


@st.composite
def negatives(draw: st.DrawFn, nested: int) -> str:
    """What NOT takes: a type, or a `SEQ` that may hold a NOT again."""
    if draw(st.booleans()):
        return draw(atoms)
    inner = [_grouped(draw(atoms)) + draw(st.sampled_from(("", "", "", "+", "?"))) for _ in range(2)]
    if nested and draw(st.booleans()):
        inner.insert(1, f"NOT {draw(negatives(nested - 1))}")
    text = f"SEQ({', '.join(inner)})"
    return f"SEQ({text[4:-1]}, {draw(atoms)})" if shape_of(parse_pattern(text)).nullable else text


@st.composite
def patterns(draw: st.DrawFn, *, negation: bool = True, conjunction: bool = True, depth: int = 3) -> Drawn:
    """A whole pattern that cannot match the empty sequence."""
    sides = 2 if conjunction and draw(st.integers(0, 9)) == 9 else 1
    return drawn(" AND ".join(draw(_side(depth if sides == 1 else 2, negation, sides > 1)) for _ in range(sides)))


@st.composite
def _side(draw: st.DrawFn, depth: int, negation: bool, bracket: bool) -> str:
    ends = negation and draw(st.booleans())
    text = draw(sequences(depth, negation, outermost=True) if ends else parts(depth, negation))
    if shape_of(parse_pattern(text)).nullable:
        text = f"{text[:-1]}, {draw(atoms)})" if ends else f"SEQ({text}, {draw(atoms)})"
    return f"({text})" if bracket else text


__all__ = ["ATOMS", "Drawn", "drawn", "patterns"]
