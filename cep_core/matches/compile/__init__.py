"""Compiles a pattern file of kind matches to its plan."""
