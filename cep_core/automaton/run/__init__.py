"""Runs a plan of kind automaton over a table of events."""
