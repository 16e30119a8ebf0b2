"""Documents in the source of `tests/support/signals.py`, for patterns of kind xml_join: few shapes and few values, so
that they meet often."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from tests.reference.xml_join import answers
from tests.support.xml_documents import rows_of
from trendlake.cep_core import run_plan
from trendlake.cep_core.yaml.source import plain, read_yaml
from trendlake.pipelines.runs.run import Run

ROLE_OF_TYPE = "        customProperties: [{property: eventRole, value: event_type}]\n"
COLUMN = """\
      - {name: document, logicalType: string, required: true,
         customProperties: [{property: eventRole, value: document}]}
"""
DOCUMENT = pa.field("document", pa.string())
BROKEN = ("<item><key>x</item>", "<!DOCTYPE item><item><key>x</key></item>", "")


def contract_of_documents(contract: str) -> str:
    """The contract with a column of documents; `event_type` is a column like others."""
    assert ROLE_OF_TYPE in contract
    return contract.replace(ROLE_OF_TYPE, "").replace("slaProperties:", f"{COLUMN}slaProperties:")


def document_text(rng: random.Random, *, tidy: bool = False) -> str:
    """A document; one in twelve breaks a rule of XML, but for `tidy` ones."""
    if not tidy and rng.random() < 0.08:
        return rng.choice(BROKEN)
    keys = "".join(f"<key>{rng.choice(['x', 'y', ' x ', 'z'])}</key>" for _ in range(rng.randrange(3)))
    note = f'<note lang="{rng.choice("de")}">{rng.randrange(3)}</note>' if rng.random() < 0.5 else ""
    return f"<item>{rng.choice([keys + note, note + keys])}</item>"


def rows_of_documents(run: Run, events: pa.Table, windows: range) -> list[dict[str, Any]]:
    """The rows of `windows`, from all documents at once. All rows are compared with the plain enumeration first, so
    that a wrong row is no recomputation that agrees with itself."""
    query = plain(read_yaml(run.project.root / f"{run.name}.yaml").data)
    rows = run_plan(run.plan, events)
    listed = [
        {"id": row["event_id"], "time": _micros(row["event_time"]), "xml": row["document"]}
        for row in events.to_pylist()
    ]
    assert rows_of(rows) == answers(query, listed)
    _, low, high = run.plan.owned(windows)
    return [row for row in rows.to_pylist() if low <= _micros(row["end"]) < high]


def _micros(moment: Any) -> int:
    return round(moment.timestamp() * 1_000_000)
