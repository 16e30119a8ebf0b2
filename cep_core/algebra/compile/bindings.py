"""How a plan of kind algebra may bind an event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trendlake.cep_core.algebra.compile import nodes as n
from trendlake.cep_core.algebra.compile.pairing import pairing, parted
from trendlake.cep_core.algebra.compile.plan import AlgebraPlan
from trendlake.cep_core.algebra.compile.syntax import Dur
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.plan import Binding


def bindings(plan: AlgebraPlan) -> tuple[Binding, ...] | None:
    """Once for each operator that reads a base stream, by the parts of its condition that read this event alone. A part
    that can leave 64 bits is none of them: an error depends on which events it is asked of (ADR 25).

    None where a stream holds events of all types, or where an event that starts after its end would be an error.
    """
    if plan.begins is not None:
        return None
    asked: list[Binding] = []
    for place, node in enumerate(plan.nodes):
        if not isinstance(node, n.Base):
            continue
        if node.type_name is None:
            return None
        asked += [Binding(node.type_name, tuple(_local(parts))) for parts in _readers(plan, place)]
    return tuple(dict.fromkeys(asked))


def _readers(plan: AlgebraPlan, place: int) -> Iterator[Sequence[s.Expr]]:
    """The conditions of each operator that reads a base stream on its events."""
    families = plan.schema.families
    partition = {name: families[name] for name in plan.partition_by}
    if place == len(plan.nodes) - 1:
        yield ()
    for reader in plan.nodes:
        family = n.families_of(plan.nodes, reader, partition)
        if isinstance(reader, n.Filter) and reader.source == place:
            yield parted(reader.condition, family)[0]
        elif isinstance(reader, n.Next | n.Fold):
            asked = pairing(reader, family, [name for name, _ in n.attributes_of(plan.nodes[reader.right])])
            yield from (
                parts for side, parts in ((reader.left, asked.left), (reader.right, asked.right)) if side == place
            )
        elif place in n.inputs(reader):
            yield ()


def _local(parts: Sequence[s.Expr]) -> Iterator[s.Expr]:
    """Without those that read a duration, which is no column."""
    return (part for part in parts if not any(isinstance(read, Dur) for read in s.attributes(part)))
