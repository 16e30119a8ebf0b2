"""A block as its graph minor (Hong 2009, 6.4.2): the variables that are joined or returned, and where they meet.

All other variables only have to be there. One that has a single remaining branch is contracted into its path, one that
has none becomes a predicate:

    {s: /shop, i: $s/item, sku: $i/sku, lot: $i/lot, n: $i/name}, joined: sku, lot
    -> {i: /shop/item[name], sku: $i/sku, lot: $i/lot}
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from trendlake.cep_core.documents.paths import Exists, Path


@dataclass(frozen=True)
class Minor:
    """Nodes of a tree, parents before children. `variables`: the number of each in the block; `parents`: places in this
    tree, -1 at the top; `paths`: from the parent, of the top from the document."""

    variables: tuple[int, ...]
    parents: tuple[int, ...]
    paths: tuple[Path, ...]


def minor(parents: Sequence[int], paths: Sequence[Path], needed: AbstractSet[int]) -> Minor:
    """The minor of a block whose variables come after their parents; `needed`: those joined or returned (some).

    Exact, as answers are sets: a variable that is not needed asks that a node exists, and predicates ask the same.
    """
    own = list(paths)
    branches: list[list[tuple[int, Path]]] = [[] for _ in parents]
    exist: list[list[Exists]] = [[] for _ in parents]
    up: dict[int, int] = {}
    top: tuple[int, Path] = (-1, Path(()))
    for v in reversed(range(len(parents))):
        path = own[v].where(exist[v]) if exist[v] else own[v]
        if v in needed or len(branches[v]) > 1:
            for node, below in branches[v]:
                up[node], own[node] = v, below
            branch = (v, path)
        elif branches[v]:
            node, below = branches[v][0]
            branch = (node, path.then(below))
        else:
            exist[parents[v]].append(Exists(path))
            continue
        if parents[v] < 0:
            top = branch
        else:
            branches[parents[v]].append(branch)
    own[top[0]], up[top[0]] = top[1], -1
    order = sorted(up)  # a parent has a smaller number
    place = {v: i for i, v in enumerate(order)}
    return Minor(tuple(order), tuple(place.get(up[v], -1) for v in order), tuple(own[v] for v in order))
