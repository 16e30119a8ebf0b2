"""The joins of a plan of kind xml_join in DuckDB: for each number of value joins one query over the witness relations
and a table of constants, as somebody would write it who knows that an item has one of each leaf."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa

from trendlake.cep_core.events.array_types import Int64s
from trendlake.cep_core.xml_join.compile.plan import XmlJoinPlan
from trendlake.cep_core.xml_join.run.relations import Relations

THREADS = 2


def duckdb_joins(plan: XmlJoinPlan, relations: Relations, ids: pa.Array, times: Int64s) -> Callable[[], pa.Table]:
    """A function that runs all templates and returns (query, left_id, right_id, start, end).

    `ids`, `times`: of the documents, as `Answers` takes them. The tables of DuckDB are made before.
    """
    database = duckdb.connect(config={"threads": THREADS})
    leaves = {side.nodes[node] for side in plan.sides for node, _ in side.keys}
    rows = np.flatnonzero(np.isin(relations.definition, list(leaves)))
    held = {
        "leaves": pa.table(
            {
                "leaf": relations.definition[rows],
                "value": relations.codes["text"][rows],
                "document": relations.document[rows],
                "time": times[relations.document[rows]],
            }
        ),
        "documents": pa.table({"document": np.arange(len(ids)), "id": ids}),
        "names": pa.table({"name": [name for name, _ in plan.queries], "number": [join for _, join in plan.queries]}),
    }
    constants: dict[int, list[dict[str, int]]] = defaultdict(list)
    for number, join in enumerate(plan.joins):
        left, right = plan.sides[join.left], plan.sides[join.right]
        row = {"number": number, "within": join.within}
        for place, (i, j) in enumerate(join.pairs):
            row[f"left_{place}"], row[f"right_{place}"] = left.nodes[left.keys[i][0]], right.nodes[right.keys[j][0]]
        constants[len(join.pairs)].append(row)
    held |= {f"constants_{size}": pa.Table.from_pylist(listed) for size, listed in constants.items()}
    for name, table in held.items():
        database.register("arrow_table", table)
        database.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow_table")
        database.unregister("arrow_table")
    whole = " UNION ALL ".join(_template(size) for size in sorted(constants))
    return lambda: database.sql(whole).to_arrow_table()


def _template(size: int) -> str:
    """One query for all queries of `size` value joins; all names in it are of this module."""
    joins = "".join(
        f" JOIN leaves l{k} ON l{k}.leaf = c.left_{k} AND l{k}.document = l0.document"
        f" JOIN leaves r{k} ON r{k}.leaf = c.right_{k} AND r{k}.value = l{k}.value AND r{k}.document = r0.document"
        for k in range(1, size)
    )
    return (
        f"SELECT names.name AS query, l.id AS left_id, r.id AS right_id, l0.time AS start, r0.time AS end"
        f" FROM constants_{size} c JOIN leaves l0 ON l0.leaf = c.left_0"
        f" JOIN leaves r0 ON r0.leaf = c.right_0 AND r0.value = l0.value"
        f" AND r0.time > l0.time AND r0.time - l0.time <= c.within{joins}"
        f" JOIN names ON names.number = c.number"
        f" JOIN documents l ON l.document = l0.document JOIN documents r ON r.document = r0.document"
    )
