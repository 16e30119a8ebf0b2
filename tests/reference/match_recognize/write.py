"""Questions as SQL."""

from __future__ import annotations

from typing import Any

from tests.reference.match_recognize.evaluate import Question


def pattern(node: Any) -> str:
    match node:
        case ("var", name):
            return str(name)
        case ("seq", *parts):
            return " ".join(map(pattern, parts)) if len(parts) == 1 else f"({' '.join(map(pattern, parts))})"
        case ("alt", *parts):
            return f"({' | '.join(map(pattern, parts))})"
        case ("rep", body, low, high, greedy):
            bounds = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high))
            bounds = bounds or f"{{{low},{'' if high is None else high}}}"
            return f"({pattern(body)}){bounds}{'' if greedy else '?'}"
        case ("permute", *parts):
            return f"PERMUTE({', '.join(map(pattern, parts))})"
        case ("out", body):
            return f"{{- {pattern(body)} -}}"
        case ("empty",):
            return "()"
        case ("first",):
            return "^"
    return "$"


def expression(node: Any) -> str:
    match node:
        case ("lit", None):
            return "NULL"
        case ("lit", str() as value):
            return f"'{value}'"
        case ("lit", value):
            return str(value)
        case ("col", variable, name):
            return f"{variable}.{name}" if variable else str(name)
        case ("op", sign, left, right):
            return f"({expression(left)} {sign} {expression(right)})"
        case ("not", inner):
            return f"(NOT {expression(inner)})"
        case ("null?", inner):
            return f"({expression(inner)} IS NULL)"
        case ("nav", word, inner, offset, final):
            return f"{'FINAL ' if final else ''}{word}({expression(inner)}, {offset})"
        case ("near", word, inner, shift):
            return f"{word}({expression(inner)}, {shift})"
        case ("agg", function, None, variable, final):
            return f"{'FINAL ' if final else ''}{function}({f'{variable}.' if variable else ''}*)"
        case ("agg", function, inner, _, final):
            distinct, word = ("DISTINCT ", function[9:]) if function.startswith("DISTINCT") else ("", function)
            return f"{'FINAL ' if final else ''}{word}({distinct}{expression(inner)})"
        case ("label", variable):
            return f"CLASSIFIER({variable})"
    return "MATCH_NUMBER()"


def text_of(question: Question) -> str:
    """The text of a question."""
    lines = ["SELECT * FROM trades MATCH_RECOGNIZE ("]
    if question.partition:
        lines.append("  PARTITION BY sym")
    lines.append(f"  ORDER BY {question.order}")
    if question.measures:
        listed = (f"{expression(node)} AS {name}" for name, node in question.measures.items())
        lines.append(f"  MEASURES {', '.join(listed)}")
    lines.append(
        {
            "one": "  ONE ROW PER MATCH",
            "show": "  ALL ROWS PER MATCH",
            "omit": "  ALL ROWS PER MATCH OMIT EMPTY MATCHES",
            "unmatched": "  ALL ROWS PER MATCH WITH UNMATCHED ROWS",
        }[question.rows]
    )
    onward = {"past_last": "PAST LAST ROW", "next": "TO NEXT ROW"}.get(question.skip[0])
    lines.append(f"  AFTER MATCH SKIP {onward or f'TO {question.skip[0].upper()} {question.skip[1]}'}")
    lines.append(f"  PATTERN ({pattern(question.pattern)})")
    if question.subsets:
        listed = (f"{name} = ({', '.join(members)})" for name, members in question.subsets.items())
        lines.append(f"  SUBSET {', '.join(listed)}")
    if question.defines:
        listed = (f"{name} AS {expression(node)}" for name, node in question.defines.items())
        lines.append(f"  DEFINE {', '.join(listed)}")
    return "\n".join(lines) + ")"
