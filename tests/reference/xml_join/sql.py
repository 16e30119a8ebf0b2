"""A second evaluation: witnesses as tables of SQLite, one statement for each query, equality and time in SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from tests.reference.xml_join.answers import _OPERAND, _micros, _taken, expanded, witnesses
from tests.reference.xml_join.documents import BrokenError, parse

Row = tuple[tuple[str, Any], ...]


def answers_by_sql(file: Mapping[str, Any], documents: Sequence[Mapping[str, Any]]) -> set[Row]:
    """The rows of `answers`, without its limit."""
    listed = list(expanded(file))
    columns = {name for _, query in listed for name in query.get("return", ("left_node", "right_node"))}
    rows: set[Row] = set()
    for title, query in listed:
        mains = {f"{side}_node": f"node(${next(iter(query[side]))})" for side in ("left", "right")}
        returned = query.get("return", mains)
        database = sqlite3.connect(":memory:")
        where = _tables(database, query, returned, documents, file.get("namespaces", {}))
        where.append("l.id <> r.id")
        if query["operator"] == "followed_by":
            where.append("r.time > l.time")
        if query["within"] != "unbounded":
            where.append(f"abs(r.time - l.time) <= {_micros(query['within'])}")
        cells = "".join(f", {_side(query, text)}.out_{name}" for name, text in returned.items())
        statement = f"SELECT DISTINCT l.id, r.id, min(l.time, r.time), max(l.time, r.time){cells} FROM l, r"
        for row in database.execute(f"{statement} WHERE {' AND '.join(where)}"):
            names = ("left_id", "right_id", "start", "end", *returned)
            full = {"query": title, **dict.fromkeys(columns), **dict(zip(names, row, strict=True))}
            rows.add(tuple(sorted(full.items())))
        database.close()
    return rows


def _side(query: Mapping[str, Any], text: str) -> str:
    match = _OPERAND.fullmatch(text)
    assert match is not None
    return "l" if match[2] in query["left"] else "r"


def _tables(
    database: sqlite3.Connection,
    query: Mapping[str, Any],
    returned: Mapping[str, str],
    documents: Sequence[Mapping[str, Any]],
    names: Mapping[str, str],
) -> list[str]:
    """Fills `l` and `r`, a row for each witness, and gives the conditions of `where`."""
    texts: dict[str, dict[str, str]] = {"l": {}, "r": {}}
    where = []
    for number, condition in enumerate(query["where"]):
        for side in condition.split("="):
            texts[_side(query, side)][f"key_{number}"] = side
        where.append(f"l.key_{number} = r.key_{number}")
    for name, text in returned.items():
        texts[_side(query, text)][f"out_{name}"] = text
    for table, block in (("l", "left"), ("r", "right")):
        listed = texts[table]
        database.execute(f"CREATE TABLE {table} (id TEXT, time INTEGER{''.join(f', {one} TEXT' for one in listed)})")
        for document in documents:
            try:
                root = ("document", parse(document["xml"]))
            except BrokenError:
                continue
            for one in witnesses(query[block], root, names):
                cells = [_taken(_OPERAND.fullmatch(text), one) for text in listed.values()]
                marks = ", ".join("?" * (2 + len(cells)))
                database.execute(f"INSERT INTO {table} VALUES ({marks})", (document["id"], document["time"], *cells))
    return where
