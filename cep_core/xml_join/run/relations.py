"""The witness relations of documents: for each definition its nodes, what they are reached from, and their values.

MMQJP's Rbin and Rdoc in one: a row's `parent` is the row of the node above it in a block's minor.
"""

from __future__ import annotations

import gc
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cep_core.documents.document import BrokenDocumentError, Reader
from cep_core.documents.predicates import normalised, string_value
from cep_core.errors import DocumentWarning
from cep_core.events.array_types import Int64s
from cep_core.events.arrays import numbers
from cep_core.xml_join.compile.plan import XmlJoinPlan
from cep_core.xml_join.run.walk import Walker

NAMED = 5
"""Documents that a warning names."""


@dataclass(frozen=True)
class Relations:
    """Rows sorted by (definition, parent). `bounds`: the first row of each definition, and the end; `parent`: a row of
    these, -1 for the document; `label`: the node (its element's number and its attribute's) as one number; `codes`:
    places in `texts` of the string value and of that with spaces normalised, -1 where no query asks."""

    bounds: Int64s
    definition: Int64s
    document: Int64s
    parent: Int64s
    label: Int64s
    codes: dict[str, Int64s]
    texts: pa.Array
    attributes: tuple[str, ...]


def relations(plan: XmlJoinPlan, documents: pa.Array, ids: pa.Array) -> Relations:
    """The relations of texts that are XML documents. One that breaks a rule is in none: a DocumentWarning names it.

    Millions of rows are collected and none of them is part of a circle: Python's search for circles would go through
    all of them again and again, for as long as everything else takes.
    """
    searching = gc.isenabled()
    gc.disable()
    try:
        return _collected(plan, documents, ids)
    finally:
        if searching:
            gc.enable()


def _collected(plan: XmlJoinPlan, documents: pa.Array, ids: pa.Array) -> Relations:
    walker, reader = Walker(plan.definitions), Reader()
    asked = _asked(plan)
    columns: tuple[list[Any], ...] = ([], [], [], [], [])
    texts: list[str | None] = []
    normals: list[str | None] = []
    broken: list[tuple[str, str]] = []
    for number, text in enumerate(documents.to_pylist()):
        try:
            root = reader.root(text)
        except BrokenDocumentError as error:
            broken.append((str(ids[number].as_py()), str(error)))
            continue
        rows = walker.walk(root, number)
        if not rows:
            continue
        *cells, targets = zip(*rows, strict=True)
        for column, part in zip(columns, cells, strict=True):
            column.extend(part)
        values: dict[Any, str] = {}
        for definition, target in zip(cells[0], targets, strict=True):
            forms = asked[definition]
            if not forms:
                texts.append(None)
                normals.append(None)
                continue
            value = values.get(target)
            if value is None:
                value = values[target] = string_value(target)
            texts.append(value if "text" in forms else None)
            normals.append(normalised(value) if "normal" in forms else None)
    _warn(broken)
    return _sorted(plan, columns, texts, normals)


def _asked(plan: XmlJoinPlan) -> list[set[str]]:
    """Of each definition the forms of its value that queries ask for."""
    asked: list[set[str]] = [set() for _ in plan.definitions]
    for side in plan.sides:
        for node, form in (*side.keys, *side.cells):
            if form != "node":
                asked[side.nodes[node]].add(form)
    return asked


def _sorted(plan: XmlJoinPlan, columns: tuple[list[Any], ...], texts: list[Any], normals: list[Any]) -> Relations:
    definition, document, parent, node = (np.array(column, np.int64) for column in columns[:4])
    attribute = pa.array(columns[4], pa.string()).dictionary_encode()
    names = tuple(attribute.dictionary.to_pylist())
    label = node * (len(names) + 1) + numbers(attribute.indices.cast(pa.int64()), -1) + 1
    encoded = pa.array([*texts, *normals], pa.large_string()).dictionary_encode()
    codes = numbers(encoded.indices.cast(pa.int64()), -1)
    order = np.argsort(definition, kind="stable")
    return _settled(plan, definition, document, parent, label, codes, order, encoded.dictionary, names)


def _settled(
    plan: XmlJoinPlan, definition: Int64s, document: Int64s, parent: Int64s, label: Int64s, codes: Int64s,
    order: Int64s, texts: pa.Array, names: tuple[str, ...],
) -> Relations:  # fmt: skip
    """Rows of a definition in the order of their parents' rows, definition after definition: parents come first."""
    place = np.full(len(order) + 1, -1, np.int64)
    bounds = np.searchsorted(definition[order], np.arange(len(plan.definitions) + 1))
    for d in range(len(plan.definitions)):
        rows = order[bounds[d] : bounds[d + 1]]
        rows = rows[np.argsort(place[parent[rows]], kind="stable")]
        order[bounds[d] : bounds[d + 1]] = rows
        place[rows] = np.arange(bounds[d], bounds[d + 1])
    half = len(definition)
    return Relations(
        bounds,
        definition[order],
        document[order],
        place[parent[order]],
        label[order],
        {"text": codes[:half][order], "normal": codes[half:][order]},
        texts,
        names,
    )


def _warn(broken: list[tuple[str, str]]) -> None:
    if not broken:
        return
    rules = Counter(reason.partition(":")[0] for _, reason in broken)
    counts = ", ".join(f"{count:,} {rule}" for rule, count in sorted(rules.items()))
    named = "; ".join(f"'{name}': {reason}" for name, reason in broken[:NAMED])
    more = f"; and {len(broken) - NAMED:,} more" if len(broken) > NAMED else ""
    warnings.warn(
        f"documents that break a rule are in no answer ({counts}): {named}{more}", DocumentWarning, stacklevel=2
    )
