"""The witness relations of documents: for each definition its nodes, what they are reached from, and their values.

MMQJP's Rbin and Rdoc in one: a row's `parent` is the row of the node above it in a block's minor.
"""

from __future__ import annotations

import gc
import warnings
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from trendlake.cep_core.documents.document import BrokenDocumentError, Reader, bytes_of
from trendlake.cep_core.documents.predicates import normalised
from trendlake.cep_core.errors import DocumentWarning
from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.events.arrays import numbers
from trendlake.cep_core.xml_join.compile.plan import XmlJoinPlan
from trendlake.cep_core.xml_join.run.shapes import Shape, Shapes

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
    reader, asked = Reader(), _asked(plan)
    shapes = Shapes(plan.definitions, [bool(forms) for forms in asked])
    broken: list[tuple[str, str]] = []
    for number, raw in enumerate(bytes_of(documents)):
        try:
            root = reader.root(raw or b"")
        except BrokenDocumentError as error:
            broken.append((str(ids[number].as_py()), str(error)))
        else:
            shapes.add(root, number)
    _warn(broken)
    return _sorted(plan, asked, shapes.all())


def _asked(plan: XmlJoinPlan) -> list[set[str]]:
    """Of each definition the forms of its value that queries ask for."""
    asked: list[set[str]] = [set() for _ in plan.definitions]
    for side in plan.sides:
        for node, form in (*side.keys, *side.cells):
            if form != "node":
                asked[side.nodes[node]].add(form)
    return asked


def _sorted(plan: XmlJoinPlan, asked: list[set[str]], shapes: list[Shape]) -> Relations:
    """Rows of a definition in the order of their parents' rows, definition after definition: parents come first."""
    names = tuple(dict.fromkeys(row[3] for shape in shapes for row in shape.rows if row[3] is not None))
    rows = _Rows.of(shapes, {name: place for place, name in enumerate(names, 1)})
    order = np.argsort(rows.definition, kind="stable")
    place = np.full(len(order) + 1, -1, np.int64)
    bounds = np.searchsorted(rows.definition[order], np.arange(len(plan.definitions) + 1))
    for d in range(len(plan.definitions)):
        mine = order[bounds[d] : bounds[d + 1]]
        mine = mine[np.argsort(place[rows.parent[mine]], kind="stable")]
        order[bounds[d] : bounds[d + 1]] = mine
        place[mine] = np.arange(bounds[d], bounds[d + 1])
    definition, text = rows.definition[order], rows.text[order]
    texts, codes = _coded([text for shape in shapes for text in shape.texts], any("normal" in one for one in asked))
    wanted = {form: np.array([form in forms for forms in asked], np.bool_) for form in codes}
    return Relations(
        bounds,
        definition,
        rows.document[order],
        place[rows.parent[order]],
        rows.label[order],
        {form: np.where(wanted[form][definition], codes[form][text], -1) for form in codes},
        texts,
        names,
    )


@dataclass(frozen=True)
class _Rows:
    """Rows of all documents, as in `Relations` but in any order; `parent`: a row of these; `text`: the place of the
    node's text among those of all shapes, -1 where no query asks for it."""

    definition: Int64s
    document: Int64s
    parent: Int64s
    label: Int64s
    text: Int64s

    @classmethod
    def of(cls, shapes: list[Shape], attributes: dict[str, int]) -> _Rows:
        """The rows of each shape, as often as it has documents."""
        parts: list[tuple[Int64s, ...]] = []
        first_row = first_text = 0
        for shape in shapes:
            definition, parent, number, attribute, target = (
                np.array(column, np.int64)
                for column in zip(
                    *((d, p, n, 0 if a is None else attributes[a], t) for d, p, n, a, t in shape.rows), strict=True
                )
            )
            count, size = len(shape.documents), len(shape.rows)
            rows = first_row + np.arange(count)[:, None] * size
            read = first_text + np.arange(count)[:, None] * len(shape.targets)
            parts.append(
                (
                    np.tile(definition, count),
                    np.repeat(np.array(shape.documents, np.int64), size),
                    np.where(parent < 0, -1, rows + parent).reshape(-1),
                    np.tile(number * (len(attributes) + 1) + attribute, count),
                    np.where(target < 0, -1, read + target).reshape(-1),
                )
            )
            first_row, first_text = first_row + count * size, first_text + len(shape.texts)
        if not parts:
            parts.append(tuple(np.empty(0, np.int64) for _ in range(5)))
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _coded(texts: list[str], with_normal: bool) -> tuple[pa.Array, dict[str, Int64s]]:
    """All different texts, and for each of `texts` its code and that of its normalised form; -1 after the last."""
    encoded = pa.array(texts, pa.large_string()).dictionary_encode()
    codes = np.append(numbers(encoded.indices.cast(pa.int64())), -1)
    different = encoded.dictionary
    if not with_normal:
        return different, {"text": codes, "normal": np.full(len(codes), -1, np.int64)}
    forms = pa.array(map(normalised, different.to_pylist()), pa.large_string())
    both = pa.concat_arrays([different, forms]).dictionary_encode()
    normal = numbers(both.indices.cast(pa.int64()))[len(different) :]
    return both.dictionary, {"text": codes, "normal": np.append(normal, -1)[codes]}


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
