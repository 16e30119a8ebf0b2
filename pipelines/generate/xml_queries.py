"""Queries and documents of MMQJP's evaluation (Hong 2009, 6.6): few value joins mostly, any leaf with any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.schema import TIME_TYPE

LEAVES = ("item_url", "channel_url", "title", "timestamp", "description")
"""The elements of a feed item (`feeds`)."""
SECOND = 1_000_000


@dataclass(frozen=True)
class DocumentSchema:
    """The form of documents: `leaves` in an element `root`, or in each of its elements `groups` (three levels)."""

    root: str
    leaves: tuple[str, ...]
    groups: tuple[str, ...] = ()

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """(group, leaf) of every leaf of a document, in document order; the group is empty in two levels."""
        return tuple((group, leaf) for group in self.groups or ("",) for leaf in self.leaves)


FEED_ITEM = DocumentSchema("item", LEAVES)


def two_levels(leaves: int) -> DocumentSchema:
    """The schema of figure 6.8: `leaves` elements in a root."""
    return DocumentSchema("top", tuple(f"leaf{n}" for n in range(leaves)))


def three_levels(groups: int, leaves: int) -> DocumentSchema:
    """The schema of figures 6.11 to 6.13: `groups` elements in a root, with `leaves` elements each."""
    return DocumentSchema("top", tuple(f"leaf{n}" for n in range(leaves)), tuple(f"group{n}" for n in range(groups)))


def join_queries(schema: DocumentSchema, count: int, most: int, skew: float, seed: int) -> list[dict[str, str]]:
    """`count` rows for `each` of `join_pattern`: a query's number and the leaves of its value joins.

    A query has k joins with a chance in proportion to 1 / k**skew (Zipf), k from 1 to `most`, at most the number of
    leaves. Its leaves are drawn without order, left and right by themselves; the i-th of the left is equal to the i-th
    of the right. A row has fields for `most` joins: a query with fewer repeats its first.
    """
    places = schema.places
    if not 1 <= most <= len(places):
        raise ValueError(f"most: from 1 to {len(places)}, the number of leaves, not {most}")
    chance = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, most + 1) ** skew
    joins = chance.choice(np.arange(1, most + 1), count, p=shares / shares.sum())
    rows = []
    for number, size in enumerate(joins.tolist()):
        draws = (chance.permutation(len(places))[:size].tolist() for _ in ("left", "right"))
        drawn = sorted(zip(*draws, strict=True))
        row = {"number": str(number)}
        for place in range(most):
            for side, leaf in zip(("left", "right"), drawn[place] if place < size else drawn[0], strict=True):
                group, name = places[leaf]
                row[f"{side}_{place}"] = name
                if group:
                    row[f"{side}_group_{place}"] = group
        rows.append(row)
    return rows


def join_pattern(schema: DocumentSchema, most: int, within: str) -> dict[str, Any]:
    """A pattern of kind xml_join whose `each` is a list of rows of `join_queries`, or a CSV file of them. A query has
    the variables that it joins and those of their groups, and no others."""
    sides = {side: _block(schema, most, side, main) for side, main in (("left", "item"), ("right", "later"))}
    return {
        "kind": "xml_join",
        "queries": {
            "query_{number}": {
                **{side: block for side, (block, _) in sides.items()},
                "operator": "followed_by",
                "where": [f"${a} = ${b}" for a, b in zip(sides["left"][1], sides["right"][1], strict=True)],
                "within": within,
                "return": {},
            }
        },
    }


def _block(schema: DocumentSchema, most: int, side: str, main: str) -> tuple[dict[str, str], list[str]]:
    """A block, and its variables of leaves by join. Groups come first: a variable begins at one above it."""
    prefix = "" if side == "left" else "later_"
    block, leaves = {main: f"//{schema.root}"}, []
    for place in range(most if schema.groups else 0):
        group = f"{{{side}_group_{place}}}"
        block[f"{prefix}{group}"] = f"${main}/{group}"
    for place in range(most):
        leaf, group = f"{{{side}_{place}}}", f"{{{side}_group_{place}}}"
        above, name = (f"{prefix}{group}", f"{prefix}{group}_{leaf}") if schema.groups else (main, f"{prefix}{leaf}")
        block[name] = f"${above}/{leaf}"
        leaves.append(name)
    return block, leaves


def alike_documents(schema: DocumentSchema, count: int) -> pa.Table:
    """`count` documents of a schema, a second apart (columns event_id, event_time, document). All are the same: the
    text of a leaf is its place, so that a leaf equals that leaf of other documents and no other leaf."""
    parts, number = [], 0
    for group in schema.groups or ("",):
        inner = []
        for leaf in schema.leaves:
            inner.append(f"<{leaf}>{escape(str(number))}</{leaf}>")
            number += 1
        parts.append(f"<{group}>{''.join(inner)}</{group}>" if group else "".join(inner))
    document = f"<{schema.root}>{''.join(parts)}</{schema.root}>"
    times = pa.array([n * SECOND for n in range(count)], pa.int64())
    return pa.table(
        {
            "event_id": pa.array([f"d{n}" for n in range(count)]),
            "event_time": times.cast(TIME_TYPE),
            "document": pa.array([document] * count),
        }
    )


def feed_queries(count: int, seed: int) -> list[dict[str, str]]:
    """`count` rows for `each` of `feed_pattern`. There are 1,545 different ones."""
    return join_queries(FEED_ITEM, count, len(LEAVES), 1.0, seed)


def feed_pattern(within: str) -> dict[str, Any]:
    """`join_pattern` of feed items, with as many joins as an item has leaves."""
    return join_pattern(FEED_ITEM, len(LEAVES), within)
