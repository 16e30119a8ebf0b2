"""Compiled kernels that several kinds use: the bytecode interpreter, registers and groups of runs."""

import trendlake.cep_core.kernel_cache  # noqa: F401 - before the first kernel is declared
