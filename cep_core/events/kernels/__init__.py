"""Compiled loops over the values of events."""

import trendlake.cep_core.kernel_cache  # noqa: F401 - before the first kernel is declared
