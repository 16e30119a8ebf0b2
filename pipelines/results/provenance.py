"""Columns that say where a result row comes from."""

from __future__ import annotations

from cep_core.patterns.model import PROVENANCE_COLUMNS

PROVENANCE = PROVENANCE_COLUMNS - {"plan_hash"}
"""Columns in which two rows may differ without being another result. The plan's hash is not one of them: a row of
another form of the pattern is another result."""
