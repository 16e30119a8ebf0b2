"""Compiled kernels of kind xml_join."""

import trendlake.cep_core.kernel_cache  # noqa: F401 - before the first kernel is declared
