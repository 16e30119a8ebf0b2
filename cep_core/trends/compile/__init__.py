"""Compiles a pattern file of kind trends to its plan."""
