"""Runs a plan of kind matches over a table of events."""
