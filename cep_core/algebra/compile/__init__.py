"""Compiles a pattern file of kind algebra to its plan."""
