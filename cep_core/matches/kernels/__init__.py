"""Compiled kernels of kind matches."""
