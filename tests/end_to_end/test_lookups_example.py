"""examples/lookups as its user runs it: two streams and a reference table are generated, a run and a revision find what
the generator knows without them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.conftest import ROOT
from tests.support.own_source import output_of, project_at
from trendlake.pipelines.generate import START_US, STREAMS, shop_customers
from trendlake.pipelines.generate.shop import ShortPayment, short_payments

EVENTS, CHANGES, PACE, SEED = 1_500, 420, 0.02, 7
NAME = "paid_short"


@pytest.mark.filterwarnings("ignore::trendlake.cep_core.errors.PatternWarning")
def test_runs_and_revisions_show_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Spark. The reference table is replaced by one with other changes, then by equal rows."""
    monkeypatch.setenv("TRENDLAKE_STATE", str(tmp_path / "state"))
    project_at(tmp_path, monkeypatch)
    shutil.copy(ROOT / "examples" / "lookups" / f"{NAME}.yaml", tmp_path / "conf" / "patterns")
    for contract in (ROOT / "data_contracts").glob("shop_*.yaml"):
        shutil.copy(contract, tmp_path / "data_contracts")
    how = ["--seed", str(SEED)]
    for stream in ("shop_orders", "shop_payments"):
        output_of("generate", stream, "--events", str(EVENTS), *how)
    output_of("generate", "shop_customers", "--events", str(CHANGES), "--rate", str(PACE), *how)
    output_of("run", NAME, "--from", "2026-01-05", "--to", "2026-01-06")
    first = known(shop_customers(CHANGES, PACE, SEED, START_US))
    assert published(tmp_path) == first
    assert {row.segment for row in first} == {"business", "private", "public"}
    assert len(first) > 50
    again = ["--events", str(CHANGES), "--rate", str(2 * PACE), "--out", "other.parquet"]
    output_of("generate", "shop_customers", *again, *how)
    said = output_of("ingest", "shop_customers", "other.parquet", "--replace")
    assert f"{CHANGES} rows: {CHANGES} in place of {CHANGES}" in said
    output_of("revise", "--source", "shop_customers")
    second = known(shop_customers(CHANGES, 2 * PACE, SEED, START_US))
    assert first != second == published(tmp_path)
    output_of("ingest", "shop_customers", "other.parquet", "--replace", "--again")
    said = output_of("revise", "--source", "shop_customers")
    assert "0 events looked up otherwise: no table has changed" in said
    assert "nothing to change" in said
    assert published(tmp_path) == second


def known(customers: pa.Table) -> list[ShortPayment]:
    return short_payments(EVENTS, STREAMS["shop_orders"].rate, SEED, START_US, customers)


def published(folder: Path) -> list[ShortPayment]:
    rows = DeltaTable(folder / "state" / "warehouse" / "results" / NAME).to_pyarrow_table()
    return sorted(ShortPayment(row["order"], row["segment"], row["missing"]) for row in rows.to_pylist())
