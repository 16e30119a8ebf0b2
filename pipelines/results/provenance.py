"""Columns that say where a result row comes from."""

from __future__ import annotations

PROVENANCE = ("source_version", "run_id", "computed_at")
"""Columns that say where a row comes from: that they differ is no change of the result."""
