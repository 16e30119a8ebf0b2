"""Compiled loops of kind match_recognize: the search where conditions are local, and measures."""

import trendlake.cep_core.kernel_cache  # noqa: F401 - before the first kernel is declared
