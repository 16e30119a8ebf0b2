"""Answers of a file of queries, straight from the page: all pairs of all witnesses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.reference.xml_join.documents import BrokenError, parse
from tests.reference.xml_join.paths import Node, read, select, value

UNITS = {"microsecond": 1, "millisecond": 10**3, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6}
UNITS |= {"day": 86400 * 10**6, "week": 7 * 86400 * 10**6}
_OPERAND = re.compile(r"\s*(?:(normalize-space|node)\s*\(\s*)?\$(\w+)\s*\)?\s*")
Row = tuple[tuple[str, Any], ...]


class TooManyError(Exception):
    """More answers of a query that end with one document than the limit."""


def answers(file: Mapping[str, Any], documents: Sequence[Mapping[str, Any]]) -> set[Row]:
    """Rows as sorted (column, value) pairs, without `answer_id`. Documents have `id`, `time` (microseconds) and `xml`;
    those that break a rule are left out."""
    roots = []
    for one in documents:
        try:
            roots.append((one["id"], one["time"], ("document", parse(one["xml"]))))
        except BrokenError:
            continue
    names = file.get("namespaces", {})
    listed = list(expanded(file))
    columns = {name for _, query in listed for name in query.get("return", ("left_node", "right_node"))}
    rows: set[Row] = set()
    for title, query in listed:
        ends: dict[Any, set[Row]] = {}
        for row in _answers(query, roots, names):
            full = {"query": title, **dict.fromkeys(columns), **row}
            key = tuple(sorted(full.items()))
            rows.add(key)
            times = {one: time for one, time, _ in roots}
            left, right = row["left_id"], row["right_id"]
            for one, other in ((left, right), (right, left)):
                if times[one] >= times[other]:
                    ends.setdefault(one, set()).add(key)
        if any(len(one) > file.get("limit_per_document", 1_000_000) for one in ends.values()):
            raise TooManyError
    return rows


def expanded(file: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Names and queries, `each` filled in."""
    if "queries" not in file:
        yield file.get("name", "query"), file
        return
    if "each" not in file:
        yield from file["queries"].items()
        return
    for name, query in file["queries"].items():
        for row in file["each"]:
            yield _filled(name, row), _filled(query, row)


def _filled(node: Any, row: Mapping[str, Any]) -> Any:
    if isinstance(node, Mapping):
        return {_filled(key, row): _filled(one, row) for key, one in node.items()}
    if isinstance(node, list):
        return [_filled(one, row) for one in node]
    return node.format(**row) if isinstance(node, str) else node


def _answers(query: Mapping[str, Any], roots: Sequence[Any], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    within = None if query["within"] == "unbounded" else _micros(query["within"])
    lefts = {one: list(witnesses(query["left"], root, names)) for one, _, root in roots}
    rights = {one: list(witnesses(query["right"], root, names)) for one, _, root in roots}
    where = [tuple(_OPERAND.fullmatch(side) for side in text.split("=")) for text in query["where"]]
    mains = {"left_node": f"node(${next(iter(query['left']))})", "right_node": f"node(${next(iter(query['right']))})"}
    for left_id, left_time, _ in roots:
        for right_id, right_time, _ in roots:
            gap = right_time - left_time
            if left_id == right_id or (query["operator"] == "followed_by" and gap <= 0):
                continue
            if within is not None and abs(gap) > within:
                continue
            for left in lefts[left_id]:
                for right in rights[right_id]:
                    both = {**left, **right}
                    if all(_taken(a, both) == _taken(b, both) for a, b in where):
                        returned = query.get("return", mains)
                        cells = {name: _taken(_OPERAND.fullmatch(text), both) for name, text in returned.items()}
                        times = sorted((left_time, right_time))
                        yield {"left_id": left_id, "right_id": right_id, "start": times[0], "end": times[1], **cells}


def witnesses(block: Mapping[str, str], root: Node, names: Mapping[str, str]) -> Iterator[dict[str, Node]]:
    """Every assignment of a block's variables."""
    bound: list[dict[str, Node]] = [{}]
    for variable, text in block.items():
        above, steps = read(text)
        bound = [
            {**one, variable: node}
            for one in bound
            for node in select([root if above is None else one[above]], steps, names)
        ]
    yield from bound


def _taken(operand: Any, both: Mapping[str, Node]) -> str:
    function, node = operand[1], both[operand[2]]
    if function == "node":
        if node[0] == "element":
            return str(node[1].number)
        uri, local = node[2]
        return f"{node[1].number}@{{{uri}}}{local}" if uri else f"{node[1].number}@{local}"
    text = value(node)
    return re.sub("[ \t\r\n]+", " ", text).strip(" ") if function == "normalize-space" else text


def _micros(text: str) -> int:
    count, unit = text.split()
    return int(count) * UNITS[unit.removesuffix("s")]
