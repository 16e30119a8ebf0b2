"""Compiles a pattern file of kind automaton to its plan."""
