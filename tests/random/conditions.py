"""Hypothesis strategies for `where`: local, equivalence, scoped and adjacent conditions, as text.

Attributes: `x`, `n` integers, `y` double, `g` string, `h` integer; all may be NULL.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.random.patterns import Drawn

COMPARE = ("<", "<=", ">", ">=")

LOCAL = (
    "{v}.x > 0",
    "{v}.x <= 1",
    "{v}.y < 1.5",
    "{v}.g = 'u'",
    "{v}.g != 'u'",
    "{v}.x IS NOT NULL",
    "{v}.x IS NULL OR {v}.x >= 0",
    "{v}.x IN (-1, 1, 2)",
    "{v}.x NOT IN (1, NULL)",
    "{v}.g IN ('u', 'v')",
    "{v}.y BETWEEN -1 AND 1",
    "{v}.y NOT BETWEEN 0 AND 1",
    "NOT ({v}.x = 1)",
    "abs({v}.x) < 2",
    "{v}.x + {v}.n > 0",
    "{v}.x / {v}.n < 1",
    "{v}.x % 2 = 1",
    "{v}.y % 1 != 0",
    "-{v}.x < {v}.y",
    "least({v}.x, {v}.y) < 0",
    "greatest({v}.x, {v}.n, 0) = 0",
    "coalesce({v}.x, 0) >= 0",
    "upper({v}.g) = 'U' OR lower({v}.g) = 'v'",
    "hour({v}.event_time) < 12",
    "dayofweek({v}.event_time) IN (1, 5)",
    "{v}.event_time < TIMESTAMP '1970-01-01T00:00:09Z'",
    "{v}.x > 0 AND {v}.y > 0",
)

ONE_SIDED = (
    "{v}.x {op} NEXT({w}).x",
    "{v}.x {op} NEXT({w}).n",
    "{v}.y {op} NEXT({w}).y",
    "{v}.y {op} NEXT({w}).x",
    "NEXT({w}).x {op} {v}.n",
    "{v}.x + {c} {op} NEXT({w}).y",
    "{v}.x {op} NEXT({w}).y - {c}",
    "{v}.x * 2 - {c} {op} NEXT({w}).n",
    "abs({v}.x) {op} NEXT({w}).n",
    "coalesce({v}.x, {c}) {op} coalesce(NEXT({w}).x, 0)",
    "{v}.g {op} NEXT({w}).g",
    "{v}.event_time + {c} seconds {op} NEXT({w}).event_time",
)
"""One inequality, each side of it of one event."""

EQUAL = (
    "{v}.g = NEXT({w}).g",
    "{v}.h = NEXT({w}).h",
    "NEXT({w}).x = {v}.n",
    "{v}.x = NEXT({w}).x + 1",
    "{v}.x = NEXT({w}).y",
    "abs({v}.x) = abs(NEXT({w}).x)",
)

MIXED = (
    "{v}.x - NEXT({w}).x {op} {c}",
    "{v}.x + NEXT({w}).n {op} {v}.n",
    "{v}.x * NEXT({w}).y {op} {c}",
    "{v}.x % 2 = NEXT({w}).x % 2",
    "abs({v}.x - NEXT({w}).x) <= 1",
    "{v}.x != NEXT({w}).x",
    "NOT ({v}.x {op} NEXT({w}).x)",
    "{v}.x {op} NEXT({w}).x OR {v}.g = NEXT({w}).g",
    "{v}.x BETWEEN NEXT({w}).x - 1 AND NEXT({w}).n",
    "{v}.x IN (NEXT({w}).x, NEXT({w}).n)",
    "NEXT({w}).x IS NULL OR {v}.x {op} NEXT({w}).x",
    "least({v}.x, NEXT({w}).x) {op} {c}",
    "NEXT({w}).event_time - {v}.event_time {op} 2 seconds",
    "{v}.x / NEXT({w}).x {op} 1",
)
"""Both events in one expression, or a disjunction: a pairwise scan unless the engine knows better."""

EQUIVALENCES = ("[g]", "[g]", "[h]", "[g, h]", "[{v}.g]", "[{v}.g]", "[{v}.g, h]", "[{v}.g, {w}.g]")


@st.composite
def local(draw: st.DrawFn, pattern: Drawn) -> str:
    """A filter of one variable, positive or under NOT."""
    variable = draw(st.sampled_from(pattern.positive + pattern.negated))
    return draw(st.sampled_from(LOCAL)).format(v=variable)


@st.composite
def adjacent(draw: st.DrawFn, pattern: Drawn) -> list[str]:
    """One to three conditions on one adjacent pair, as lines of `where` or as one line of a conjunction."""
    everywhere = [(v, w) for v in pattern.positive for w in pattern.positive]
    pairs = list(pattern.adjacent) if pattern.adjacent and draw(st.integers(0, 9)) < 9 else everywhere
    v, w = draw(st.sampled_from(pairs))
    kinds = {
        "inequality": (ONE_SIDED,),
        "equality": (EQUAL,),
        "both": (EQUAL, ONE_SIDED),
        "two inequalities": (ONE_SIDED, ONE_SIDED),
        "three": (EQUAL, ONE_SIDED, ONE_SIDED),
        "mixed": (MIXED,),
        "mixed and more": (MIXED, ONE_SIDED),
    }
    texts = [
        draw(st.sampled_from(templates)).format(v=v, w=w, op=draw(st.sampled_from(COMPARE)), c=draw(st.integers(0, 2)))
        for templates in kinds[draw(st.sampled_from(list(kinds)))]
    ]
    return texts if draw(st.booleans()) else [" AND ".join(f"({text})" for text in texts)]


@st.composite
def equivalence(draw: st.DrawFn, pattern: Drawn) -> str:
    """`[g]`, `[h]`, both, or scoped to variables."""
    variables = st.sampled_from(pattern.positive)
    return draw(st.sampled_from(EQUIVALENCES)).format(v=draw(variables), w=draw(variables))
