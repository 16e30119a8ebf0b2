"""Compiled kernels that kinds share: the machine of expressions, registers and groups of runs."""

import cep_core.kernel_cache  # noqa: F401 - before the first kernel is declared
