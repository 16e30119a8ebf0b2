"""Patterns with `sources`, one a kind and feature, whose plan hashes are a format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trendlake.cep_core import EventSchema, compile_query

SCHEMAS: Mapping[str, EventSchema] = {
    "orders": EventSchema(
        {"order_id": "bigint", "at": "timestamp", "customer": "string", "amount": "int", "lsn": "bigint"},
        "order_id",
        "at",
        "",
        "lsn",
    ),
    "payments": EventSchema(
        {"payment_id": "string", "paid_at": "timestamp", "cust": "string", "amount": "double", "lsn": "bigint"},
        "payment_id",
        "paid_at",
        "",
        "lsn",
    ),
    "support": EventSchema(
        {"id": "string", "at": "timestamp", "kind": "string", "customer": "string"},
        "id",
        "at",
        "kind",
        types=("opened", "closed"),
    ),
}
SOURCES: Mapping[str, Any] = {
    "Order": "orders",
    "Payment": {"source": "payments", "columns": {"customer": "cust"}},
    "Ticket": {"source": "support", "type": "opened", "columns": {"amount": None}},
}
AUTOMATON = {
    "kind": "automaton",
    "start": "s",
    "final": ["f"],
    "arcs": [
        {"from": "s", "to": "m", "when": "e.event_type = 'Order'"},
        {"from": "m", "to": "f", "when": "e.amount > 1"},
    ],
    "partition_by": ["customer"],
}
ROWS = (
    "SELECT match_id, total FROM t MATCH_RECOGNIZE (PARTITION BY customer ORDER BY event_time MEASURES SUM(A.amount) "
    "AS total PATTERN (A+ B) DEFINE B AS B.event_source = 'payments')"
)
QUERIES: Mapping[str, Mapping[str, Any]] = {
    "trends": {
        "kind": "trends",
        "pattern": "SEQ(Order o, NOT Payment p, Ticket t)",
        "where": ["[customer]", "o.amount > 3"],
        "return": {"n": "COUNT(*)", "most": "MAX(o.amount)"},
    },
    "trends, of all types": {
        "kind": "trends",
        "pattern": "ANY e",
        "return": {"total": "SUM(e.amount)"},
        "group_by": ["event_source"],
    },
    "trends, contiguous": {
        "kind": "trends",
        "pattern": "SEQ(Order o, Payment p)",
        "select": "contiguous",
        "return": {"n": "COUNT(*)"},
    },
    "matches": {
        "kind": "matches",
        "pattern": "SEQ(Order o, Payment p)",
        "where": ["[o.customer, p.customer]", "p.amount >= o.amount"],
        "return": {"paid": "p.amount"},
    },
    "matches, ties": {
        "kind": "matches",
        "pattern": "SEQ(Order o, Payment p)",
        "ties": ["payments", "support", "orders"],
    },
    "automaton": AUTOMATON,
    "algebra": {
        "kind": "algebra",
        "pattern": "SELECT event_id_1 AS first, event_id AS second FROM Order NEXT{$1.customer = $2.customer} Payment",
    },
    "match_recognize": {"kind": "match_recognize", "pattern": ROWS},
}


def hashes() -> dict[str, str]:
    """The hash of each."""
    common = {"sources": SOURCES, "within": "1 day"}
    by_name = {name: compile_query({**common, **query}, SCHEMAS).hash for name, query in QUERIES.items()}
    two = {name: entry for name, entry in SOURCES.items() if name != "Ticket"}
    numbered = {**common, "sources": two, **QUERIES["matches"], "ties": "sequence"}
    return by_name | {"matches, one counter": compile_query(numbered, SCHEMAS).hash}
