"""Queries over feed items, as in MMQJP's evaluation (Hong 2009, 6.6): few value joins mostly, any leaf with any."""

from __future__ import annotations

from typing import Any

import numpy as np

LEAVES = ("item_url", "channel_url", "title", "timestamp", "description")
"""The elements of a feed item (`feeds`)."""


def feed_queries(count: int, seed: int) -> list[dict[str, str]]:
    """`count` rows for `each` of `feed_pattern`: a query's name and the variables of its value joins.

    A query has k joins with a chance of 1 / k (Zipf), k at most the number of leaves. Its leaves are drawn without
    order, left and right by themselves; the i-th of the left is equal to the i-th of the right. There are 1,545
    different ones. A row has as many joins as there are leaves: a query with fewer repeats its first.
    """
    chance = np.random.default_rng(seed)
    most = len(LEAVES)
    shares = 1.0 / np.arange(1, most + 1)
    joins = chance.choice(np.arange(1, most + 1), count, p=shares / shares.sum())
    rows = []
    for number, size in enumerate(joins.tolist()):
        pairs = zip(chance.permutation(most)[:size].tolist(), chance.permutation(most)[:size].tolist(), strict=True)
        texts = [(LEAVES[left], LEAVES[right]) for left, right in sorted(pairs)]
        row = {"number": str(number)}
        for place in range(most):
            row[f"left_{place}"], row[f"right_{place}"] = texts[place] if place < size else texts[0]
        rows.append(row)
    return rows


def feed_pattern(within: str) -> dict[str, Any]:
    """A pattern of kind xml_join whose `each` is a list of rows of `feed_queries`, or a CSV file of them. A query has
    the variables that it joins, and no others."""
    places = range(len(LEAVES))
    left = {f"{{left_{place}}}": f"$item/{{left_{place}}}" for place in places}
    right = {f"later_{{right_{place}}}": f"$later/{{right_{place}}}" for place in places}
    return {
        "kind": "xml_join",
        "queries": {
            "query_{number}": {
                "left": {"item": "//item", **left},
                "right": {"later": "//item", **right},
                "operator": "followed_by",
                "where": [f"${{left_{place}}} = $later_{{right_{place}}}" for place in places],
                "within": within,
                "return": {},
            }
        },
    }
