"""Compiled kernels of kind automaton."""

import trendlake.cep_core.kernel_cache  # noqa: F401 - before the first kernel is declared
