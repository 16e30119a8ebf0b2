"""Runs a plan of kind trends over a table of events."""
