"""Checks of rows, and the quarantine."""
