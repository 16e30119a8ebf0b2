"""Compiled loops of kind algebra: conditions on rows and on pairs, NEXT and FOLD."""

import trendlake.cep_core.kernel_cache  # noqa: F401 - before the first kernel is declared
