"""Compiled kernels of kind trends."""
