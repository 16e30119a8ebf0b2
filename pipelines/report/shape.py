"""Which columns of a results table are what, and rows of one shape whatever the columns are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import types as st

from trendlake.cep_core.patterns.model import PROVENANCE_COLUMNS
from trendlake.pipelines.report.cells import Cells
from trendlake.pipelines.report.database import Column
from trendlake.pipelines.report.facts import Measure

_SYSTEM = frozenset({"window_start", "window_end"}) | PROVENANCE_COLUMNS


@dataclass(frozen=True)
class Shape:
    """`measure` is what the report counts by: the first whole DECIMAL, else the first number, else the rows."""

    groups: tuple[str, ...]
    measures: tuple[str, ...]
    measure: Measure
    companions: frozenset[str]

    @classmethod
    def of(cls, schema: st.StructType, group_by: Sequence[str] = (), returns: Sequence[str] = ()) -> Shape:
        """The shape of a table of kind trends.

        Groups and measures are the pattern's where the table has them (it may also keep columns of an earlier state
        of the pattern, before the window too if it was of another kind); without a pattern, groups stand before the
        window and measures are what is left.
        """
        names = schema.fieldNames()
        companions = frozenset(n for n in names if n.endswith("_log10") and n.removesuffix("_log10") in names)
        before = names[: names.index("window_start")]
        groups = tuple(group_by) if returns and set(group_by) <= set(names) else tuple(before)
        rest = [n for n in names if n not in (*before, *groups, *_SYSTEM) and n not in companions]
        measures = tuple(n for n in returns if n in names and n not in companions) or tuple(rest)
        counts = [n for n in measures if is_count(schema[n].dataType)]
        numbers = [n for n in measures if isinstance(schema[n].dataType, st.NumericType)]
        if counts or not numbers:
            return cls(groups, measures, Measure(counts[0] if counts else "rows", True), companions)
        return cls(groups, measures, Measure(numbers[0], False), companions)

    def read_as(self, cells: Cells) -> Shape:
        """With the measures as people read them."""
        measure = replace(self.measure, unit=cells.unit(self.measure.name))
        return replace(self, measures=cells.in_order(self.measures), measure=measure)

    def columns(self) -> dict[str, Column]:
        """The columns that the report loads: groups as text (g0 ...), the window (`ws`, `we`), measures (v0 ...)
        and their log10 (l0 ..., of those that have one)."""
        groups = {f"g{i}": Column(name, "text") for i, name in enumerate(self.groups)}
        values = {f"v{i}": Column(name) for i, name in enumerate(self.measures)}
        logs = {
            f"l{i}": Column(f"{name}_log10", "number")
            for i, name in enumerate(self.measures)
            if f"{name}_log10" in self.companions
        }
        return groups | {"ws": Column("window_start"), "we": Column("window_end")} | values | logs


def is_count(kind: st.DataType) -> bool:
    """Whether values of this type are counts, which are added up."""
    return isinstance(kind, st.DecimalType) and kind.scale == 0
