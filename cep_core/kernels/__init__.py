"""Compiled kernels: loops over arrays, no objects of Python. `cep_core.kernel_cache` says where their code lies."""
