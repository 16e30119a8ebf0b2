"""A family written out: each row of `for_each` as a pattern of its own, with literals for its parameters."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trendlake.cep_core.fingerprint import canonical
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.parse import parse_condition
from trendlake.cep_core.language.unparse import expression
from trendlake.cep_core.patterns.model import FamilyPattern
from trendlake.cep_core.patterns.parameters import Parameters, Row
from trendlake.cep_core.yaml.source import plain

LONGEST = 64
"""Characters of a pattern's name."""


def expanded(pattern: FamilyPattern) -> Iterator[dict[str, Any]]:
    """The members in the order of their rows, as mappings of the shape of a pattern file. They have one batch, so that
    they run together; each fails by itself. Nothing if the pattern has no `for_each`."""
    parameters = pattern.parameters
    if parameters is None:
        return
    data = plain(pattern.document.data)
    del data["for_each"]
    data.setdefault("batch", pattern.name)
    for row, name in zip(parameters.rows, _names(pattern.name, parameters), strict=True):
        literals = {key: expression(node) for key, node in parameters.literals(row).items()}
        described = f"{parameters.described(row)}: {data.get('description') or pattern.name}"
        yield {"name": name, **_filled(pattern, data, literals), "description": " ".join(described.split())} | {
            "name": name
        }


def _names(family: str, parameters: Parameters) -> list[str]:
    """`price_alarm_aapl_100`; with a hash of the row where two would be equal or one too long."""
    plain_names = [_name(family, row) for row in parameters.rows]
    times = Counter(plain_names)
    return [
        name if times[name] == 1 and len(name) <= LONGEST else f"{name[: LONGEST - 9]}_{_hash(row)}"
        for name, row in zip(plain_names, parameters.rows, strict=True)
    ]


def _name(family: str, row: Row) -> str:
    words = "_".join("null" if value is None else str(value) for value in row)
    return f"{family}_{re.sub(r'[^a-z0-9]+', '_', words.lower().replace('-', 'minus_')).strip('_')}"


def _hash(row: Row) -> str:
    return hashlib.sha256(canonical(row).encode()).hexdigest()[:8]


def _filled(pattern: FamilyPattern, data: Mapping[str, Any], literals: Mapping[str, str]) -> dict[str, Any]:
    """The file with literals in its conditions; other text is left as it is."""
    result = dict(data)
    if places := pattern.parameters_in_pattern():
        result["pattern"] = _with_literals(data["pattern"], places, literals)
    if isinstance(data.get("where"), list):
        result["where"] = [_condition(text, literals) for text in data["where"]]
    if isinstance(data.get("arcs"), list):
        result["arcs"] = [_arc(arc, literals) for arc in data["arcs"]]
    return result


def _arc(arc: Mapping[str, Any], literals: Mapping[str, str]) -> dict[str, Any]:
    result = dict(arc)
    if isinstance(arc.get("when"), str):
        result["when"] = _condition(arc["when"], literals)
    if isinstance(arc.get("set"), Mapping):
        filled = {k: _condition(v, literals) if isinstance(v, str) else v for k, v in arc["set"].items()}
        result["set"] = filled
    return result


def _condition(text: str, literals: Mapping[str, str]) -> str:
    node = parse_condition(text)
    return text if isinstance(node, s.Equivalence) else _with_literals(text, s.parameters(node), literals)


def _with_literals(text: str, places: Sequence[s.Parameter], literals: Mapping[str, str]) -> str:
    """`price > $limit` -> `price > -5`: by the places of the parameters in the parsed text, so that a string is never
    one."""
    for parameter in sorted(places, key=lambda place: place.span, reverse=True):
        start, end = parameter.span
        text = text[:start] + literals[parameter.name] + text[end:]
    return text
