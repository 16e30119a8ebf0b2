"""Compiled kernels: loops over arrays, no objects of Python. `cep_core.kernels.cache` says where their code lies."""
