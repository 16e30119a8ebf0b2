"""Columns and values of events."""
