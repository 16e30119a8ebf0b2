"""Compiled loops of sharding: hashes of values, and rows by key."""

import cep_core.kernel_cache  # noqa: F401 - before the first kernel is declared
