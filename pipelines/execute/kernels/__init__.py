"""Compiled loops of sharding: hashes of values, and the rows of each partition."""

import trendlake.cep_core.kernel_cache  # noqa: F401 - before the first kernel is declared
