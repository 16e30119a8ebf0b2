"""Compiled kernels of kind automaton."""
